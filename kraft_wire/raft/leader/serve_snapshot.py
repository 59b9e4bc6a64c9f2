"""Answer FetchSnapshot (59), versions 0 and 1, with a piece of a snapshot (KIP-630).

The 0-0 checkpoint is never served.
"""

from __future__ import annotations

from typing import cast

from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import fetch_snapshot_response
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.protocol.messages.fetch_snapshot_request import PartitionSnapshot as Asked
from kraft_wire.protocol.messages.fetch_snapshot_response import (
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionSnapshot,
    TopicSnapshot,
)
from kraft_wire.raft.config import SnapshotInfo
from kraft_wire.raft.door.request_checks import METADATA_PARTITION, is_other_cluster
from kraft_wire.raft.effects import Reply, ReplySnapshotBytes
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.leader.serving import leader_for, serving
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.quorum_state import QuorumState

FIRST_WITH_ENDPOINTS = 1


def handle_fetch_snapshot(quorum: QuorumState, rpc: RpcRequest) -> None:
    """Answer with a piece of a snapshot's file."""
    request = cast(FetchSnapshotRequest, rpc.request)
    if is_other_cluster(quorum, request.cluster_id):
        quorum.emit(Reply(rpc.token, FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)))
    elif len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        quorum.emit(Reply(rpc.token, FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)))
    else:
        _handle_partition(quorum, rpc, request)


def _handle_partition(quorum: QuorumState, rpc: RpcRequest, request: FetchSnapshotRequest) -> None:
    topic = request.topics[0]
    asked = topic.partitions[0]
    if topic.name != CLUSTER_METADATA or asked.partition != METADATA_PARTITION:
        answer = PartitionSnapshot(
            index=asked.partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, unaligned_records=b""
        )
        quorum.emit(Reply(rpc.token, _response(quorum, rpc, topic.name, answer)))
        return
    snapshot_id = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
    snapshot = quorum.log.snapshot(snapshot_id)
    error = _error(quorum, request, asked, snapshot)
    if error or snapshot is None:
        answer = _answer(error)
        quorum.emit(Reply(rpc.token, _response(quorum, rpc, CLUSTER_METADATA, answer)))
        return
    answer = _answer(ErrorCode.NONE)
    answer.snapshot_id = fetch_snapshot_response.SnapshotId(
        end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch
    )
    answer.size = snapshot.size_bytes
    answer.position = asked.position
    max_bytes = min(request.max_bytes, quorum.config.max_fetch_bytes, snapshot.size_bytes - asked.position)
    response = _response(quorum, rpc, CLUSTER_METADATA, answer)
    quorum.emit(ReplySnapshotBytes(rpc.token, response, snapshot_id, asked.position, max_bytes))


def _error(
    quorum: QuorumState, request: FetchSnapshotRequest, asked: Asked, snapshot: SnapshotInfo | None
) -> ErrorCode:
    error = serving(quorum, request.replica_id).error(asked.current_leader_epoch)
    if error:
        return error
    if quorum.leadership is not None:
        replica = ReplicaKey(request.replica_id, asked.replica_directory_id)
        quorum.leadership.note_contact(replica, quorum.now)
    if request.replica_id == quorum.config.node_id:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if snapshot is None or snapshot.id == BOOTSTRAP_SNAPSHOT_ID:
        return ErrorCode.SNAPSHOT_NOT_FOUND
    if not 0 <= asked.position < snapshot.size_bytes:
        return ErrorCode.POSITION_OUT_OF_RANGE
    return ErrorCode.INVALID_REQUEST if request.max_bytes <= 0 else ErrorCode.NONE


def _answer(error: ErrorCode) -> PartitionSnapshot:
    return PartitionSnapshot(index=METADATA_PARTITION, error_code=error, unaligned_records=b"")


def _response(
    quorum: QuorumState, rpc: RpcRequest, topic_name: str, answer: PartitionSnapshot
) -> FetchSnapshotResponse:
    replica_id = cast(FetchSnapshotRequest, rpc.request).replica_id
    has_endpoints = rpc.version >= FIRST_WITH_ENDPOINTS
    leader = leader_for(quorum, replica_id, rpc.listener, has_endpoints=has_endpoints)
    epoch = serving(quorum, replica_id).epoch
    answer.current_leader = LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=epoch)
    response = FetchSnapshotResponse(topics=[TopicSnapshot(name=topic_name, partitions=[answer])])
    if leader.endpoint is not None:
        response.node_endpoints = [
            NodeEndpoint(node_id=leader.id, host=leader.endpoint.host, port=leader.endpoint.port)
        ]
    return response
