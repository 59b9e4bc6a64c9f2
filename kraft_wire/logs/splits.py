"""Cut ranges of logs on disk into pieces, at the beginnings of batches, and pack the pieces into tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.log.snapshot import SnapshotId, snapshot_file_name
from kraft_wire.logs.copy import LogCopy
from kraft_wire.logs.open_segment import OpenSegment, SegmentFile, opened
from kraft_wire.logs.store import LogRange, P
from kraft_wire.logs.walk import Spot
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.storage.errors import SegmentChanged
from kraft_wire.storage.log.batch_reader import read_batches

TASK_BYTES: Final = 64 * 1024 * 1024
"""About this many bytes are worth a task, which costs some 30 ms besides its work."""
SPLIT_BYTES: Final = 8 * 1024 * 1024
"""Pieces are smaller than tasks, so that tasks of about the same size can be made of them."""


class SnapshotFile(NamedTuple):
    """The snapshot of a piece. ``timestamp_ms`` is that of the last record that the snapshot covers; None if
    it can't be read."""

    id: SnapshotId
    timestamp_ms: int | None


class FilePiece(msgspec.Struct, frozen=True):
    """Whole batches of one file, between two positions; the first batch begins at ``base_offset``.

    ``next_offset`` is the offset after the last batch; None if the file ends there. A piece of a log has the
    rows from ``from_offset`` on and below ``to_offset``, if there is one; a piece of a snapshot has all rows.
    """

    cluster: str
    path: str
    start: int
    end: int
    base_offset: int
    next_offset: int | None = None
    from_offset: int = 0
    to_offset: int | None = None
    committed_end_offset: int | None = None
    durable_offset: int = 0
    snapshot: SnapshotFile | None = None

    @property
    def size_bytes(self) -> int:
        return self.end - self.start


def log_pieces(copy: LogCopy, wanted: LogRange, split_bytes: int = SPLIT_BYTES) -> Iterator[FilePiece]:
    """Yield the pieces of a range of the log, in the order of the offsets. Raises SegmentChanged, OSError."""
    for number, segment in enumerate(copy.segments):
        next_offset = copy.next_base_offset(number)
        is_before = next_offset is not None and next_offset <= wanted.start_offset
        is_after = wanted.end_offset is not None and segment.base_offset >= wanted.end_offset
        if not is_before and not is_after:
            whole = FilePiece(
                copy.cluster,
                segment.path,
                0,
                segment.size_bytes,
                segment.base_offset,
                next_offset,
                wanted.start_offset,
                wanted.end_offset,
                wanted.committed_end_offset,
                copy.durable_offset,
            )
            with opened(segment) as file:
                yield from _split(whole, *_ends(file, wanted), file, split_bytes)


def _ends(file: OpenSegment, wanted: LogRange) -> tuple[Spot, Spot | None]:
    """Return where a range begins and ends in a file, as exactly as its index says; None for the end of the
    file."""
    is_all = wanted.end_offset is None
    return file.at_or_before(wanted.start_offset), None if is_all else file.after(wanted.end_offset or 0)


def snapshot_pieces(copy: LogCopy, snapshot_id: SnapshotId, split_bytes: int) -> Iterator[FilePiece]:
    """Yield the pieces of a snapshot. Raises SegmentChanged, OSError."""
    path = Path(copy.path) / snapshot_file_name(snapshot_id)
    try:
        segment = SegmentFile(str(path), 0, path.stat().st_size)
    except FileNotFoundError:
        raise SegmentChanged(path, "it was deleted") from None
    with opened(segment) as file:
        whole = FilePiece(
            copy.cluster,
            segment.path,
            0,
            segment.size_bytes,
            base_offset=0,
            snapshot=SnapshotFile(snapshot_id, _timestamp_ms(file)),
        )
        pieces = list(_split(whole, file.first, None, file, split_bytes))
        yield from pieces or [whole]  # of an empty file it must be said that it is damaged


def _timestamp_ms(file: OpenSegment) -> int | None:
    try:
        _, first = next(read_batches(file.fd, 0, file.end))
        header = decode_control_batch(first)[0]
    except (CorruptBatch, StopIteration):
        return None  # reading the snapshot reports it
    return header.last_contained_log_timestamp if isinstance(header, SnapshotHeaderRecord) else None


def _split(
    whole: FilePiece, start: Spot, end: Spot | None, file: OpenSegment, split_bytes: int
) -> Iterator[FilePiece]:
    last = Spot(whole.end, -1) if end is None else end
    spots = [start, *file.cuts(start, last.position, split_bytes), last]
    for begin, following in pairwise(spots):
        if following.position > begin.position:
            is_last = following is spots[-1] and end is None
            yield msgspec.structs.replace(
                whole,
                start=begin.position,
                end=following.position,
                base_offset=begin.base_offset,
                next_offset=whole.next_offset if is_last else following.base_offset,
            )


def packed(pieces: Iterable[P], task_bytes: int = TASK_BYTES) -> list[tuple[P, ...]]:
    """Pack pieces, in their order, into tasks of about the same size.

    There are two, four, eight, ... tasks, so that they use that many cores to the end.
    """
    found = list(pieces)
    left_bytes = sum(piece.size_bytes for piece in found)
    left_tasks = 1 << max(0, round(log2(max(left_bytes, 1) / task_bytes)))
    tasks: list[tuple[P, ...]] = []
    task: list[P] = []
    size_bytes = 0
    for piece in found:
        if task and size_bytes + piece.size_bytes / 2 > left_bytes / left_tasks:
            tasks.append(tuple(task))
            left_bytes, left_tasks = left_bytes - size_bytes, max(1, left_tasks - 1)
            task, size_bytes = [], 0
        task.append(piece)
        size_bytes += piece.size_bytes
    return [*tasks, tuple(task)] if task else tasks
