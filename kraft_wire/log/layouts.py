"""Declare the layouts of a log folder's binary files with ``construct``.

Commands that print index files use them, and tests, as a second, independent reading of the same bytes. They
are too slow for anything else.
"""

from __future__ import annotations

from construct import (
    Array,
    BitStruct,
    Bytes,
    Const,
    Flag,
    GreedyRange,
    Int8sb,
    Int16sb,
    Int32sb,
    Int32ub,
    Int64sb,
    Padding,
    Prefixed,
    Struct,
    Tell,
    ZigZag,
    this,
)
from construct import Enum as NamedNumber

BatchAttributes = BitStruct(
    "unused" / Padding(9),
    "has_delete_horizon" / Flag,
    "is_control" / Flag,
    "is_transactional" / Flag,
    "is_log_append_time" / Flag,
    "compression_high" / Flag,
    "compression_middle" / Flag,
    "compression_low" / Flag,
)

BatchHeaderLayout = Struct(
    "base_offset" / Int64sb,
    "length" / Int32sb,
    "leader_epoch" / Int32sb,
    "magic" / Const(2, Int8sb),
    "crc" / Int32ub,
    "attributes" / BatchAttributes,
    "last_offset_delta" / Int32sb,
    "base_timestamp" / Int64sb,
    "max_timestamp" / Int64sb,
    "producer_id" / Int64sb,
    "producer_epoch" / Int16sb,
    "base_sequence" / Int32sb,
    "record_count" / Int32sb,
)

RecordLayout = Prefixed(
    ZigZag,
    Struct(
        "attributes" / Int8sb,
        "timestamp_delta" / ZigZag,
        "offset_delta" / ZigZag,
        "key_length" / ZigZag,
        "key" / Bytes(lambda context: max(context.key_length, 0)),
        "value_length" / ZigZag,
        "value" / Bytes(lambda context: max(context.value_length, 0)),
        "header_count" / ZigZag,
    ),
)

BatchLayout = Struct(
    "start" / Tell,
    "header" / BatchHeaderLayout,
    "records" / Array(this.header.record_count, RecordLayout),
    "end" / Tell,
)

SegmentLayout = GreedyRange(BatchLayout)
"""The layout of a .log or .checkpoint file: record batches, one after the other."""

OffsetEntryLayout = Struct("relative_offset" / Int32sb, "position" / Int32sb)
TimeEntryLayout = Struct("timestamp" / Int64sb, "relative_offset" / Int32sb)
OffsetIndexLayout = GreedyRange(OffsetEntryLayout)
TimeIndexLayout = GreedyRange(TimeEntryLayout)

ControlRecordKeyLayout = Struct(
    "version" / Int16sb,
    "type"
    / NamedNumber(
        Int16sb, leader_change=2, snapshot_header=3, snapshot_footer=4, kraft_version=5, kraft_voters=6
    ),
)
