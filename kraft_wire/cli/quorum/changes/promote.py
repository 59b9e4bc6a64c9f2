"""``kraft-wire quorum promote``: make an observer a voter."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kraft_wire.cli.errors import EXIT_OK
from kraft_wire.cli.quorum import Lags, Unfit
from kraft_wire.cli.quorum.changes.kraft_version import check_voters_can_change
from kraft_wire.cli.quorum.changes.leader_client import POLL_S, LeaderClient, leader_for_change
from kraft_wire.cli.quorum.changes.majorities import directory_ids_text, fetches, key_of, replicas_of
from kraft_wire.cli.quorum.changes.newcomer import (
    DEFAULT_MAX_LAG,
    DEFAULT_STEADY_MS,
    DEFAULT_WAIT_MS,
    KeepsUp,
    check_no_other_directory_fetches,
    check_no_other_directory_votes,
    is_committed_voter,
    make_voter,
    observers_of,
)
from kraft_wire.cli.quorum.changes.options import check_node_id, directory_id_of, endpoints_of_options
from kraft_wire.cli.quorum.changes.registrations import registrations_of
from kraft_wire.cli.quorum.connecting import DEFAULT_TIMEOUT_MS, settings_of
from kraft_wire.client.quorum_description import QuorumDescription
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import Endpoint, Endpoints, ReplicaKey

REGISTERS_WITHIN_MS: Final = 5_000


def quorum_promote(
    node_id: int,
    /,
    *,
    bootstrap_controller: str,
    directory_id: str | None = None,
    endpoint: Sequence[str] = (),
    max_lag: int = DEFAULT_MAX_LAG,
    steady_ms: int = DEFAULT_STEADY_MS,
    wait_ms: int = DEFAULT_WAIT_MS,
    yes: bool = False,
    command_config: Path | None = None,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
) -> int:
    """Make an observer a voter, once it has kept up with the log for a while. Shows what changes, and asks.

    Exit statuses: 0 it is a voter, now or before; 2 wrong usage; 3 no controller answers; 4 none of them
    leads; 5 the file of --command-config can't be read; 6 the node has another directory, or the address of
    another voter, kraft.version is 0, or the controllers are of several clusters; 8 not confirmed; 10 it
    doesn't fetch or keep up; 12 it isn't known whether the change was made; 14 the leader refuses; 130
    interrupted; 1 anything else.

    For example:

        kraft-wire quorum promote 4 --bootstrap-controller c1:9093

    Parameters
    ----------
    node_id
        The node id of the observer.
    bootstrap_controller
        HOST:PORT of one or more controllers, separated by commas.
    directory_id
        The observer's directory id, if several observers have its node id.
    endpoint
        The observer's address, NAME://HOST:PORT; by default the one that it has registered. Can be given
        several times.
    max_lag
        How many records it may lag behind the leader.
    steady_ms
        For how many milliseconds it must not lag by more.
    wait_ms
        How many milliseconds to wait for that.
    yes
        Don't ask.
    command_config
        A properties file with security settings, as for Kafka's tools.
    timeout_ms
        How long to look for the leader, and how long to wait for the commit.
    """
    check_node_id(node_id)
    keeps_up = KeepsUp(max_lag, steady_ms, wait_ms)
    keeps_up.check()
    wanted, given = directory_id_of(directory_id), endpoints_of_options(endpoint)
    with leader_for_change(settings_of(bootstrap_controller, command_config, timeout_ms)) as leader:
        return _promote(leader, node_id, wanted, given, keeps_up, yes=yes)


def _promote(
    leader: LeaderClient,
    node_id: int,
    wanted: Uuid | None,
    given: Endpoints,
    keeps_up: KeepsUp,
    *,
    yes: bool,
) -> int:
    """Make the observer a voter, unless it is one. Returns the exit status."""
    check_voters_can_change(leader)
    if _votes(leader, node_id, wanted):
        print(f"Node {node_id} is a voter already. Nothing was changed.")
        return EXIT_OK
    key = _observer(leader, node_id, wanted, keeps_up)
    make_voter(leader, key, given or _registered(leader, key, keeps_up), keeps_up, yes=yes)
    return EXIT_OK


def _votes(leader: LeaderClient, node_id: int, directory_id: Uuid | None) -> bool:
    """Whether the node is a voter, once that is committed. Raises Unfit, Uncertain."""
    described = leader.describe()
    check_no_other_directory_votes(described, node_id, directory_id)
    voters = map(key_of, replicas_of(described.voters, node_id))
    return any(
        directory_id in (None, voter.directory_id) and is_committed_voter(leader, voter) for voter in voters
    )


def _observer(leader: LeaderClient, node_id: int, directory_id: Uuid | None, keeps_up: KeepsUp) -> ReplicaKey:
    """Wait until one observer with the node id fetches. A disk that was replaced is soon seen as such."""
    deadline_s = time.monotonic() + keeps_up.wait_ms / 1000
    described, found = _observers(leader, node_id, directory_id)
    if len(found) != 1:
        wait_s = keeps_up.wait_ms / 1000
        print(f"Waiting up to {wait_s:g} s: {_why_not_yet(described, node_id, found)}", flush=True)
    while len(found) != 1:
        if time.monotonic() > deadline_s:
            check_no_other_directory_fetches(described, node_id, directory_id)
            raise _not_one(node_id, found)
        time.sleep(POLL_S)
        described, found = _observers(leader, node_id, directory_id)
    return found[0]


def _why_not_yet(described: QuorumDescription, node_id: int, found: Sequence[ReplicaKey]) -> str:
    if found:
        ids = directory_ids_text(found)
        return f"{len(found)} observers with node id {node_id} fetch, with the directory ids {ids}."
    others = sorted({replica.id for replica in described.observers if fetches(described, replica)})
    return (
        f"no observer with node id {node_id} fetches yet. "
        f"Observers that fetch: {', '.join(map(str, others)) or 'none'}."
    )


def _observers(
    leader: LeaderClient, node_id: int, directory_id: Uuid | None
) -> tuple[QuorumDescription, list[ReplicaKey]]:
    """Ask the leader, and return its answer with the observers of the node id that fetch. Raises Unfit if the
    node votes with another directory."""
    described = leader.describe()
    check_no_other_directory_votes(described, node_id, directory_id)
    return described, observers_of(described, node_id, directory_id)


def _not_one(node_id: int, found: Sequence[ReplicaKey]) -> Lags | Unfit:
    if not found:
        return Lags(
            f"no observer with node id {node_id} fetches from the leader: start it, and see its log. "
            "`kraft-wire quorum status` shows the nodes that fetch"
        )
    ids = directory_ids_text(found)
    return Unfit(f"several observers have node id {node_id}, with directory ids {ids}: give --directory-id")


def _registered(leader: LeaderClient, key: ReplicaKey, keeps_up: KeepsUp) -> Endpoints:
    """Return the endpoints that a controller has registered. It registers soon after its start; a broker
    never does. Raises Unfit if it has none."""
    deadline_s = time.monotonic() + min(keeps_up.wait_ms, REGISTERS_WITHIN_MS) / 1000
    while not (found := _registered_now(leader, key)):
        if time.monotonic() > deadline_s:
            raise Unfit(
                f"node {key.id} has not registered as a controller. A broker and `kraft-wire observe` can't "
                "vote. For a controller, run `kraft-wire quorum add` with its properties file on its "
                "machine, or give --endpoint NAME://HOST:PORT"
            )
        time.sleep(POLL_S)
    return found


def _registered_now(leader: LeaderClient, key: ReplicaKey) -> Endpoints:
    """Return the endpoints that a controller has registered by now. DescribeCluster shows the one on the
    listener that was asked; the log has all."""
    endpoints = leader.describe().endpoints
    listeners = sorted({point.listener for points in endpoints.values() for point in points})
    if len(listeners) != 1:
        return leader.history().registrations.get(key.id, ())
    address = registrations_of(leader).get(key.id)
    return () if address is None else (Endpoint(listeners[0], address.host, address.port),)
