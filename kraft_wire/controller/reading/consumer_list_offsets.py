"""Serve ListOffsets (2) requests of ordinary consumers: the log start offset and the high watermark.

Only the leader answers; other nodes answer NOT_LEADER_OR_FOLLOWER. Timestamps are looked up in the log, which
this module does not do: ``timestamps_wanted`` returns the timestamps that the caller has to look up before
``respond``. Versions: 4 adds leader epochs, 7 the offset of the largest timestamp (-3), 8 and 9 local and
tiered offsets (-4, -5; here the log start offset, and none), 11 the earliest offset not yet tiered (-6).
Kafka requires DESCRIBE on the topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kraft_wire.controller.reading import NO_OFFSET
from kraft_wire.controller.reading.consumer_fetch import LogView, leadership_fault
from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
)
from kraft_wire.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
NO_TIMESTAMP: Final = -1
NO_EPOCH: Final = -1
FIRST_VERSION_WITH_LEADER_EPOCH: Final = 4
FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE: Final = 5


class FoundOffset(msgspec.Struct, frozen=True, gc=False):
    """The first committed record at or after a timestamp, or the one with the largest timestamp."""

    offset: int
    timestamp_ms: int
    leader_epoch: int = NO_EPOCH


def timestamps_wanted(request: ListOffsetsRequest, view: LogView) -> list[int]:
    """Return the timestamps, including MAX_TIMESTAMP, that the caller has to look up in the log."""
    if CLUSTER_METADATA in view.refused_topics:
        return []
    wanted = {
        asked.timestamp
        for topic in request.topics
        if topic.name == CLUSTER_METADATA
        for asked in topic.partitions
        if asked.partition_index == 0 and (asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP)
    }
    return sorted(wanted)


def respond(
    request: ListOffsetsRequest,
    version: int,
    view: LogView,
    found: Mapping[int, FoundOffset | None] | None = None,
) -> ListOffsetsResponse:
    """Return the response. Topics that the client may not see come last, as in Kafka.

    ``found`` has the record of each of ``timestamps_wanted``, None if there is no such record. A timestamp
    that is not in it gets UNSUPPORTED_FOR_MESSAGE_FORMAT, as in a log without time index.
    """
    topics = sorted(request.topics, key=lambda topic: topic.name in view.refused_topics)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_partition(topic.name, p, version, view, found or {}) for p in topic.partitions],
            )
            for topic in topics
        ]
    )


def _refusal(index: int, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=int(code))


def _partition(
    topic: str,
    asked: ListOffsetsPartition,
    version: int,
    view: LogView,
    found: Mapping[int, FoundOffset | None],
) -> ListOffsetsPartitionResponse:
    index = asked.partition_index
    if topic in view.refused_topics:
        return _refusal(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if topic != CLUSTER_METADATA or index != 0:
        return _refusal(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if fault := leadership_fault(asked.current_leader_epoch, view):
        return _refusal(index, fault)
    if view.high_watermark is None:
        if version >= FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE:
            return _refusal(index, ErrorCode.OFFSET_NOT_AVAILABLE)
        return _refusal(index, ErrorCode.LEADER_NOT_AVAILABLE)
    answer = _offset(index, asked.timestamp, view, view.high_watermark, found)
    if version < FIRST_VERSION_WITH_LEADER_EPOCH:
        answer.leader_epoch = NO_EPOCH
    return answer


def _offset(
    index: int, timestamp: int, view: LogView, high_watermark: int, found: Mapping[int, FoundOffset | None]
) -> ListOffsetsPartitionResponse:
    answer = ListOffsetsPartitionResponse(
        partition_index=index, offset=NO_OFFSET, timestamp=NO_TIMESTAMP, leader_epoch=NO_EPOCH
    )
    if timestamp == LATEST:
        answer.offset, answer.leader_epoch = high_watermark, view.epoch
    elif timestamp in (EARLIEST, EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD):
        answer.offset = view.log_start_offset
    elif timestamp == LATEST_TIERED:
        pass  # nothing is tiered, so there is no offset
    elif timestamp not in found:
        answer.error_code = int(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
    elif (hit := found[timestamp]) is not None and hit.offset < high_watermark:
        answer.offset, answer.timestamp, answer.leader_epoch = hit.offset, hit.timestamp_ms, hit.leader_epoch
    return answer
