"""Answer the Fetch (1) of replicas: versions 4 to 18; real replicas use 17 and 18 (KIP-595, KIP-1166).

The leader serves everything that it has appended, committed or not; replicas apply records up to the high
watermark. A Fetch of a replica that has everything waits, up to its MaxWaitMs: that of a voter until a record
is appended or committed, that of an observer until one is committed. Java answers observers when a record is
appended, too; they have to ask once more for its commit. A Fetch also acknowledges everything below its
offset.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import cast

from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest
from kraft_wire.protocol.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from kraft_wire.raft.door.request_checks import (
    METADATA_PARTITION,
    is_other_cluster,
    leader_only_error,
    only_fetch_partition,
)
from kraft_wire.raft.effects import Reply, ReplyAlike, ReplyRecords
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.leader.parked_fetches import FetchCall
from kraft_wire.raft.leader.serving import leader_for, serving
from kraft_wire.raft.log_state import Diverged, NeedsSnapshot
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.quorum_state import QuorumState

FIRST_WITH_LEADER = 12
FIRST_WITH_ENDPOINTS = 17
FIRST_WITH_HIGH_WATERMARK = 18
UNKNOWN_OFFSET = -1
MOST_OF_A_VOTER = 4
"""So many Fetches of a voter wait. It sends one, and perhaps another on a new connection; but anybody can
send any number in its name, and all of them are answered at each append."""


def handle_fetch(quorum: QuorumState, rpc: RpcRequest) -> bool:
    """Answer a replica's Fetch, or let it wait; return whether the replica is no voter."""
    request = cast(FetchRequest, rpc.request)
    if is_other_cluster(quorum, request.cluster_id):
        quorum.emit(Reply(rpc.token, FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)))
        return True
    asked = only_fetch_partition(request, rpc.version)
    if asked is None:
        quorum.emit(Reply(rpc.token, FetchResponse(error_code=ErrorCode.INVALID_REQUEST)))
        return True
    call = _call(quorum, rpc, request, asked)
    if request.max_wait_ms < 0 or _is_invalid(asked):
        quorum.emit(Reply(rpc.token, _error_response(quorum, call, ErrorCode.INVALID_REQUEST)))
        return True
    return _serve(quorum, call, request.max_wait_ms)


def _call(quorum: QuorumState, rpc: RpcRequest, request: FetchRequest, asked: FetchPartition) -> FetchCall:
    replica_id = request.replica_id if request.replica_id != -1 else request.replica_state.replica_id
    return FetchCall(
        rpc.token,
        rpc.version,
        rpc.listener,
        ReplicaKey(replica_id, asked.replica_directory_id),
        asked,
        max(0, min(request.max_bytes, quorum.config.max_fetch_bytes)),
    )


def _is_invalid(asked: FetchPartition) -> bool:
    return asked.fetch_offset < 0 or not 0 <= asked.last_fetched_epoch <= asked.current_leader_epoch


def _serve(quorum: QuorumState, call: FetchCall, max_wait_ms: int) -> bool:
    """Answer now, or let the call wait: for news, or an observer for its turn. Return whether the replica is
    no voter."""
    leadership = quorum.leadership
    if call.replica.id == quorum.config.node_id:
        error = leader_only_error(quorum, call.asked.current_leader_epoch)
        response = _error_response(quorum, call, error or ErrorCode.UNKNOWN_SERVER_ERROR)
        quorum.emit(Reply(call.token, response))
        return True
    if leadership is None or not _follows(quorum, call):
        _answer(quorum, [call])
        return True
    _acknowledge(quorum, leadership, call)
    is_voter = leadership.is_voter(call.replica)
    now_ms = quorum.now.monotonic_ms
    if max_wait_ms == 0:
        _answer(quorum, [call])
    elif not _has_news(quorum, leadership, call, is_voter=is_voter):
        if is_voter:
            _park_voter(quorum, call, now_ms + max_wait_ms)
        else:
            quorum.observers.park(call, now_ms + max_wait_ms)
    elif is_voter or quorum.observers.may_go(now_ms):
        _answer(quorum, [call])
    else:
        quorum.observers.line_up(call)
    return not is_voter


def _follows(quorum: QuorumState, call: FetchCall) -> bool:
    """Whether the call is of this leader's epoch, and the replica's log is a prefix of ours."""
    asked = call.asked
    if leader_only_error(quorum, asked.current_leader_epoch):
        return False
    return quorum.log.compare(asked.fetch_offset, asked.last_fetched_epoch) is None


def _acknowledge(quorum: QuorumState, leadership: Leadership, call: FetchCall) -> None:
    """Note what the replica has, and which high watermark it knows."""
    if call.replica.id < 0:
        return
    log = quorum.log
    has_below = log.batch_ends.at_or_below(call.asked.fetch_offset)
    if leadership.note_fetch(call.replica, has_below, log.end_offset, quorum.now):
        quorum.announce_high_watermark()
    leadership.note_known(call.replica, _said_to_know(call))


def _said_to_know(call: FetchCall) -> int | None:
    return call.asked.high_watermark if call.version >= FIRST_WITH_HIGH_WATERMARK else None


def _has_news(quorum: QuorumState, leadership: Leadership, call: FetchCall, *, is_voter: bool) -> bool:
    """Whether there are records that the replica lacks, or a high watermark that it doesn't know.

    For an observer only committed records are news, once the high watermark is known: it can't use others,
    and so it gets records and commit with one answer.
    """
    high_watermark = leadership.high_watermark
    if is_voter or high_watermark is None:
        news_end = quorum.log.end_offset
    else:
        news_end = high_watermark
    if call.asked.fetch_offset < news_end:
        return True
    known = _said_to_know(call)
    if known is None and not is_voter:
        known = leadership.told(call.replica)
    return known is not None and high_watermark is not None and known < high_watermark


# Waiting fetches.


def _park_voter(quorum: QuorumState, call: FetchCall, deadline_ms: int) -> None:
    """Let a voter's call wait. If too many of this voter wait then, answer the oldest."""
    quorum.parked.park(call, deadline_ms)
    waiting = [each for each in quorum.parked if each.replica == call.replica]
    if len(waiting) > MOST_OF_A_VOTER:
        quorum.parked.drop(waiting[0].token)
        _answer(quorum, waiting[:1])


def answer_voters(quorum: QuorumState) -> None:
    """Answer the voters that wait, because a record was appended or committed."""
    _answer(quorum, quorum.parked.take_all())


def answer_new_voters(quorum: QuorumState) -> None:
    """Answer those that have become voters while they waited as observers: nothing may be committed without
    them."""
    leadership = quorum.leadership
    if leadership is not None:
        _answer(quorum, quorum.observers.take_if(lambda call: leadership.is_voter(call.replica)))


def answer_everybody(quorum: QuorumState) -> None:
    """Answer all that wait, because this node doesn't lead the epoch any more: of the observers some now, the
    others in their turn."""
    quorum.observers.dismiss()
    _answer(quorum, [*quorum.parked.take_all(), *quorum.observers.take_first(quorum.now.monotonic_ms)])


def tell_observers(quorum: QuorumState) -> None:
    """Answer observers, because there is news for all of them: some now, the others in their turn."""
    quorum.observers.have_news()
    _answer(quorum, quorum.observers.take_first(quorum.now.monotonic_ms))


def answer_turn(quorum: QuorumState) -> None:
    """Answer the observers whose turn it is: there is news for them, or their deadline has passed."""
    _answer(quorum, quorum.observers.take_turn(quorum.now.monotonic_ms))


def answer_expired(quorum: QuorumState) -> None:
    """Answer the voters whose deadline has passed, with nothing new."""
    _answer(quorum, quorum.parked.take_due(quorum.now.monotonic_ms))


# The answer.


def _answer(quorum: QuorumState, calls: Sequence[FetchCall]) -> None:
    """Answer these calls as things are at this moment, those with the same question together."""
    alike: dict[Hashable, list[FetchCall]] = {}
    for call in calls:
        alike.setdefault(call.question, []).append(call)
    for some in alike.values():
        _answer_alike(quorum, some)


def _answer_alike(quorum: QuorumState, calls: Sequence[FetchCall]) -> None:
    response, has_records = _respond(quorum, calls[0])
    _note_told(quorum, calls, response.responses[0].partitions[0])
    tokens = tuple(call.token for call in calls)
    if has_records:
        offset, max_bytes = calls[0].asked.fetch_offset, calls[0].max_bytes
        end_offset = serving(quorum, calls[0].replica.id).end_offset
        quorum.emit(ReplyRecords(tokens, response, offset, end_offset, max_bytes))
    elif len(tokens) == 1:
        quorum.emit(Reply(tokens[0], response))
    else:
        quorum.emit(ReplyAlike(tokens, response))


def _note_told(quorum: QuorumState, calls: Sequence[FetchCall], answer: PartitionData) -> None:
    """Note the high watermark that this answer tells. Who gets an error, or has to truncate or to take a
    snapshot first, takes none from it."""
    leadership = quorum.leadership
    if leadership is None or answer.high_watermark == UNKNOWN_OFFSET or answer.error_code:
        return
    if answer.diverging_epoch.epoch >= 0 or answer.snapshot_id.epoch >= 0:
        return
    for call in calls:
        if call.version < FIRST_WITH_HIGH_WATERMARK:
            leadership.note_told(call.replica, answer.high_watermark)


def _respond(quorum: QuorumState, call: FetchCall) -> tuple[FetchResponse, bool]:
    """Return the response at this moment, and whether records belong into it."""
    asked = call.asked
    served = serving(quorum, call.replica.id)
    error = served.error(asked.current_leader_epoch)
    if error:
        return _error_response(quorum, call, error), False
    answer = _partition(quorum, ErrorCode.NONE, served.high_watermark)
    match quorum.log.compare(asked.fetch_offset, asked.last_fetched_epoch):
        case Diverged(end):
            answer.diverging_epoch = EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
            return _response(quorum, call, answer), False
        case NeedsSnapshot(snapshot_id):
            answer.snapshot_id = SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)
            return _response(quorum, call, answer), False
        case None:
            return _response(quorum, call, answer), asked.fetch_offset < served.end_offset


def _error_response(quorum: QuorumState, call: FetchCall, error: ErrorCode) -> FetchResponse:
    return _response(quorum, call, _partition(quorum, error, None))


def _partition(quorum: QuorumState, error: ErrorCode, high_watermark: int | None) -> PartitionData:
    return PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=error,
        high_watermark=UNKNOWN_OFFSET if high_watermark is None else high_watermark,
        log_start_offset=quorum.log.start_offset,
        records=b"",
    )


def _response(quorum: QuorumState, call: FetchCall, answer: PartitionData) -> FetchResponse:
    has_endpoints = call.version >= FIRST_WITH_ENDPOINTS
    leader = leader_for(quorum, call.replica.id, call.listener, has_endpoints=has_endpoints)
    if call.version >= FIRST_WITH_LEADER:
        epoch = serving(quorum, call.replica.id).epoch
        answer.current_leader = LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=epoch)
    response = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic=CLUSTER_METADATA, topic_id=CLUSTER_METADATA_TOPIC_ID, partitions=[answer]
            )
        ]
    )
    if leader.endpoint is not None:
        response.node_endpoints = [
            NodeEndpoint(node_id=leader.id, host=leader.endpoint.host, port=leader.endpoint.port)
        ]
    return response
