"""Dispatch the RPCs of raft by one table, ``RPCS``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kraft_wire.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraft_wire.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.own_messages.voter_entry_request import VoterEntryRequest
from kraft_wire.raft.effects import CancelRequest
from kraft_wire.raft.election import answer_leaders, answer_votes, campaign
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import Failure, RequestFailed, ResponseReceived, RpcRequest
from kraft_wire.raft.follower import earlier_directory, install_snapshot, membership_requests, replicate
from kraft_wire.raft.leader import (
    add_voter,
    describe_quorum,
    leader_notices,
    remove_voter,
    serve_fetch,
    serve_snapshot,
    update_voter,
)
from kraft_wire.raft.membership import voter_entry
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.peers import is_questioned
from kraft_wire.raft.quorum_state import QuorumState


def _never_asked(quorum: QuorumState, rpc: RpcRequest) -> None:
    raise InvariantViolated(f"raft doesn't answer {type(rpc.request).__name__}")


def _never_sent(quorum: QuorumState, call: Call, outcome: object) -> None:
    raise InvariantViolated(f"raft never sends {type(call.request).__name__}")


def _handle_begin_response(quorum: QuorumState, call: Call, response: BeginQuorumEpochResponse) -> None:
    handler = update_voter.handle_answer if is_questioned(call.peer) else leader_notices.handle_begin_response
    handler(quorum, call, response)


def _handle_begin_failed(quorum: QuorumState, call: Call, failure: Failure) -> None:
    handler = (
        update_voter.handle_no_answer if is_questioned(call.peer) else leader_notices.handle_begin_failed
    )
    handler(quorum, call, failure)


class Rpc(msgspec.Struct, frozen=True):
    """The handlers of an RPC: of its request, of its response, and of a request that got no response."""

    answer: Callable[[QuorumState, RpcRequest], bool | None]
    handle_response: Callable[[QuorumState, Call, Any], None] = _never_sent
    handle_failure: Callable[[QuorumState, Call, Failure], None] = _never_sent


RPCS: Final[dict[type[Message], Rpc]] = {
    VoteRequest: Rpc(
        answer_votes.handle_vote,
        campaign.handle_vote_response,
        campaign.handle_vote_failed,
    ),
    BeginQuorumEpochRequest: Rpc(
        answer_leaders.handle_begin_quorum_epoch,
        _handle_begin_response,
        _handle_begin_failed,
    ),
    EndQuorumEpochRequest: Rpc(
        answer_leaders.handle_end_quorum_epoch,
        leader_notices.handle_end_response,
        leader_notices.handle_end_failed,
    ),
    FetchRequest: Rpc(
        serve_fetch.handle_fetch,
        replicate.handle_fetch_response,
        replicate.handle_fetch_failed,
    ),
    FetchSnapshotRequest: Rpc(
        serve_snapshot.handle_fetch_snapshot,
        install_snapshot.handle_snapshot_response,
        replicate.handle_fetch_failed,
    ),
    DescribeQuorumRequest: Rpc(
        describe_quorum.handle_describe_quorum,
        earlier_directory.handle_description,
        earlier_directory.handle_description_failed,
    ),
    AddRaftVoterRequest: Rpc(
        add_voter.handle_add_voter,
        membership_requests.handle_join_response,
        membership_requests.handle_join_failed,
    ),
    RemoveRaftVoterRequest: Rpc(
        remove_voter.handle_remove_voter,
        membership_requests.handle_join_response,
        membership_requests.handle_join_failed,
    ),
    UpdateRaftVoterRequest: Rpc(
        update_voter.handle_update_voter,
        membership_requests.handle_update_response,
        membership_requests.handle_update_failed,
    ),
    VoterEntryRequest: Rpc(
        voter_entry.handle_voter_entry,
        update_voter.handle_entry,
        update_voter.handle_entry_failed,
    ),
    ApiVersionsRequest: Rpc(
        _never_asked,
        add_voter.handle_versions_response,
        add_voter.handle_versions_failed,
    ),
}
"""Every RPC of the quorum by its request.

ApiVersions is only sent, to a node that is to become a voter.
"""


def answer_request(quorum: QuorumState, event: RpcRequest) -> bool | None:
    """Answer the request of a peer; return True if that concerned nobody but an observer.

    Raises InvariantViolated for a request that is not an RPC of raft.
    """
    rpc = RPCS.get(type(event.request))
    if rpc is None:
        raise InvariantViolated(f"{type(event.request).__name__} is not an RPC of raft")
    return rpc.answer(quorum, event)


def handle_response(quorum: QuorumState, event: ResponseReceived) -> None:
    """Handle a peer's response. A response to a request of an earlier role is ignored."""
    call = quorum.outgoing.finish(event.request_id)
    if call is not None:
        RPCS[type(call.request)].handle_response(quorum, call, event.response)


def handle_failure(quorum: QuorumState, event: RequestFailed) -> None:
    """Handle the failure of a request."""
    call = quorum.outgoing.finish(event.request_id)
    if call is not None:
        RPCS[type(call.request)].handle_failure(quorum, call, event.failure)


def expire_requests(quorum: QuorumState) -> None:
    """Cancel the requests whose answer is overdue."""
    for request_id, call in quorum.outgoing.take_expired(quorum.now.monotonic_ms):
        quorum.emit(CancelRequest(request_id))
        RPCS[type(call.request)].handle_failure(quorum, call, Failure.TIMED_OUT)
