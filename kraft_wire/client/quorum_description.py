"""Build DescribeQuorum (55) and read its response. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kraft_wire.client.questions import Answer, LeaderHint
from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.errors import ErrorCode, ProtocolError
from kraft_wire.protocol.messages import describe_quorum_request
from kraft_wire.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kraft_wire.protocol.messages.describe_quorum_response import DescribeQuorumResponse, ReplicaState
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import Endpoint

_PARTITION: Final = 0


class ReplicaDescription(msgspec.Struct, frozen=True):
    """A replica as the leader sees it.

    Offsets and times are -1 if the leader doesn't know them. The times are those of the leader's clock, in
    milliseconds since 1970. The directory id is zero if it isn't known.
    """

    id: int
    directory_id: Uuid
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


class QuorumDescription(Answer, frozen=True):
    """The quorum as its leader sees it. ``endpoints`` are those of the voters, by node id, in the leader's
    order; they are empty with Kafka 3.8 and older."""

    leader_id: int = -1
    leader_epoch: int = -1
    high_watermark: int = -1
    voters: tuple[ReplicaDescription, ...] = ()
    observers: tuple[ReplicaDescription, ...] = ()
    endpoints: Mapping[int, tuple[Endpoint, ...]] = msgspec.field(default_factory=dict)

    @property
    def leader(self) -> ReplicaDescription | None:
        """The leader's own entry; it is no voter while it leads from outside the voter set."""
        replicas = (*self.voters, *self.observers)
        return next((replica for replica in replicas if replica.id == self.leader_id), None)


def describe_quorum() -> DescribeQuorumRequest:
    """Build a request for the state of all replicas."""
    partition = describe_quorum_request.PartitionData(partition_index=_PARTITION)
    topic = describe_quorum_request.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])
    return DescribeQuorumRequest(topics=[topic])


def read_describe_quorum(response: DescribeQuorumResponse) -> QuorumDescription:
    """Read the answer to ``describe_quorum``. Raises ProtocolError unless it is about one partition."""
    if response.error_code:
        return QuorumDescription(ErrorCode.of(response.error_code), message=response.error_message or "")
    partitions = [partition for topic in response.topics for partition in topic.partitions]
    if len(partitions) != 1:
        raise ProtocolError(f"the response to DescribeQuorum has {len(partitions)} partitions instead of one")
    found = partitions[0]
    error = ErrorCode.of(found.error_code)
    hint = LeaderHint(-1, -1, None) if error else LeaderHint(found.leader_id, found.leader_epoch, None)
    return QuorumDescription(
        error,
        hint,
        message=found.error_message or "",
        leader_id=found.leader_id,
        leader_epoch=found.leader_epoch,
        high_watermark=found.high_watermark,
        voters=tuple(_replica(state) for state in found.current_voters),
        observers=tuple(_replica(state) for state in found.observers),
        endpoints={
            node.node_id: tuple(Endpoint(point.name, point.host, point.port) for point in node.listeners)
            for node in response.nodes
        },
    )


def _replica(state: ReplicaState) -> ReplicaDescription:
    return ReplicaDescription(
        state.replica_id,
        state.replica_directory_id,
        state.log_end_offset,
        state.last_fetch_timestamp,
        state.last_caught_up_timestamp,
    )
