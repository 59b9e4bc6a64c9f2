"""Check a segment's index files against its batches.

Kafka indexes other batches than kraft-wire does, and pads the files of the active segment with zeros. So
every entry must be true, but no entry must exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from kraft_wire.log.batch import BatchHeader
from kraft_wire.log.index import OFFSET_ENTRY, TIME_ENTRY
from kraft_wire.storage.log.batch_reader import read_batches
from kraft_wire.storage.log.segment import Segment


def offset_index_problem(segment: Segment, data: bytes) -> str:
    """Return the problem of the .index file of a whole segment; empty if it has none."""
    entries, problem = _entries(data, OFFSET_ENTRY)
    positions = [position for _, position in entries]
    if positions != sorted(set(positions)):
        return "its positions don't ascend"
    wanted = set(positions)
    at = {position: header for position, header in _headers(segment) if position in wanted}
    for offset, position in entries:
        if position not in at:
            return f"no batch begins at byte {position}"
        if at[position].last_offset != segment.base_offset + offset:
            return (
                f"says that the batch at byte {position} ends with offset {segment.base_offset + offset}, "
                f"and it ends with {at[position].last_offset}"
            )
    return problem


def time_index_problem(segment: Segment, data: bytes) -> str:
    """Return the problem of the .timeindex file of a whole segment; empty if it has none."""
    entries, problem = _entries(data, TIME_ENTRY)
    times = [time for time, _ in entries]
    if times != sorted(set(times)):
        return "its times don't ascend"
    wanted = {segment.base_offset + offset for _, offset in entries}
    of = {header.last_offset: header for _, header in _headers(segment) if header.last_offset in wanted}
    for time, relative in entries:
        offset = segment.base_offset + relative
        if offset not in of:
            return f"no batch ends with offset {offset}"
        if of[offset].max_timestamp != time:
            return f"says time {time} of offset {offset}, whose batch says {of[offset].max_timestamp}"
    return problem


def _headers(segment: Segment) -> Iterator[tuple[int, BatchHeader]]:
    for position, batch in read_batches(segment.fd, 0, segment.size_bytes, check_crc=False):
        yield position, batch.header


def _entries(data: bytes, layout: Struct) -> tuple[list[tuple[int, int]], str]:
    """Return the entries before the padding, and the problem of the file as a whole."""
    whole = len(data) // layout.size * layout.size
    entries: list[tuple[int, int]] = list(layout.iter_unpack(data[:whole]))
    end = next((number for number, entry in enumerate(entries) if entry == (0, 0)), len(entries))
    if any(data[end * layout.size :]):
        return entries[:end], f"there are bytes after its last entry, at byte {end * layout.size}"
    if whole != len(data) and end == len(entries):
        return entries[:end], f"its last entry is cut off, at byte {whole}"
    return entries[:end], ""
