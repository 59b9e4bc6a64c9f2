"""Answer the Fetch (1) of replicas: versions 4 to 18; real replicas use 17 and 18 (KIP-595, KIP-1166).

The leader serves everything that it has appended, committed or not; replicas apply records up to the high
watermark. A Fetch of a replica that has everything waits, up to its MaxWaitMs, until a record is appended or
committed; that answers all waiting fetches. A Fetch also acknowledges everything below its offset.
"""

from __future__ import annotations

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
from kraft_wire.raft.effects import Reply, ReplyRecords
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.leader.parked_fetches import FetchCall
from kraft_wire.raft.log_state import Diverged, NeedsSnapshot
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.request_checks import (
    METADATA_PARTITION,
    is_other_cluster,
    leader_only_error,
    only_fetch_partition,
)

FIRST_WITH_LEADER = 12
FIRST_WITH_ENDPOINTS = 17
FIRST_WITH_HIGH_WATERMARK = 18
UNKNOWN_OFFSET = -1


def handle_fetch(quorum: QuorumState, rpc: RpcRequest) -> None:
    """Answer a replica's Fetch, or park it."""
    request = cast(FetchRequest, rpc.request)
    if is_other_cluster(quorum, request.cluster_id):
        quorum.emit(Reply(rpc.token, FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)))
        return
    asked = only_fetch_partition(request, rpc.version)
    if asked is None:
        quorum.emit(Reply(rpc.token, FetchResponse(error_code=ErrorCode.INVALID_REQUEST)))
        return
    call = _call(quorum, rpc, request, asked)
    if request.max_wait_ms < 0 or _is_invalid(asked):
        quorum.emit(Reply(rpc.token, _error_response(quorum, call, ErrorCode.INVALID_REQUEST)))
        return
    _serve(quorum, call, request.max_wait_ms)


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


def _serve(quorum: QuorumState, call: FetchCall, max_wait_ms: int) -> None:
    """Answer now, or park the call if there is nothing new and it may wait."""
    response = _respond(quorum, call, counts=True)
    if quorum.leadership is not None and call.replica.id >= 0:
        says_what_it_knows = call.version >= FIRST_WITH_HIGH_WATERMARK
        known = call.asked.high_watermark if says_what_it_knows else None
        quorum.leadership.note_known(call.replica, known)
    answer = response.responses[0].partitions[0]
    if max_wait_ms == 0 or _has_news(quorum, call, answer):
        _reply(quorum, call, response)
    else:
        quorum.parked.park(call, quorum.now.monotonic_ms + max_wait_ms)


def _has_news(quorum: QuorumState, call: FetchCall, answer: PartitionData) -> bool:
    return (
        answer.error_code != ErrorCode.NONE
        or answer.diverging_epoch.epoch >= 0
        or answer.snapshot_id.epoch >= 0
        or call.asked.fetch_offset < quorum.log.end_offset
        or call.asked.high_watermark < answer.high_watermark
    )


# Parked fetches.


def answer_parked(quorum: QuorumState) -> None:
    """Answer all parked fetches, because a record was appended or committed, or the leader changed."""
    for call in quorum.parked.take_all():
        _reply(quorum, call, _respond(quorum, call, counts=True))


def answer_expired(quorum: QuorumState) -> None:
    """Answer the parked fetches whose deadline has passed, with nothing new."""
    for call in quorum.parked.take_expired(quorum.now.monotonic_ms):
        _reply(quorum, call, _respond(quorum, call, counts=False))


# The response.


def _respond(quorum: QuorumState, call: FetchCall, *, counts: bool) -> FetchResponse:
    """Return the response at this moment. If it ``counts``, the replica's progress is noted."""
    asked = call.asked
    error = leader_only_error(quorum, asked.current_leader_epoch)
    leadership = quorum.leadership
    if error or leadership is None:
        return _error_response(quorum, call, error)
    if call.replica.id == quorum.config.node_id:
        return _error_response(quorum, call, ErrorCode.UNKNOWN_SERVER_ERROR)
    verdict = quorum.log.compare(asked.fetch_offset, asked.last_fetched_epoch)
    if counts and verdict is None:
        _acknowledge(quorum, leadership, call)
    answer = _partition(quorum, call, ErrorCode.NONE, leadership.high_watermark)
    match verdict:
        case Diverged(end):
            answer.diverging_epoch = EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
        case NeedsSnapshot(snapshot_id):
            answer.snapshot_id = SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)
        case None:
            pass
    return _response(quorum, call, answer)


def _acknowledge(quorum: QuorumState, leadership: Leadership, call: FetchCall) -> None:
    if call.replica.id < 0:
        return
    if leadership.note_fetch(call.replica, call.asked.fetch_offset, quorum.log.end_offset, quorum.now):
        quorum.announce_high_watermark()


def _reply(quorum: QuorumState, call: FetchCall, response: FetchResponse) -> None:
    answer = response.responses[0].partitions[0]
    if quorum.leadership is not None and call.replica.id >= 0:
        quorum.leadership.note_told(call.replica, answer.high_watermark)
    has_records = (
        answer.error_code == ErrorCode.NONE
        and answer.diverging_epoch.epoch < 0
        and answer.snapshot_id.epoch < 0
        and call.asked.fetch_offset < quorum.log.end_offset
    )
    if has_records:
        end_offset = quorum.log.end_offset
        quorum.emit(ReplyRecords(call.token, response, call.asked.fetch_offset, end_offset, call.max_bytes))
    else:
        quorum.emit(Reply(call.token, response))


def _error_response(quorum: QuorumState, call: FetchCall, error: ErrorCode) -> FetchResponse:
    return _response(quorum, call, _partition(quorum, call, error, None))


def _partition(
    quorum: QuorumState, call: FetchCall, error: ErrorCode, high_watermark: int | None
) -> PartitionData:
    answer = PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=error,
        high_watermark=UNKNOWN_OFFSET if high_watermark is None else high_watermark,
        log_start_offset=quorum.log.start_offset,
        records=b"",
    )
    if call.version >= FIRST_WITH_LEADER:
        answer.current_leader = LeaderIdAndEpoch(
            leader_id=quorum.leader_id_on_wire, leader_epoch=quorum.epoch
        )
    return answer


def _response(quorum: QuorumState, call: FetchCall, answer: PartitionData) -> FetchResponse:
    response = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic=CLUSTER_METADATA, topic_id=CLUSTER_METADATA_TOPIC_ID, partitions=[answer]
            )
        ]
    )
    endpoint = quorum.leader_endpoint(call.listener)
    if call.version >= FIRST_WITH_ENDPOINTS and endpoint is not None and quorum.leader_id_on_wire >= 0:
        response.node_endpoints = [
            NodeEndpoint(node_id=quorum.leader_id_on_wire, host=endpoint.host, port=endpoint.port)
        ]
    return response
