"""Answer DescribeQuorum (55), versions 0 to 2: the leader reports the progress of every voter and
observer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kraft_wire.protocol.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)
from kraft_wire.raft.door.request_checks import METADATA_PARTITION, only_partition
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.leader.leadership import Leadership, ReplicaProgress
from kraft_wire.raft.quorum_state import QuorumState

FIRST_WITH_DIRECTORIES = 2
UNKNOWN_OFFSET = -1
NO_TIMESTAMP = -1


def handle_describe_quorum(quorum: QuorumState, rpc: RpcRequest) -> None:
    """Answer an administrator's DescribeQuorum."""
    request = cast(DescribeQuorumRequest, rpc.request)
    leadership = quorum.leadership
    if only_partition(request.topics) is None:
        response = _refuse(
            request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "only __cluster_metadata-0 has a quorum"
        )
    elif leadership is None:
        response = _refuse(request, ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node does not lead the quorum")
    else:
        response = _describe(quorum, leadership, rpc.version)
    quorum.emit(Reply(rpc.token, response))


def _refuse(request: DescribeQuorumRequest, error: ErrorCode, text: str) -> DescribeQuorumResponse:
    """Return a response with the same error for every requested partition."""
    return DescribeQuorumResponse(
        topics=[
            TopicData(
                topic_name=topic.topic_name,
                partitions=[
                    PartitionData(
                        partition_index=partition.partition_index, error_code=error, error_message=text
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _describe(quorum: QuorumState, leadership: Leadership, version: int) -> DescribeQuorumResponse:
    high_watermark = leadership.high_watermark
    partition = PartitionData(
        partition_index=METADATA_PARTITION,
        leader_id=quorum.config.node_id,
        leader_epoch=quorum.epoch,
        high_watermark=UNKNOWN_OFFSET if high_watermark is None else high_watermark,
        current_voters=_replicas(quorum, leadership.voters.values(), version),
        observers=_replicas(quorum, fetching_observers(quorum, leadership), version),
    )
    response = DescribeQuorumResponse(topics=[TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])])
    if version >= FIRST_WITH_DIRECTORIES:
        response.nodes = [
            Node(
                node_id=voter.key.id,
                listeners=[
                    Listener(name=endpoint.listener, host=endpoint.host, port=endpoint.port)
                    for endpoint in voter.endpoints
                ],
            )
            for voter in quorum.history.voters.voters
        ]
    return response


def fetching_observers(quorum: QuorumState, leadership: Leadership) -> list[ReplicaProgress]:
    """Return the observers that have fetched in the last five minutes. The leader is one of them while it
    leads from outside the voter set."""
    outside = [leadership.own] if leadership.leads_from_outside else []
    since_ms = quorum.now.monotonic_ms - quorum.config.observer_session_timeout_ms
    seen = [each for each in leadership.observers.values() if each.last_contact_ms > since_ms]
    return [*outside, *seen]


def _replicas(quorum: QuorumState, replicas: Iterable[ReplicaProgress], version: int) -> list[ReplicaState]:
    return [_replica(quorum, progress, version) for progress in replicas]


def _last_fetch_wall_ms(quorum: QuorumState, progress: ReplicaProgress) -> int:
    """Return the wall-clock time of the last fetch, -1 for none. It doesn't stand still for a replica at work
    when the clock is set back."""
    if progress.last_contact_wall_ms < 0:
        return NO_TIMESTAMP
    return quorum.now.wall_ms - (quorum.now.monotonic_ms - progress.last_contact_ms)


def _replica(quorum: QuorumState, progress: ReplicaProgress, version: int) -> ReplicaState:
    if quorum.leadership is not None and progress is quorum.leadership.own:
        replica = ReplicaState(
            replica_id=progress.key.id,
            log_end_offset=quorum.log.end_offset,
            last_fetch_timestamp=quorum.now.wall_ms,
            last_caught_up_timestamp=quorum.now.wall_ms,
        )
    else:
        replica = ReplicaState(
            replica_id=progress.key.id,
            log_end_offset=UNKNOWN_OFFSET if progress.end_offset is None else progress.end_offset,
            last_fetch_timestamp=_last_fetch_wall_ms(quorum, progress),
            last_caught_up_timestamp=progress.last_caught_up_wall_ms,
        )
    if version >= FIRST_WITH_DIRECTORIES:
        replica.replica_directory_id = progress.key.directory_id
    return replica
