"""Make an observer a voter, once it has kept up with the log for a while."""

from __future__ import annotations

import time
from typing import Final

import msgspec

from kraft_wire.cli.errors import UsageError
from kraft_wire.cli.quorum import Lags, Unfit
from kraft_wire.cli.quorum.changes.leader_client import POLL_S, LeaderClient
from kraft_wire.cli.quorum.changes.majorities import (
    LIVE_WITHIN_MS,
    change_lines,
    directory_ids_text,
    fetches,
    key_of,
    liveness_of,
    replicas_of,
)
from kraft_wire.cli.quorum.confirming import INTERRUPTED, confirm, interruption_says
from kraft_wire.client.quorum_description import QuorumDescription, ReplicaDescription
from kraft_wire.client.voter_changes import add_voter
from kraft_wire.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import Endpoints, ReplicaKey

DEFAULT_MAX_LAG: Final = 100
DEFAULT_STEADY_MS: Final = 2000
DEFAULT_WAIT_MS: Final = 60_000


class KeepsUp(msgspec.Struct, frozen=True):
    """What an observer has to do before it becomes a voter: lag by at most ``max_lag`` records, without a
    break, for ``steady_ms``, within ``wait_ms``."""

    max_lag: int
    steady_ms: int
    wait_ms: int

    def check(self) -> None:
        """Raise UsageError for an impossible value."""
        for option, value in (
            ("--max-lag", self.max_lag),
            ("--steady-ms", self.steady_ms),
            ("--wait-ms", self.wait_ms),
        ):
            if value < 0:
                raise UsageError(f"{option} {value}: give 0 or more")


def check_no_other_directory_votes(
    described: QuorumDescription, node_id: int, directory_id: Uuid | None
) -> None:
    """Raise Unfit if the node votes, and this is another directory: None stands for each one that observes.

    A voter that ended a moment ago still counts as one that fetches.
    """
    newcomers = observers_of(described, node_id, directory_id)
    for voter in replicas_of(described.voters, node_id):
        old = voter.directory_id
        if old == directory_id or (directory_id is None and not newcomers):
            continue
        if not fetches(described, voter):
            raise Unfit(
                f"node {node_id} votes with directory {old}, which doesn't fetch, and a node id votes only "
                f"once: run `kraft-wire quorum remove {node_id} --directory-id {old}` first"
            )
        if newcomers:
            raise Unfit(
                f"node {node_id} votes with directory {old}, and {directory_ids_text(newcomers)} fetches, "
                f"too. If the disk was replaced just now, try again in {LIVE_WITHIN_MS // 1000} seconds; "
                "otherwise two controllers have this node.id: correct it"
            )
        raise Unfit(
            f"node {node_id} votes with directory {old}, and fetches; {directory_id} doesn't: check the node "
            "id and the directory id. If the disk was replaced just now, start it, and try again"
        )


def check_address_is_free(described: QuorumDescription, key: ReplicaKey, endpoints: Endpoints) -> None:
    """Raise Unfit if another voter has one of these addresses."""
    wanted = {(point.host.lower(), point.port) for point in endpoints}
    for voter_id, points in described.endpoints.items():
        for point in points:
            if voter_id != key.id and (point.host.lower(), point.port) in wanted:
                raise Unfit(
                    f"{point.host}:{point.port} is the address of voter {voter_id}: correct the listeners "
                    f"of node {key.id}, or, if voter {voter_id} is gone, run "
                    f"`kraft-wire quorum remove {voter_id}` first"
                )


def observers_of(described: QuorumDescription, node_id: int, directory_id: Uuid | None) -> list[ReplicaKey]:
    """Return the observers with a node id that fetch, with this directory id or with any.

    A node with a new disk is another one. The one with the old disk counts for as long as ``fetches`` says.
    """
    return [
        key_of(replica)
        for replica in replicas_of(described.observers, node_id)
        if fetches(described, replica) and directory_id in (None, replica.directory_id)
    ]


def check_no_other_directory_fetches(
    described: QuorumDescription, node_id: int, directory_id: Uuid | None
) -> None:
    """Raise Unfit if the node fetches, and only with other directory ids than this one."""
    fetching = [key.directory_id for key in observers_of(described, node_id, None)]
    if fetching and directory_id not in (None, *fetching):
        ids = ", ".join(map(str, fetching))
        raise Unfit(f"node {node_id} fetches with directory id {ids}, not {directory_id}: give that one")


def is_voter(described: QuorumDescription, key: ReplicaKey) -> bool:
    return key in map(key_of, described.voters)


def is_committed_voter(leader: LeaderClient, key: ReplicaKey) -> bool:
    """Whether the replica is a voter, once that is committed. Raises Uncertain."""
    return leader.await_commit(lambda described: is_voter(described, key))


def make_voter(
    leader: LeaderClient, key: ReplicaKey, endpoints: Endpoints, keeps_up: KeepsUp, *, yes: bool
) -> None:
    """Show what changes, ask, wait until the observer keeps up, and make it a voter.

    Raises Unfit, NotConfirmed, Interrupted, Lags, Refused, Uncertain.
    """
    described = leader.describe()
    check_address_is_free(described, key, endpoints)
    before = liveness_of(described)
    for line in change_lines(leader.cluster_id, before, before.with_voter(key)):
        print(line)
    print(f"New voter     {key}")
    for endpoint in endpoints:
        print(f"  at {endpoint.listener}://{endpoint.host}:{endpoint.port}")
    if not yes:
        confirm()
    _await_keeping_up(leader, key, keeps_up)
    request = add_voter(leader.cluster_id, key, endpoints, leader.settings.api_timeout_ms)
    with interruption_says(INTERRUPTED):
        leader.change(request, AddRaftVoterResponse, lambda described: is_voter(described, key))
    print(f"Node {key.id} is a voter. The change is committed.")


def _await_keeping_up(leader: LeaderClient, key: ReplicaKey, keeps_up: KeepsUp) -> None:
    print(
        f"Waiting up to {keeps_up.wait_ms / 1000:g} s, until node {key.id} has lagged by {keeps_up.max_lag} "
        f"records or fewer for {keeps_up.steady_ms / 1000:g} s.",
        flush=True,
    )
    deadline_s = time.monotonic() + keeps_up.wait_ms / 1000
    since_s: float | None = None
    while True:
        described, now_s = leader.describe(), time.monotonic()
        if is_voter(described, key):  # with controller.quorum.auto.join.enable it makes itself one
            return
        lag = lag_of(described, key)
        if lag is None or lag > keeps_up.max_lag:
            since_s = None
        elif since_s is None:
            since_s = now_s
        if since_s is not None and now_s - since_s >= keeps_up.steady_ms / 1000:
            print(f"Node {key.id} lags by {lag} records.")
            return
        if now_s > deadline_s:
            raise Lags(_why_not(key, lag, keeps_up))
        time.sleep(POLL_S)


def lag_of(described: QuorumDescription, key: ReplicaKey) -> int | None:
    """Return how many records of the leader's log an observer has not fetched; None if it doesn't fetch."""
    leader, observer = described.leader, _observer(described, key)
    if leader is None or observer is None or not fetches(described, observer):
        return None
    return leader.log_end_offset - observer.log_end_offset


def _observer(described: QuorumDescription, key: ReplicaKey) -> ReplicaDescription | None:
    return next((each for each in described.observers if key_of(each) == key), None)


def _why_not(key: ReplicaKey, lag: int | None, keeps_up: KeepsUp) -> str:
    if lag is None:
        return f"{key} does not fetch from the leader: start it, and see its log"
    return (
        f"{key} lags by {lag} records, and has not lagged by {keeps_up.max_lag} or fewer for "
        f"{keeps_up.steady_ms} ms within {keeps_up.wait_ms} ms"
    )
