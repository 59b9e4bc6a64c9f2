"""Translate the drafted FetchSnapshot (59), versions 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kraft_wire.protocol.messages import fetch_snapshot_request as own_request
from kraft_wire.protocol.messages import fetch_snapshot_response as own_response
from kraft_wire.raft.drafted.alike import alike
from kraft_wire.raft.drafted.leaders import nodes_of, with_end_point
from kraft_wire.raft.membership.kip_853 import fetch_snapshot_request, fetch_snapshot_response
from kraft_wire.wire.dialect import Form


def _read_request(
    drafted: fetch_snapshot_request.FetchSnapshotRequest, version: int
) -> own_request.FetchSnapshotRequest:
    topics = [
        own_request.TopicSnapshot(
            name=topic.name,
            partitions=[
                alike(
                    own_request.PartitionSnapshot,
                    asked,
                    snapshot_id=alike(own_request.SnapshotId, asked.snapshot_id),
                    replica_directory_id=asked.replica_uuid,
                )
                for asked in topic.partitions
            ],
        )
        for topic in drafted.topics
    ]
    return alike(own_request.FetchSnapshotRequest, drafted, topics=topics)


def _write_request(
    own: own_request.FetchSnapshotRequest,
) -> fetch_snapshot_request.FetchSnapshotRequest:
    topics = [
        fetch_snapshot_request.TopicSnapshot(
            name=topic.name,
            partitions=[
                alike(
                    fetch_snapshot_request.PartitionSnapshot,
                    asked,
                    snapshot_id=alike(fetch_snapshot_request.SnapshotId, asked.snapshot_id),
                    replica_uuid=asked.replica_directory_id,
                )
                for asked in topic.partitions
            ],
        )
        for topic in own.topics
    ]
    return alike(fetch_snapshot_request.FetchSnapshotRequest, own, topics=topics)


def _read_response(
    drafted: fetch_snapshot_response.FetchSnapshotResponse,
) -> own_response.FetchSnapshotResponse:
    topics = [
        own_response.TopicSnapshot(
            name=topic.name,
            partitions=[
                alike(
                    own_response.PartitionSnapshot,
                    answer,
                    snapshot_id=alike(own_response.SnapshotId, answer.snapshot_id),
                    current_leader=alike(own_response.LeaderIdAndEpoch, answer.current_leader),
                )
                for answer in topic.partitions
            ],
        )
        for topic in drafted.topics
    ]
    leaders = [answer.current_leader for topic in drafted.topics for answer in topic.partitions]
    nodes = nodes_of(own_response.NodeEndpoint, leaders)
    return alike(own_response.FetchSnapshotResponse, drafted, topics=topics, node_endpoints=nodes)


def _write_response(
    own: own_response.FetchSnapshotResponse,
) -> fetch_snapshot_response.FetchSnapshotResponse:
    topics = [
        fetch_snapshot_response.TopicSnapshot(
            name=topic.name,
            partitions=[_write_answer(answer, own.node_endpoints) for answer in topic.partitions],
        )
        for topic in own.topics
    ]
    return alike(fetch_snapshot_response.FetchSnapshotResponse, own, topics=topics)


def _write_answer(
    answer: own_response.PartitionSnapshot, nodes: Sequence[own_response.NodeEndpoint]
) -> fetch_snapshot_response.PartitionSnapshot:
    leader = alike(fetch_snapshot_response.CurrentLeader, answer.current_leader)
    return alike(
        fetch_snapshot_response.PartitionSnapshot,
        answer,
        snapshot_id=alike(fetch_snapshot_response.SnapshotId, answer.snapshot_id),
        current_leader=with_end_point(leader, nodes),
    )


FETCH_SNAPSHOT: Final = Form(
    key=own_request.FetchSnapshotRequest.API_KEY,
    own_key=own_request.FetchSnapshotRequest.API_KEY,
    own_versions={0: 0, 1: 1},
    request_class=fetch_snapshot_request.FetchSnapshotRequest,
    response_class=fetch_snapshot_response.FetchSnapshotResponse,
    read_request=_read_request,
    write_request=_write_request,
    read_response=_read_response,
    write_response=_write_response,
)
