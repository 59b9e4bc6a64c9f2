"""Walk a segment or a snapshot from its first batch to its end, with one batch in memory at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import google_crc32c

from kraft_wire.cli.dump.batch_text import RecordText, batch_line
from kraft_wire.cli.errors import CommandError
from kraft_wire.log.batch import LENGTH_END, Batch, read_header
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.log.files import parse_segment_file_name
from kraft_wire.log.snapshot import parse_snapshot_file_name

BOOTSTRAP_NAME = "bootstrap.checkpoint"
READ_BUFFER_BYTES = 1024 * 1024

_SMALLEST_HEADER_BYTES = 17
"""Java looks for another batch only where base offset, length, epoch and magic fit."""
_CRC_START = 21


class OffsetGaps:
    """The gaps between record offsets, by file. The first offset is expected to be 0."""

    def __init__(self) -> None:
        self._gaps: dict[str, dict[int, int]] = {}

    def note(self, path: str, last_offset: int, offset: int) -> None:
        if offset != last_offset + 1:
            self._gaps.setdefault(absolute_path(path), {})[last_offset] = offset

    def lines(self) -> Iterator[str]:
        for path, pairs in self._gaps.items():
            yield f"Non-consecutive offsets in {path}"
            yield from (f"  {last} is followed by {offset}" for last, offset in sorted(pairs.items()))


def dump_segment(path: str, records: RecordText | None, gaps: OffsetGaps, max_bytes: int) -> Iterator[str]:
    """Yield the lines of a .log or .checkpoint file; without ``records``, those of batches only.

    Raises OSError, and CommandError with the position at which the file holds something other than batches.
    """
    last_offset, current, end = -1, 0, 0
    with Path(path).open("rb", buffering=READ_BUFFER_BYTES) as file:
        yield _title(path)
        size_bytes = os.fstat(file.fileno()).st_size
        try:
            for current, batch in whole_batches(file, min(size_bytes, max_bytes)):
                yield batch_line(batch.header, current, is_valid=is_valid(batch))
                if records is not None:
                    gaps.note(path, last_offset, batch.header.base_offset)
                    last_offset = batch.header.last_offset
                    yield from records.lines(batch)
                current = end = current + batch.header.size_bytes
        except CorruptBatch as error:
            raise CommandError(f"{path}: {_at(error, current)}") from error
    if end < size_bytes <= max_bytes:
        yield f"Found {size_bytes - end} invalid bytes at the end of {Path(path).name}"


def whole_batches(file: BinaryIO, end: int, position: int = 0) -> Iterator[tuple[int, Batch]]:
    """Yield the batches from ``position``, where ``file`` stands, that end at or before ``end``.

    Stops at a batch that is cut off, as Java's tool does. Raises CorruptBatch, with the position
    counted from the batch's start.
    """
    while end - position >= _SMALLEST_HEADER_BYTES:
        start = file.read(LENGTH_END)
        length = int.from_bytes(start[LENGTH_END - 4 :], signed=True)
        if length > end - position - LENGTH_END:
            return
        data = start + file.read(max(length, 0))
        header = read_header(data, 0)
        if header is None:
            return
        yield position, Batch(header, data)
        position += header.size_bytes


def is_valid(batch: Batch) -> bool:
    """Whether the batch's checksum matches its bytes."""
    return int(google_crc32c.value(batch.data[_CRC_START:])) == batch.header.crc


def absolute_path(path: str) -> str:
    """Return the path after the working directory, otherwise as it was given, as Java does."""
    return path if path.startswith("/") else f"{Path.cwd()}/{path}"


def _title(path: str) -> str:
    name = Path(path).name
    if name == BOOTSTRAP_NAME:
        return "KRaft bootstrap snapshot"
    if (segment := parse_segment_file_name(name)) is not None:
        return f"Log starting offset: {segment[0]}"
    if (snapshot_id := parse_snapshot_file_name(name)) is not None:
        return f"Snapshot end offset: {snapshot_id.end_offset}, epoch: {snapshot_id.epoch}"
    raise CommandError(
        f"{path}: not the name of a segment, such as 00000000000000000000.log, or of a snapshot, such as "
        "00000000000000000042-0000000001.checkpoint"
    )


def _at(error: CorruptBatch, batch_position: int) -> str:
    position = batch_position + max(error.position, 0)
    return f"byte {position} (offset {error.offset}): {error.reason}"
