"""ListOffsets (2) for ordinary consumers of ``__cluster_metadata``: where it begins, where its committed part
ends.

Only the leader answers; the others say so. A timestamp is looked up in the log's time index, which is not for
this module: ``timestamps_wanted`` names what the caller has to look up before ``respond``. Versions: 4 adds
leader epochs, 7 the offset of the largest timestamp (-3), 8 and 9 local and tiered offsets (-4, -5; here the
log's beginning, and none), 11 the earliest not yet tiered (-6). Kafka requires DESCRIBE on the topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kraft_wire.controller.consumer_fetch import LogView, leadership_fault
from kraft_wire.controller.topic_names import CLUSTER_METADATA_TOPIC
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
NO_OFFSET: Final = -1
NO_TIMESTAMP: Final = -1
NO_EPOCH: Final = -1
FIRST_VERSION_WITH_LEADER_EPOCH: Final = 4
FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE: Final = 5


class FoundOffset(msgspec.Struct, frozen=True, gc=False):
    """The first committed record at or after a timestamp (or the one with the largest)."""

    offset: int
    timestamp_ms: int
    leader_epoch: int = NO_EPOCH


def timestamps_wanted(request: ListOffsetsRequest) -> list[int]:
    """The timestamps (MAX_TIMESTAMP among them) that the caller has to look up in the log."""
    wanted = {
        asked.timestamp
        for topic in request.topics
        if topic.name == CLUSTER_METADATA_TOPIC
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
    """Answer. ``found`` has what ``timestamps_wanted`` asked for, None for "no such record"; a timestamp that
    it lacks is refused as a log without time index is, with UNSUPPORTED_FOR_MESSAGE_FORMAT."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_partition(topic.name, p, version, view, found or {}) for p in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def error_response(
    request: ListOffsetsRequest, version: int, code: ErrorCode, message: str
) -> ListOffsetsResponse:
    """The code for each partition; there is no place for the message."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[_refusal(p.partition_index, code) for p in topic.partitions]
            )
            for topic in request.topics
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
    if topic != CLUSTER_METADATA_TOPIC or index != 0:
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
        pass  # nothing is tiered: no offset
    elif timestamp not in found:
        answer.error_code = int(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
    elif (hit := found[timestamp]) is not None and hit.offset < high_watermark:
        answer.offset, answer.timestamp, answer.leader_epoch = hit.offset, hit.timestamp_ms, hit.leader_epoch
    return answer
