"""Answer AddRaftVoter (80), versions 0 and 1 (KIP-853, KIP-1186; Kafka's AddVoterHandler).

The leader asks the newcomer for the levels of kraft.version that it supports. It appends the changed voters
if the newcomer has caught up with the log within the last hour. Version 1 can ask for an answer before the
commit.
"""

from __future__ import annotations

from typing import cast

from kraft_wire.log.control import KRAFT_VERSION
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kraft_wire.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.events import Failure, RpcRequest
from kraft_wire.raft.leader import voter_changes
from kraft_wire.raft.leader.leadership import OBSERVER_KEPT_MS
from kraft_wire.raft.leader.pending_change import Newcomer, change_response
from kraft_wire.raft.membership.change import (
    MOST_VOTERS,
    ChangeRefused,
    check_endpoints,
    check_range,
    supports,
)
from kraft_wire.raft.membership.voters import (
    Endpoints,
    Peer,
    ReplicaKey,
    VersionRange,
    Voter,
    endpoint_at,
    endpoints_of,
)
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.wire.served_versions import QUESTION


def handle_add_voter(quorum: QuorumState, rpc: RpcRequest) -> None:
    """Ask the newcomer for its versions; its answer goes on with the change."""
    request = cast(AddRaftVoterRequest, rpc.request)
    try:
        newcomer = _check(quorum, request)
    except ChangeRefused as refused:
        quorum.emit(Reply(rpc.token, change_response(AddRaftVoterResponse, refused.error, refused.text)))
        return
    change = voter_changes.begin(quorum, rpc.token, AddRaftVoterResponse)
    change.newcomer = newcomer
    quorum.send(newcomer.peer, QUESTION)


def _check(quorum: QuorumState, request: AddRaftVoterRequest) -> Newcomer:
    """Check the request in Java's order. Raises ChangeRefused."""
    key = voter_changes.check_asked(quorum, request.cluster_id, request.voter_id, request.voter_directory_id)
    endpoints = endpoints_of((each.name, each.host, each.port) for each in request.listeners)
    check_endpoints(endpoints)
    peer = _peer(quorum, key, endpoints)
    voters = voter_changes.changeable_voters(quorum)
    if key.id in voters.ids:
        raise ChangeRefused(
            ErrorCode.DUPLICATE_VOTER,
            f"node {key.id} is one of the voters already ({voters}): remove that voter first",
        )
    if len(voters.ids) >= MOST_VOTERS:
        raise ChangeRefused(
            ErrorCode.INVALID_REQUEST, f"there are {MOST_VOTERS} voters, the most that may be"
        )
    if not quorum.outgoing.is_ready(peer, ApiVersionsRequest, quorum.now.monotonic_ms):
        raise ChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT, f"{key} did not answer at {peer.host}:{peer.port}: try again"
        )
    return Newcomer(key, endpoints, peer, request.ack_when_committed)


def _peer(quorum: QuorumState, key: ReplicaKey, endpoints: Endpoints) -> Peer:
    listener = quorum.config.listener
    endpoint = endpoint_at(endpoints, listener)
    if endpoint is None:
        names = ", ".join(each.listener for each in endpoints) or "none"
        raise ChangeRefused(
            ErrorCode.INVALID_REQUEST,
            f"a voter needs an endpoint on listener {listener}, the request has endpoints on: {names}",
        )
    return Peer(key.id, endpoint.host, endpoint.port)


# The newcomer's answer.


def handle_versions_response(quorum: QuorumState, call: Call, response: ApiVersionsResponse) -> None:
    """Append the changed voters, or end the change if the newcomer isn't fit to vote."""
    change = quorum.pending_change
    if change is None or change.newcomer is None or not change.is_awaiting_versions_of(call.peer):
        return
    try:
        voter_changes.check_not_stopping(quorum)
        versions = _versions(quorum, change.newcomer, response)
        voter = Voter(change.newcomer.key, change.newcomer.endpoints, versions)
        check_range(voter)
        _check_caught_up(quorum, voter.key)
    except ChangeRefused as refused:
        voter_changes.end(quorum, refused.error, refused.text)
        return
    voter_changes.append_voters(quorum, change, quorum.history.voters.with_added(voter))
    if not change.newcomer.is_answered_when_committed:
        voter_changes.answer(quorum, change, ErrorCode.NONE)


def handle_versions_failed(quorum: QuorumState, call: Call, failure: Failure) -> None:
    """End the change, because the newcomer didn't answer."""
    quorum.back_off(call)
    change = quorum.pending_change
    if change is not None and change.is_awaiting_versions_of(call.peer):
        peer = call.peer
        voter_changes.end(
            quorum,
            ErrorCode.REQUEST_TIMED_OUT,
            f"node {peer.id} did not answer at {peer.host}:{peer.port}: {failure.value}",
        )


def _versions(quorum: QuorumState, newcomer: Newcomer, response: ApiVersionsResponse) -> VersionRange:
    if response.error_code:
        error = ErrorCode.of(response.error_code)
        raise ChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT, f"{newcomer.key} answered ApiVersions with {error.name}"
        )
    if not any(api.api_key == VoteRequest.API_KEY for api in response.api_keys):
        raise ChangeRefused(
            ErrorCode.INVALID_REQUEST,
            f"{newcomer.key} is no controller: {newcomer.peer.host}:{newcomer.peer.port} serves no Vote",
        )
    ranges = (
        VersionRange(feature.min_version, feature.max_version)
        for feature in response.supported_features
        if feature.name == KRAFT_VERSION
    )
    versions = next(ranges, None)
    level = quorum.history.kraft_version
    if versions is None or not supports(versions, level):
        known = "none" if versions is None else f"{versions.min_version} to {versions.max_version}"
        raise ChangeRefused(
            ErrorCode.INVALID_REQUEST,
            f"{newcomer.key} does not support kraft.version {level}: the levels that it supports are {known}",
        )
    return versions


def _check_caught_up(quorum: QuorumState, key: ReplicaKey) -> None:
    """Check that the newcomer won't hold up commits for long: that it fetches, and has once had all."""
    leadership = quorum.leadership
    since_ms = quorum.now.wall_ms - OBSERVER_KEPT_MS
    if leadership is None or not leadership.has_caught_up(key, since_ms):
        raise ChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT,
            f"{key} has not caught up with the log: start it as an observer, wait until its lag is small, and"
            " try again",
        )
