"""Looks timestamps up in the log, for consumers that ask where a moment is (ListOffsets)."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.controller.consumer_list_offsets import MAX_TIMESTAMP, FoundOffset
from kraft_wire.log.batch import BatchHeader
from kraft_wire.storage.errors import OffsetBelowStart
from kraft_wire.storage.log import MetadataLog


def find_timestamps(
    log: MetadataLog, timestamps: Sequence[int], end_offset: int
) -> dict[int, FoundOffset | None]:
    """For each timestamp the first record below ``end_offset`` that is not older; for MAX_TIMESTAMP the
    first of the newest. None where there is no such record.

    All records of a metadata batch have the batch's timestamp. Reads the log; may run beside its owner, who
    may trim the log meanwhile: then what is left of it is read again.
    """
    while True:
        try:
            return _find(log, timestamps, end_offset)
        except OffsetBelowStart:
            continue


def _find(log: MetadataLog, timestamps: Sequence[int], end_offset: int) -> dict[int, FoundOffset | None]:
    found: dict[int, FoundOffset | None] = dict.fromkeys(timestamps)
    newest: BatchHeader | None = None
    for batch in log.batches(log.start_offset, end_offset):
        header = batch.header
        if newest is None or header.max_timestamp > newest.max_timestamp:
            newest = header
        for timestamp, answer in found.items():
            if answer is None and 0 <= timestamp <= header.max_timestamp:
                found[timestamp] = _first_of(header)
    if MAX_TIMESTAMP in found and newest is not None:
        found[MAX_TIMESTAMP] = _first_of(newest)
    return found


def _first_of(header: BatchHeader) -> FoundOffset:
    return FoundOffset(header.base_offset, header.max_timestamp, header.leader_epoch)
