"""What a role keeps doing: looked at after every step, and idempotent, since requests under way are noted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.protocol.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft import announce, campaign, follow, install
from kraft_wire.raft.effects import CancelRequest
from kraft_wire.raft.events import Failure, RequestFailed, ResponseReceived
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached

RESPONSE_HANDLERS: Final[dict[type[Message], Callable[[Quorum, Call, Any], None]]] = {
    VoteResponse: campaign.handle_vote_response,
    BeginQuorumEpochResponse: announce.handle_begin_response,
    EndQuorumEpochResponse: announce.handle_end_response,
    FetchResponse: follow.handle_fetch_response,
    FetchSnapshotResponse: install.handle_snapshot_response,
}


def perform(quorum: Quorum) -> None:
    """Send what is due."""
    if quorum.is_stopped:
        return
    match quorum.state:
        case Leader(leadership=leadership):
            announce.introduce(quorum, leadership)
        case Resigned() as resigned:
            announce.say_goodbye(quorum, resigned)
        case _ if quorum.is_shutting_down:
            pass
        case Follower() as follower:
            follow.fetch(quorum, follower)
        case Prospective() | Candidate() as nominee:
            campaign.ask_for_votes(quorum, nominee)
        case Unattached():
            follow.discover(quorum)


def next_deadline_ms(quorum: Quorum) -> int | None:
    """When something may be due that no event brings."""
    match quorum.state:
        case Leader(leadership=leadership):
            return announce.next_introduction_ms(quorum, leadership)
        case Follower() as follower:
            return install.next_sign_ms(quorum, follower)
        case _:
            return None


def take_response(quorum: Quorum, event: ResponseReceived) -> None:
    """A peer answered. An answer to what was asked in a role that is over is ignored."""
    call = quorum.outgoing.take(event.request_id)
    if call is not None:
        RESPONSE_HANDLERS[type(event.response)](quorum, call, event.response)


def take_failure(quorum: Quorum, event: RequestFailed) -> None:
    """A peer can't be asked."""
    call = quorum.outgoing.take(event.request_id)
    if call is not None:
        _fail(quorum, call, event.failure)


def expire(quorum: Quorum) -> None:
    """Give up waiting for answers that don't come."""
    for request_id, call in quorum.outgoing.take_expired(quorum.now.monotonic_ms):
        quorum.emit(CancelRequest(request_id))
        _fail(quorum, call, Failure.TIMED_OUT)


def _fail(quorum: Quorum, call: Call, failure: Failure) -> None:
    match call.request:
        case VoteRequest() if failure is Failure.UNSUPPORTED:
            campaign.handle_unsupported(quorum, call)
        case VoteRequest():
            campaign.handle_vote_failed(quorum, call)
        case BeginQuorumEpochRequest():
            announce.handle_begin_failed(quorum, call)
        case FetchRequest() | FetchSnapshotRequest():
            follow.handle_fetch_failed(quorum, call, failure)
        case _:
            quorum.leave_alone(call)
