"""Fetch (1) for ordinary consumers of ``__cluster_metadata``: read only, and nothing that isn't committed.

A Fetch whose replica id is negative and that doesn't say what was fetched last comes from a consumer. All
others are raft's: of followers, of observers, and of readers of the log with replica id -1, as Java has it.
Only the leader answers with records; the others name it. Batches are served as they are in the log: control
records too, which every client skips. Versions: up to 12 topics go by name, from 13 on by id. Fetch sessions
(KIP-227) are declined: the session id in the answer is 0. Kafka requires READ on the topic.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kraft_wire.controller.consumer_metadata import CLUSTER_METADATA_TOPIC_ID
from kraft_wire.controller.topic_names import CLUSTER_METADATA_TOPIC
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.protocol.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)

FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
NEW_SESSION: Final = 0
NO_SESSION: Final = -1


class LogView(msgspec.Struct, frozen=True, gc=False):
    """The metadata log as this node has it. ``high_watermark`` is None until it is known in this epoch."""

    node_id: int
    leader_id: int
    epoch: int
    log_start_offset: int
    high_watermark: int | None

    @property
    def is_leader(self) -> bool:
        """Whether this node may answer with what is in the log."""
        return self.leader_id == self.node_id


class ConsumerRead(msgspec.Struct, frozen=True):
    """Put whole batches of [offset, end_offset) into ``records_of``, about ``max_bytes``, at least one batch,
    and answer with ``response``."""

    response: FetchResponse
    records_of: PartitionData
    offset: int
    end_offset: int
    max_bytes: int


class ConsumerWait(msgspec.Struct, frozen=True):
    """There is nothing at ``offset`` yet. When something is committed there, decide again; when
    ``max_wait_ms`` have passed, answer with ``response`` as it is."""

    response: FetchResponse
    offset: int
    max_wait_ms: int


class ConsumerAnswer(msgspec.Struct, frozen=True):
    """Answer with ``response`` as it is: an error, or nothing to read and no wish to wait."""

    response: FetchResponse


ConsumerDecision = ConsumerRead | ConsumerWait | ConsumerAnswer


def is_consumer_fetch(request: FetchRequest) -> bool:
    """Whether this Fetch is an ordinary consumer's: replicas have ids from 0 on (in ``replica_state`` from
    version 15 on), and whoever says what it fetched last wants to know what raft says of that."""
    is_replica = request.replica_id >= 0 or request.replica_state.replica_id >= 0
    return not is_replica and not any(
        partition.last_fetched_epoch >= 0 for topic in request.topics for partition in topic.partitions
    )


def decide(request: FetchRequest, version: int, view: LogView) -> ConsumerDecision:
    """What to do with a consumer's Fetch."""
    if request.session_id and request.session_epoch not in (NEW_SESSION, NO_SESSION):
        return ConsumerAnswer(FetchResponse(error_code=int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)))
    response = FetchResponse()
    wanted: tuple[FetchPartition, PartitionData] | None = None
    has_error = False
    for topic in request.topics:
        answers = [_partition(topic, partition, version, view) for partition in topic.partitions]
        response.responses.append(
            FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=answers)
        )
        for partition, answer in zip(topic.partitions, answers, strict=True):
            if answer.error_code:
                has_error = True
            elif wanted is None:
                wanted = partition, answer
    if wanted is None:
        return ConsumerAnswer(response)
    return _read(request, *wanted, response, may_wait=not has_error)


def _read(
    request: FetchRequest,
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
        return ConsumerWait(response, asked.fetch_offset, request.max_wait_ms)
    return ConsumerAnswer(response)


def _partition(topic: FetchTopic, asked: FetchPartition, version: int, view: LogView) -> PartitionData:
    answer = PartitionData(
        partition_index=asked.partition,
        error_code=int(_fault(topic, asked, version, view)),
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )
    if answer.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
        answer.current_leader = LeaderIdAndEpoch(leader_id=view.leader_id, leader_epoch=view.epoch)
    if not answer.error_code and view.high_watermark is not None:
        answer.high_watermark = answer.last_stable_offset = view.high_watermark
        answer.log_start_offset = view.log_start_offset
    return answer


def _fault(topic: FetchTopic, asked: FetchPartition, version: int, view: LogView) -> ErrorCode:
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
    """Why a client that believes in ``claimed_epoch`` (-1: it doesn't say) can't be served here; NONE if it
    can."""
    if 0 <= claimed_epoch < view.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if claimed_epoch > view.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if view.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _is_metadata_log(topic: FetchTopic, partition: int, version: int) -> bool:
    if version >= FIRST_VERSION_WITH_TOPIC_IDS:
        return topic.topic_id == CLUSTER_METADATA_TOPIC_ID and partition == 0
    return topic.topic == CLUSTER_METADATA_TOPIC and partition == 0
