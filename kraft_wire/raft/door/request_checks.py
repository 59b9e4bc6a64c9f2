"""Check the fields that all raft requests have in common (KafkaRaftClient)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest
from kraft_wire.raft.door.epoch_limits import is_acceptable_epoch
from kraft_wire.raft.quorum_state import QuorumState

METADATA_PARTITION = 0
FIRST_FETCH_WITH_TOPIC_IDS = 13

P_co = TypeVar("P_co", covariant=True)


class _Partition(Protocol):
    @property
    def partition_index(self) -> int: ...


P = TypeVar("P", bound=_Partition)


class _Topic(Protocol[P_co]):
    @property
    def topic_name(self) -> str: ...

    @property
    def partitions(self) -> Sequence[P_co]: ...


def is_other_cluster(quorum: QuorumState, cluster_id: str | None) -> bool:
    """Whether a request is meant for another cluster. A request without a cluster id is accepted."""
    return cluster_id is not None and cluster_id != quorum.config.cluster_id


def only_partition(topics: Sequence[_Topic[P]]) -> P | None:
    """Return the request's only partition if it is the metadata partition, else None."""
    if len(topics) != 1 or topics[0].topic_name != CLUSTER_METADATA or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    return partition if partition.partition_index == METADATA_PARTITION else None


def only_fetch_partition(request: FetchRequest, version: int) -> FetchPartition | None:
    """Return the only partition of a Fetch if it is the metadata partition, else None.

    From version 13 on, Fetch names the topic by its id.
    """
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    topic = request.topics[0]
    if version >= FIRST_FETCH_WITH_TOPIC_IDS:
        is_metadata = topic.topic_id == CLUSTER_METADATA_TOPIC_ID
    else:
        is_metadata = topic.topic == CLUSTER_METADATA
    return (
        topic.partitions[0] if is_metadata and topic.partitions[0].partition == METADATA_PARTITION else None
    )


def leader_only_error(quorum: QuorumState, epoch: int) -> ErrorCode:
    """Return the error for a request that only the leader of ``epoch`` can answer; NONE if this node leads
    it."""
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > quorum.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if quorum.leadership is None:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


def voter_only_error(quorum: QuorumState, replica_id: int, epoch: int) -> ErrorCode:
    """Return the error for a request of a candidate or leader of ``epoch``; NONE if it can be considered."""
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if replica_id < 0:
        return ErrorCode.INVALID_REQUEST
    if not is_acceptable_epoch(epoch, quorum.epoch):
        return ErrorCode.UNKNOWN_LEADER_EPOCH  # INVALID_REQUEST would end a Java process
    return ErrorCode.NONE
