"""Print indexes as Kafka's DumpLogSegments does, with the entries that disagree with their segment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from construct import Container, Struct

from kraft_wire.cli.dump.segment import READ_BUFFER_BYTES, absolute_path, whole_batches
from kraft_wire.cli.errors import CommandError
from kraft_wire.log.batch import BatchHeader
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.log.files import INDEX_SUFFIX, LOG_SUFFIX, parse_segment_file_name
from kraft_wire.log.layouts import OffsetEntryLayout, TimeEntryLayout

NO_TIMESTAMP = -1
NOT_FOUND = -1


class IndexErrors:
    """The entries of index files that their segments contradict, by file, in the wording of Kafka's tool."""

    def __init__(self) -> None:
        self._mismatches: dict[str, dict[int, int]] = {}
        self._times: dict[str, dict[str, list[str]]] = {}

    def wrong_offset(self, path: str, index_offset: int, log_offset: int) -> None:
        self._mismatches.setdefault(absolute_path(path), {})[index_offset] = log_offset

    def wrong_time(self, path: str, index_time: int, log_time: int) -> None:
        line = f"  Index timestamp: {index_time}, log timestamp: {log_time}"
        self._note("Found timestamp mismatch in", path, line)

    def time_goes_back(self, path: str, time: int, previous: int) -> None:
        line = f"  Index timestamp: {time}, Previously indexed timestamp: {previous}"
        self._note("Found out of order timestamp in", path, line)

    def offset_not_found(self, path: str, index_offset: int, log_offset: int) -> None:
        line = f"Indexed offset: {index_offset}, found log offset: {log_offset}"
        self._note("The following indexed offsets are not found in", path, line)

    def lines(self) -> Iterator[str]:
        for path, offsets in self._mismatches.items():
            yield f"Mismatches in :{path}"
            for index_offset, log_offset in sorted(offsets.items(), reverse=True):
                yield f"  Index offset: {index_offset}, log offset: {log_offset}"
        for title, by_path in self._times.items():
            for path, found in by_path.items():
                yield f"{title} :{path}"
                yield from found

    def _note(self, title: str, path: str, line: str) -> None:
        self._times.setdefault(title, {}).setdefault(absolute_path(path), []).append(line)


def dump_offset_index(path: str, errors: IndexErrors, *, quiet: bool) -> Iterator[str]:
    """Yield the entries of an .index, each compared with the batch that it points at; none with ``quiet``.

    Raises OSError, and CommandError if the segment beside the index can't be read.
    """
    base_offset = _base_offset(path)
    entries = _entries(path, OffsetEntryLayout)
    first = next(entries, None)
    if first is None:
        yield f"{path} is empty."
        return
    with Path(path).with_suffix(LOG_SUFFIX).open("rb", buffering=READ_BUFFER_BYTES) as segment:
        for entry in (first, *entries):
            offset, position = base_offset + entry.relative_offset, entry.position
            batch = _find_batch(segment, position, base_offset)
            found = batch.last_offset if batch is not None else NOT_FOUND
            if found != offset:
                errors.wrong_offset(path, offset, found)
            if not quiet:
                yield f"offset: {offset} position: {position}"


def dump_time_index(path: str, errors: IndexErrors, *, quiet: bool) -> Iterator[str]:
    """Yield the entries of a .timeindex, each compared with the batch at its offset; none with ``quiet``.

    Raises OSError, and CommandError if the segment beside the index can't be read.
    """
    base_offset = _base_offset(path)
    index = list(_entries(str(Path(path).with_suffix(INDEX_SUFFIX)), OffsetEntryLayout))
    previous = NO_TIMESTAMP
    with Path(path).with_suffix(LOG_SUFFIX).open("rb", buffering=READ_BUFFER_BYTES) as segment:
        for entry in _entries(path, TimeEntryLayout):
            time, offset = entry.timestamp, base_offset + entry.relative_offset
            before = (at.position for at in index if at.relative_offset <= entry.relative_offset)
            start = max(before, default=0)
            batch = _find_batch(segment, start, offset)
            if batch is None or batch.last_offset != offset:
                errors.offset_not_found(path, offset, batch.last_offset if batch is not None else NOT_FOUND)
            elif batch.max_timestamp != time:
                errors.wrong_time(path, time, batch.max_timestamp)
            if previous >= time:
                errors.time_goes_back(path, time, previous)
            if not quiet:
                yield f"timestamp: {time} offset: {offset}"
            previous = time


def _base_offset(path: str) -> int:
    """Raises OSError for a file that doesn't exist, and CommandError for a name that no index has."""
    Path(path).stat()
    segment = parse_segment_file_name(Path(path).name)
    if segment is None:
        raise CommandError(f"{path}: not the name of an index, such as 00000000000000000000.index")
    return segment[0]


def _entries(path: str, layout: Struct) -> Iterator[Container]:
    """Yield the entries of an index file, up to the zeros that pad the index of an active segment."""
    size_bytes = layout.sizeof()
    is_first = True
    with Path(path).open("rb", buffering=READ_BUFFER_BYTES) as file:
        while len(raw := file.read(size_bytes)) == size_bytes:
            entry = layout.parse(raw)
            if not is_first and not entry.relative_offset:
                return
            yield entry
            is_first = False


def _find_batch(segment: BinaryIO, position: int, offset: int) -> BatchHeader | None:
    """Return the first batch at or after ``position`` that ends at ``offset`` or later."""
    size_bytes = os.fstat(segment.fileno()).st_size
    segment.seek(position)
    try:
        for _, batch in whole_batches(segment, size_bytes, position):
            if batch.header.last_offset >= offset:
                return batch.header
    except CorruptBatch as error:
        raise CommandError(f"{segment.name}: after byte {position}: {error.reason}") from error
    return None
