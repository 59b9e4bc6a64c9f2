"""What every raft request is checked for first, and what every answer says of the leader
(KafkaRaftClient)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest
from kraft_wire.raft.epochs import is_believable
from kraft_wire.raft.quorum import Quorum

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


def is_other_cluster(quorum: Quorum, cluster_id: str | None) -> bool:
    """Whether a request is meant for another cluster; one that names none is for us."""
    return cluster_id is not None and cluster_id != quorum.config.cluster_id


def only_partition(topics: Sequence[_Topic[P]]) -> P | None:
    """The request's one and only partition, if it is the metadata partition."""
    if len(topics) != 1 or topics[0].topic_name != CLUSTER_METADATA or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    return partition if partition.partition_index == METADATA_PARTITION else None


def only_fetch_partition(request: FetchRequest, version: int) -> FetchPartition | None:
    """The same for Fetch, which goes by topic id from version 13 on."""
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


def leader_only_error(quorum: Quorum, epoch: int) -> ErrorCode:
    """Why a request that only the leader of ``epoch`` answers can't be answered; NONE if it can."""
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > quorum.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if quorum.leadership is None:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


def voter_only_error(quorum: Quorum, replica_id: int, epoch: int) -> ErrorCode:
    """Why a request of a candidate or leader of ``epoch`` is refused out of hand; NONE if it isn't."""
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if replica_id < 0:
        return ErrorCode.INVALID_REQUEST
    if not is_believable(epoch, quorum.epoch):
        return ErrorCode.UNKNOWN_LEADER_EPOCH  # and not INVALID_REQUEST, which ends a Java process
    return ErrorCode.NONE
