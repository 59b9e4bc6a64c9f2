"""Search for whole batches where a log can't be read on: they show how much of the log there was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import Final, Protocol

import msgspec

from kraft_wire.log.batch import (
    BEGINNING,
    HEADER_SIZE_BYTES,
    LENGTH_END,
    MAGIC,
    MAGIC_POSITION,
    MAX_READABLE_BATCH_SIZE_BYTES,
    Batch,
    is_intact,
)
from kraft_wire.log.chain import last_voters
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.storage.disk import read_at
from kraft_wire.storage.log.batch_reader import read_batches

MIN_RECORD_SIZE_BYTES: Final = 7
"""The smallest record: length, attributes, two deltas, no key, no value, no headers, one byte each. It bounds
how many records unreadable bytes held."""

_BLOCK_SIZE_BYTES = 512
"""The smallest block of any file system."""

_WINDOW_SIZE_BYTES = 16 * 1024 * 1024
_BASE_OFFSET = Struct(">q")
_MAX_PLAUSIBLE_GAP = 2**31


class SegmentBytes(Protocol):
    """The file of a segment that is searched."""

    base_offset: int
    path: Path
    fd: int

    def file_size_bytes(self) -> int: ...


class AfterDamage(msgspec.Struct):
    """The result of a search after the first damage. No record of the log had ``end_offset`` or a higher
    offset. ``voters`` is the last VotersRecord that can still be read."""

    end_offset: int
    voters: VotersRecord | None = None


def plausible_batch(segment: SegmentBytes, start: int, offset: int) -> int | None:
    """Return the first position from ``start`` on of a batch with a valid checksum that may come after
    ``offset``; None if there is none. A batch at ``start`` itself counts with any offset."""
    for position in _intact_positions(segment, start):
        base_offset = _BASE_OFFSET.unpack(read_at(segment.fd, position, _BASE_OFFSET.size))[0]
        if position == start or offset <= base_offset < offset + _MAX_PLAUSIBLE_GAP:
            return position
    return None


def is_unwritten(segment: SegmentBytes, position: int, offset: int) -> bool:
    """Whether a block of the batch that should begin at ``position`` with ``offset`` never reached the disk:
    it is zero from its own beginning, or from the batch's, to its end."""
    end = segment.file_size_bytes()
    block_end = position + _BLOCK_SIZE_BYTES - position % _BLOCK_SIZE_BYTES
    beginning = read_at(segment.fd, position, min(block_end, end) - position)
    # Only offset 0 is all zeros; no length is.
    if len(beginning) >= (_BASE_OFFSET.size if offset else LENGTH_END) and not any(beginning):
        return True
    length = int.from_bytes(read_at(segment.fd, position, LENGTH_END)[_BASE_OFFSET.size :], "big")
    batch_end = min(position + LENGTH_END + min(length, MAX_READABLE_BATCH_SIZE_BYTES), end)
    for start in range(block_end, max(batch_end, block_end + 1), _BLOCK_SIZE_BYTES):
        block = read_at(segment.fd, start, _BLOCK_SIZE_BYTES)
        if block and not any(block):
            return True
    return False


def is_cut_off(segment: SegmentBytes, position: int, offset: int) -> bool:
    """Whether the file ends within the batch that should begin at ``position`` with ``offset``.

    Not if the header doesn't belong to such a batch, and not if only the length is wrong, which the checksum
    doesn't cover: that is damage.
    """
    rest = bytearray(read_at(segment.fd, position, MAX_READABLE_BATCH_SIZE_BYTES))
    if len(rest) < HEADER_SIZE_BYTES:
        return True
    base_offset, length, magic = *BEGINNING.unpack_from(rest), rest[MAGIC_POSITION]
    if base_offset != offset or magic != MAGIC or not 0 < length < MAX_READABLE_BATCH_SIZE_BYTES:
        return False
    if LENGTH_END + length <= len(rest):
        return False
    BEGINNING.pack_into(rest, 0, base_offset, len(rest) - LENGTH_END)
    return not is_intact(bytes(rest))


def position_of(segment: SegmentBytes, position: int, offset: int, wanted: int) -> int | None:
    """Return where the whole batch that begins with the ``wanted`` offset lies, searched from ``position``
    on, where ``offset`` should be; None if there is none."""
    for at, batch in _believable(segment, position, offset):
        if batch.header.base_offset >= wanted:
            return at if batch.header.base_offset == wanted else None
    return None


def scan_after(segments: Sequence[SegmentBytes], position: int, offset: int) -> AfterDamage:
    """Return what the segments held from ``position`` in the first of them on, where ``offset`` should be.

    The segments' names are trusted.
    """
    after = AfterDamage(offset)
    for segment in segments:
        after.end_offset = max(after.end_offset, segment.base_offset)
        seen = position if segment is segments[0] else 0
        for at, batch in _believable(segment, seen, after.end_offset):
            after.end_offset = batch.header.next_offset
            after.voters = last_voters(batch) or after.voters
            seen = at + batch.header.size_bytes
        if segment is segments[-1]:
            after.end_offset += (segment.file_size_bytes() - seen) // MIN_RECORD_SIZE_BYTES
    return after


def _believable(segment: SegmentBytes, position: int, offset: int) -> Iterator[tuple[int, Batch]]:
    """Yield the whole batches from ``position`` on, where ``offset`` should be, whose offsets are possible.

    A checksum covers neither offset nor epoch. An offset is possible if the bytes before the batch have room
    for as many records.
    """
    for at, batch in _islands(segment, position):
        room = (at - position) // MIN_RECORD_SIZE_BYTES
        if 0 <= batch.header.base_offset - offset <= room:
            yield at, batch
            offset, position = batch.header.next_offset, at + batch.header.size_bytes


def _islands(segment: SegmentBytes, position: int) -> Iterator[tuple[int, Batch]]:
    """Yield every whole batch from ``position`` on, with its position."""
    size_bytes = segment.file_size_bytes()
    while position < size_bytes:
        found = next(_intact_positions(segment, position), None)
        if found is None:
            return
        position = found + 1
        try:
            for at, batch in read_batches(segment.fd, found, size_bytes):
                yield at, batch
                position = at + batch.header.size_bytes
        except CorruptBatch:
            continue


def _intact_positions(segment: SegmentBytes, start: int) -> Iterator[int]:
    end = segment.file_size_bytes()
    for window_start in range(start, end, _WINDOW_SIZE_BYTES):
        size_bytes = min(_WINDOW_SIZE_BYTES + HEADER_SIZE_BYTES, end - window_start)
        for at in _candidates(read_at(segment.fd, window_start, size_bytes)):
            if _is_whole_batch(segment, window_start + at, end):
                yield window_start + at


def _candidates(window: bytes) -> list[int]:
    """Return where in ``window`` the fixed bytes of a batch's header are right: version 2, a length below 16
    MiB."""
    import numpy  # only needed if the log is damaged

    count = len(window) - HEADER_SIZE_BYTES + 1
    if count <= 0:
        return []
    data = numpy.frombuffer(window, numpy.uint8)
    right = (data[16 : 16 + count] == 2) & (data[8 : 8 + count] == 0)
    return [int(at) for at in numpy.flatnonzero(right)]


def _is_whole_batch(segment: SegmentBytes, position: int, end: int) -> bool:
    beginning = read_at(segment.fd, position, LENGTH_END)
    size_bytes = LENGTH_END + int.from_bytes(beginning[8:], "big", signed=True)
    if not HEADER_SIZE_BYTES <= size_bytes <= end - position:
        return False
    return is_intact(read_at(segment.fd, position, size_bytes))
