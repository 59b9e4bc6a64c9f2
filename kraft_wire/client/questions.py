"""Build the requests of a reader of the metadata log, and read their responses. No I/O.

Controllers answer every Fetch by the rules of raft (KIP-595): the epoch must be the leader's own, the last
fetched epoch must be in the log, and uncommitted records are served as well. With replica id -1 the reader
doesn't count as a replica and acknowledges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import ErrorCode, ProtocolError
from kraft_wire.protocol.messages import fetch_snapshot_request
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_cluster_response import DescribeClusterResponse
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.fetch_response import NodeEndpoint as FetchEndpoint
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraft_wire.protocol.messages.fetch_snapshot_response import NodeEndpoint as SnapshotEndpoint
from kraft_wire.wire.address import Address

P = TypeVar("P")

CONTROLLERS: Final = 2
"""The endpoint type of KIP-919."""
NO_EPOCH: Final = -1
"""As the last fetched epoch, it marks an ordinary consumer. Java's controllers reject those."""


class LeaderHint(NamedTuple):
    """The leader that a controller names. Its address may be unknown."""

    leader_id: int
    epoch: int
    address: Address | None


NO_LEADER: Final = LeaderHint(-1, -1, None)


class Answer(msgspec.Struct, frozen=True, gc=False):
    """The common part of all answers: an error, and who leads."""

    error: ErrorCode
    hint: LeaderHint = NO_LEADER
    message: str = ""


class ClusterAnswer(Answer, frozen=True):
    """The cluster. ``controllers`` are those that have registered, by id."""

    cluster_id: str = ""
    controllers: dict[int, Address] = {}


class FetchAnswer(Answer, frozen=True, gc=False):
    """Records of the log.

    ``high_watermark`` is negative while the leader doesn't know it. ``snapshot_id`` is given if the offset is
    before the log start offset, ``diverging_end_offset`` if the last fetched epoch ends before the offset or
    isn't in the log.
    """

    log_start_offset: int = -1
    high_watermark: int = -1
    records: bytes = b""
    snapshot_id: SnapshotId | None = None
    diverging_end_offset: int | None = None


class SnapshotAnswer(Answer, frozen=True, gc=False):
    """Bytes of a snapshot's file from ``position`` on. ``size_bytes`` is the size of the file."""

    size_bytes: int = 0
    position: int = -1
    data: bytes = b""


def describe_cluster() -> DescribeClusterRequest:
    """Build a request for the cluster's id and its controllers."""
    return DescribeClusterRequest(endpoint_type=CONTROLLERS)


def fetch(
    cluster_id: str | None, leader_epoch: int, offset: int, last_fetched_epoch: int, max_bytes: int
) -> FetchRequest:
    """Build a request for records of the metadata log from ``offset`` on. A cluster id of None fits any
    cluster."""
    partition = FetchPartition(
        current_leader_epoch=leader_epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_fetched_epoch,
        partition_max_bytes=max_bytes,
    )
    topic = FetchTopic(topic=CLUSTER_METADATA, topic_id=CLUSTER_METADATA_TOPIC_ID, partitions=[partition])
    return FetchRequest(cluster_id=cluster_id, max_bytes=max_bytes, topics=[topic])


def fetch_snapshot(
    cluster_id: str, leader_epoch: int, snapshot_id: SnapshotId, position: int, max_bytes: int
) -> FetchSnapshotRequest:
    """Build a request for bytes of a snapshot from ``position`` on."""
    partition = fetch_snapshot_request.PartitionSnapshot(
        current_leader_epoch=leader_epoch,
        snapshot_id=fetch_snapshot_request.SnapshotId(
            end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch
        ),
        position=position,
    )
    topic = fetch_snapshot_request.TopicSnapshot(name=CLUSTER_METADATA, partitions=[partition])
    return FetchSnapshotRequest(cluster_id=cluster_id, max_bytes=max_bytes, topics=[topic])


def read_describe_cluster(response: DescribeClusterResponse) -> ClusterAnswer:
    """Read the answer to ``describe_cluster``."""
    return ClusterAnswer(
        ErrorCode.of(response.error_code),
        message=response.error_message or "",
        cluster_id=response.cluster_id,
        controllers={node.broker_id: Address(node.host, node.port) for node in response.brokers},
    )


def _only(api: str, partitions: Sequence[P]) -> P:
    if len(partitions) != 1:
        raise ProtocolError(f"the response to {api} has {len(partitions)} partitions instead of one")
    return partitions[0]


def read_fetch(response: FetchResponse) -> FetchAnswer:
    """Read the answer to ``fetch``. Raises ProtocolError unless it is about one partition."""
    if response.error_code:
        return FetchAnswer(ErrorCode.of(response.error_code))
    answer = _only("Fetch", [partition for topic in response.responses for partition in topic.partitions])
    snapshot, diverging = answer.snapshot_id, answer.diverging_epoch
    leader = answer.current_leader
    return FetchAnswer(
        ErrorCode.of(answer.error_code),
        _hint(leader.leader_id, leader.leader_epoch, response.node_endpoints),
        log_start_offset=answer.log_start_offset,
        high_watermark=answer.high_watermark,
        records=answer.records or b"",
        snapshot_id=SnapshotId(snapshot.end_offset, snapshot.epoch) if snapshot.end_offset >= 0 else None,
        diverging_end_offset=diverging.end_offset if diverging.end_offset >= 0 else None,
    )


def read_fetch_snapshot(response: FetchSnapshotResponse) -> SnapshotAnswer:
    """Read the answer to ``fetch_snapshot``. Raises ProtocolError unless it is about one partition."""
    if response.error_code:
        return SnapshotAnswer(ErrorCode.of(response.error_code))
    answer = _only(
        "FetchSnapshot", [partition for topic in response.topics for partition in topic.partitions]
    )
    leader = answer.current_leader
    return SnapshotAnswer(
        ErrorCode.of(answer.error_code),
        _hint(leader.leader_id, leader.leader_epoch, response.node_endpoints),
        size_bytes=answer.size,
        position=answer.position,
        data=answer.unaligned_records or b"",
    )


def _hint(leader_id: int, epoch: int, endpoints: Sequence[FetchEndpoint | SnapshotEndpoint]) -> LeaderHint:
    named = {endpoint.node_id: Address(endpoint.host, endpoint.port) for endpoint in endpoints}
    return LeaderHint(leader_id, epoch, named.get(leader_id))
