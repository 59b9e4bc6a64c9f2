"""Decide on the identity of an observer: its node id and its cluster. No I/O.

In a quorum with static voters the leader knows a voter by its node id alone, and would count the fetches of
an observer with that id as the voter's. So an id that the quorum knows is refused, and the default ids are in
a range that nobody numbers nodes in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from kraft_wire.cli.errors import CommandError, UsageError
from kraft_wire.client.quorum_description import QuorumDescription

FIRST_DEFAULT_ID: Final = 1_000_000_000
LAST_ID: Final = 2**31 - 1


def check_id(node_id: int) -> None:
    """Raise UsageError unless a node may have this id."""
    if not 0 <= node_id <= LAST_ID:
        raise UsageError(f"--node-id {node_id} is not within 0 to {LAST_ID}")


def choose_id(wanted: int | None, taken: Collection[int], below: Callable[[int], int]) -> int:
    """Return the id of a new observer: the wanted one, or a random one. ``below`` returns a random number
    below its argument.

    Raises CommandError if the wanted id is taken.
    """
    if wanted is not None:
        if wanted in taken:
            raise CommandError(
                f"--node-id {wanted} is the id of another node of the cluster; give one that no controller, "
                "broker or observer has, or leave the option out"
            )
        return wanted
    while (node_id := FIRST_DEFAULT_ID + below(LAST_ID - FIRST_DEFAULT_ID)) in taken:
        pass
    return node_id


def ids_of(described: QuorumDescription) -> frozenset[int]:
    """Return the ids of all replicas that the leader knows, brokers among them."""
    return frozenset(replica.id for replica in (*described.voters, *described.observers))


def check_known(folder: str, known: int, wanted: int | None) -> None:
    """Raise CommandError if the folder of an observer has another id than the wanted one."""
    if wanted not in (None, known):
        raise CommandError(
            f"--node-id {wanted}: {folder} is the folder of observer {known}; leave the option out, or give "
            "another --dir"
        )


def check_cluster(folder: str, cluster_id: str, other: str, named_by: str) -> None:
    """Raise CommandError unless both cluster ids are the same; ``named_by`` is where the second is from."""
    if other != cluster_id:
        raise CommandError(
            f"{folder} holds the log of cluster {cluster_id}, {named_by} says {other}; give another --dir, "
            "or correct --bootstrap"
        )
