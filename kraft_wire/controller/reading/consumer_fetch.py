"""Serve Fetch (1) requests of ordinary consumers of ``__cluster_metadata``: committed records only.

A Fetch is a consumer's if it has a negative replica id and no last fetched epoch. All others are raft's:
those of followers, of observers, and of readers of the log that use replica id -1, as in Java. Only the
leader answers with records; other nodes answer with the id of the leader. Batches are served as they are in
the log, with control batches, which every client skips. Versions: up to 12 a topic has a name, from 13 on an
id. Fetch sessions (KIP-227) are not used: the session id in the response is 0. Kafka requires READ on the
topic.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.protocol.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)

FIRST_VERSION_WITH_LEADER: Final = 12
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
NEW_SESSION: Final = 0
NO_SESSION: Final = -1
MOST_WAIT_MS: Final = 30_000
"""A Fetch waits so long at most. Java's clients by default wait no longer for an answer, and a client that
is gone without a word is found out by an answer only."""


class LogView(msgspec.Struct, frozen=True, gc=False):
    """The metadata log as this node has it and as one client may see it.

    ``high_watermark`` is None until it is known in this epoch. ``refused_topics`` are the names of topics
    that the client has no permission for.
    """

    node_id: int
    leader_id: int
    epoch: int
    log_start_offset: int
    high_watermark: int | None
    refused_topics: frozenset[str] = frozenset()

    @property
    def is_leader(self) -> bool:
        """Whether this node may answer with records."""
        return self.leader_id == self.node_id


class ConsumerRead(msgspec.Struct, frozen=True):
    """Answer with ``response`` after reading the log.

    ``records_of`` gets whole batches of [offset, end_offset): about ``max_bytes``, at least one batch.
    """

    response: FetchResponse
    records_of: PartitionData
    offset: int
    end_offset: int
    max_bytes: int


class ConsumerWait(msgspec.Struct, frozen=True):
    """Wait, because there is nothing at ``offset`` yet.

    When something is committed there, or after ``max_wait_ms``, decide on ``request``: the same question,
    which doesn't wait again. It has a few fields, however much the client's request had.
    """

    request: FetchRequest
    offset: int
    max_wait_ms: int


class ConsumerAnswer(msgspec.Struct, frozen=True):
    """Answer with ``response`` at once: an error, or no records and no time to wait."""

    response: FetchResponse


ConsumerDecision = ConsumerRead | ConsumerWait | ConsumerAnswer


def is_consumer_fetch(request: FetchRequest) -> bool:
    """Whether this Fetch is of an ordinary consumer.

    A Fetch with a last fetched epoch needs raft to compare it with the log.
    """
    return not is_of_replica(request) and not any(
        partition.last_fetched_epoch >= 0 for topic in request.topics for partition in topic.partitions
    )


def is_of_replica(request: FetchRequest) -> bool:
    """Whether this Fetch is of a broker or a controller: they have ids from 0 on.

    The id is in ``replica_state`` from version 15 on.
    """
    return request.replica_id >= 0 or request.replica_state.replica_id >= 0


def decide(request: FetchRequest, version: int, view: LogView) -> ConsumerDecision:
    """Decide on a consumer's Fetch."""
    if request.session_id and request.session_epoch not in (NEW_SESSION, NO_SESSION):
        return ConsumerAnswer(FetchResponse(error_code=int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)))
    response = FetchResponse()
    wanted: tuple[FetchTopic, FetchPartition, PartitionData] | None = None
    asked_count = 0
    for topic in request.topics:
        answers = [_partition(topic, partition, version, view) for partition in topic.partitions]
        response.responses.append(
            FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=answers)
        )
        for partition, answer in zip(topic.partitions, answers, strict=True):
            asked_count += 1
            if not answer.error_code and wanted is None:
                wanted = topic, partition, answer
    if wanted is None:
        return ConsumerAnswer(response)
    # There is one partition. With more there is an error, or the same one twice: no reason to wait.
    return _read(request, *wanted, response, may_wait=asked_count == 1)


def _read(
    request: FetchRequest,
    topic: FetchTopic,
    asked: FetchPartition,
    answer: PartitionData,
    response: FetchResponse,
    *,
    may_wait: bool,
) -> ConsumerDecision:
    if asked.fetch_offset < answer.high_watermark:
        max_bytes = max(0, min(request.max_bytes, asked.partition_max_bytes))
        return ConsumerRead(response, answer, asked.fetch_offset, answer.high_watermark, max_bytes)
    if may_wait and request.max_wait_ms > 0 and request.min_bytes > 0:
        max_wait_ms = min(request.max_wait_ms, MOST_WAIT_MS)
        return ConsumerWait(_without_wait(request, topic, asked), asked.fetch_offset, max_wait_ms)
    return ConsumerAnswer(response)


def _without_wait(request: FetchRequest, topic: FetchTopic, asked: FetchPartition) -> FetchRequest:
    """Return the same question about the one partition, to be answered at once. Other topics of the request
    have no partitions."""
    partition = FetchPartition(
        partition=asked.partition,
        current_leader_epoch=asked.current_leader_epoch,
        fetch_offset=asked.fetch_offset,
        partition_max_bytes=asked.partition_max_bytes,
    )
    topic = FetchTopic(topic=topic.topic, topic_id=topic.topic_id, partitions=[partition])
    return FetchRequest(max_bytes=request.max_bytes, topics=[topic])


def _partition(topic: FetchTopic, asked: FetchPartition, version: int, view: LogView) -> PartitionData:
    answer = PartitionData(
        partition_index=asked.partition,
        error_code=int(_fault(topic, asked, version, view)),
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )
    is_elsewhere = answer.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
    if is_elsewhere and version >= FIRST_VERSION_WITH_LEADER:
        answer.current_leader = LeaderIdAndEpoch(leader_id=view.leader_id, leader_epoch=view.epoch)
    if not answer.error_code and view.high_watermark is not None:
        answer.high_watermark = answer.last_stable_offset = view.high_watermark
        answer.log_start_offset = view.log_start_offset
    return answer


def _fault(topic: FetchTopic, asked: FetchPartition, version: int, view: LogView) -> ErrorCode:
    if topic_name(topic, version) in view.refused_topics:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if not _is_metadata_log(topic, asked.partition, version):
        by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        return ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if fault := leadership_fault(asked.current_leader_epoch, view):
        return fault
    if view.high_watermark is None:
        return ErrorCode.OFFSET_NOT_AVAILABLE
    if not view.log_start_offset <= asked.fetch_offset <= view.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    return ErrorCode.NONE


def leadership_fault(claimed_epoch: int, view: LogView) -> ErrorCode:
    """Return the reason why a client at ``claimed_epoch`` (-1 for none) can't be served here, or NONE."""
    if 0 <= claimed_epoch < view.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if claimed_epoch > view.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if view.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER


def topic_name(topic: FetchTopic, version: int) -> str | None:
    """Return the name of a requested topic, or None for an unknown id."""
    if version < FIRST_VERSION_WITH_TOPIC_IDS:
        return topic.topic
    return CLUSTER_METADATA if topic.topic_id == CLUSTER_METADATA_TOPIC_ID else None


def _is_metadata_log(topic: FetchTopic, partition: int, version: int) -> bool:
    return topic_name(topic, version) == CLUSTER_METADATA and partition == 0
