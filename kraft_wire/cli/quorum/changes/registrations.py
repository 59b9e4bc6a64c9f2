"""The registrations of controllers, as the leader has them, and whether such a controller still runs."""

from __future__ import annotations

import time
from enum import Enum, auto
from typing import Final

from kraft_wire.cli.errors import CommandError
from kraft_wire.cli.quorum.changes.leader_client import POLL_S, LeaderClient
from kraft_wire.cli.quorum.changes.majorities import LIVE_WITHIN_MS, fetches, replicas_of
from kraft_wire.cli.quorum.patience import said_if_slow
from kraft_wire.client.quorum_description import QuorumDescription
from kraft_wire.client.survey import NodeAnswer, setting_of, survey
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.wire.address import Address

NODE_ID: Final = "node.id"
STOPPED_WITHIN_S: Final = 1.5 * LIVE_WITHIN_MS / 1000


def leaders_answer(leader: LeaderClient) -> NodeAnswer:
    """Ask the leader about itself, until it answers or the timeout is over. Raises CommandError."""
    deadline_s = time.monotonic() + leader.settings.api_timeout_ms / 1000
    while True:
        leader.describe()
        (answer,) = survey(leader.settings, [leader.answered_by])
        if answer.leads:
            return answer
        if time.monotonic() > deadline_s:
            problem = answer.problem or "it doesn't lead any more"
            raise CommandError(f"the leader, {answer.address}, can't be asked: {problem}; try again")
        time.sleep(POLL_S)


def registrations_of(leader: LeaderClient) -> dict[int, Address]:
    """Return the addresses of the registered controllers by node id. Raises CommandError if the leader
    doesn't say."""
    answer = leaders_answer(leader)
    if answer.registrations is None:
        raise CommandError(
            f"the leader, {answer.address}, doesn't say which controllers are registered: this takes Alter "
            "on the cluster, and metadata.version 3.7. `quorum remove --keep-registration` and `quorum "
            "promote --endpoint` do without"
        )
    return answer.registrations


def is_registered(leader: LeaderClient, node_id: int) -> bool | None:
    """Whether the leader has a controller as registered; None if it doesn't say."""
    (answer,) = survey(leader.settings, [leader.answered_by])
    return node_id in answer.registrations if answer.leads and answer.registrations is not None else None


class Presence(Enum):
    """Whether a node runs at an address."""

    GONE = auto()
    RUNS = auto()
    UNCLEAR = auto()
    """Something of the cluster answers there, or hangs, and doesn't say which node it is."""


def presence_at(leader: LeaderClient, node_id: int, address: Address) -> Presence:
    """Ask at an address for the node id. Another controller may have it by now."""
    if setting_of(leader.settings, address, node_id, NODE_ID) is not None:
        return Presence.RUNS
    (answer,) = survey(leader.settings, [address])
    if answer.is_silent or answer.cluster_id not in (None, leader.cluster_id):
        return Presence.GONE
    if answer.problem:
        return Presence.UNCLEAR
    others = _known_ids(leader.describe(), answer) - {node_id}
    if any(setting_of(leader.settings, address, other, NODE_ID) is not None for other in sorted(others)):
        return Presence.GONE
    return Presence.UNCLEAR


def _known_ids(described: QuorumDescription, answer: NodeAnswer) -> set[int]:
    replicas = (*described.voters, *described.observers)
    return {replica.id for replica in replicas} | set(answer.registrations or ())


def has_stopped(leader: LeaderClient, node_id: int) -> bool:
    """Whether a node doesn't fetch any more. One that stopped just now still counts for a while: wait that
    long."""
    deadline_s = time.monotonic() + STOPPED_WITHIN_S
    with said_if_slow(f"waiting up to {STOPPED_WITHIN_S:g} s until node {node_id} doesn't fetch any more"):
        while fetching_directories(leader.describe(), node_id):
            if time.monotonic() > deadline_s:
                return False
            time.sleep(POLL_S)
    return True


def fetching_directories(described: QuorumDescription, node_id: int) -> set[Uuid]:
    """Return the directory ids with which a node fetches from the leader."""
    replicas = replicas_of((*described.voters, *described.observers), node_id)
    return {replica.directory_id for replica in replicas if fetches(described, replica)}
