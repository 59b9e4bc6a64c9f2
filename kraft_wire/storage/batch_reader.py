"""Reading record batches out of a file, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from kraft_wire.log.batch import BEGINNING, HEADER_SIZE_BYTES, LENGTH_END, Batch, scan_batches
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.storage.disk import read_at

CHUNK_SIZE_BYTES = 1024 * 1024

_LAST_OFFSET_DELTA = Struct(">i")
_LAST_OFFSET_DELTA_POSITION = 23


def read_batches(
    fd: int, start: int, end: int, *, check_crc: bool = True, chunk_size_bytes: int = CHUNK_SIZE_BYTES
) -> Iterator[tuple[int, Batch]]:
    """The batches between two positions of a file, each with its position.

    Raises CorruptBatch, its position counted in the file, for the first that is none or is cut off by
    ``end``; what came before it has been yielded. Raises OSError.
    """
    position = start
    want = chunk_size_bytes
    while position < end:
        data = read_at(fd, position, min(want, end - position))
        consumed = 0
        try:
            for at, header in scan_batches(data, check_crc):
                consumed = at + header.size_bytes
                yield position + at, Batch(header, data[at:consumed])
        except CorruptBatch as error:
            raise CorruptBatch(position + error.position, error.offset, error.reason) from None
        if not consumed:
            want = _size_of_first(data, position, end)
        else:
            want = chunk_size_bytes
        position += consumed


def _size_of_first(data: bytes, position: int, end: int) -> int:
    """The size of a batch that did not fit into ``data``. Raises CorruptBatch where it does not fit at
    all.
    """
    available = end - position
    if available < LENGTH_END:
        raise CorruptBatch(position, -1, f"cut off: {available} bytes are left")
    base_offset, length = BEGINNING.unpack_from(data)
    size_bytes: int = LENGTH_END + length
    if size_bytes > available:
        reason = f"cut off: {available} bytes are left of a batch of {size_bytes}"
        raise CorruptBatch(position, base_offset, reason)
    return size_bytes


def read_range(fd: int, position: int, end: int, offset: int, end_offset: int, max_bytes: int) -> bytes:
    """Whole batches from the one that holds ``offset`` on, all below ``end_offset``.

    ``position`` is where some batch at or before it begins. About ``max_bytes`` of them, at least one where
    there is one. Nothing is checked: the file was, when it was opened or written. Raises OSError.
    """
    want = max_bytes + CHUNK_SIZE_BYTES // 16
    while True:
        data = read_at(fd, position, min(want, end - position))
        start, stop, needed = _extent(data, offset, end_offset, max_bytes)
        if stop > start or needed <= len(data) or position + len(data) >= end:
            return data[start:stop]
        want = max(2 * want, needed)


def _extent(data: bytes, offset: int, end_offset: int, max_bytes: int) -> tuple[int, int, int]:
    """Where the wanted batches begin and end in ``data``, and how much of it would show the next one."""
    at = 0
    start = stop = -1
    while len(data) - at >= HEADER_SIZE_BYTES:
        base_offset, length = BEGINNING.unpack_from(data, at)
        following = at + LENGTH_END + length
        if following > len(data):
            return max(start, 0), max(stop, 0), following
        last_offset = base_offset + _LAST_OFFSET_DELTA.unpack_from(data, at + _LAST_OFFSET_DELTA_POSITION)[0]
        if last_offset >= offset:
            if start < 0:
                start = stop = at
            if last_offset >= end_offset or (stop > start and following - start > max_bytes):
                return start, stop, 0
            stop = following
        at = following
    return max(start, 0), max(stop, 0), at + HEADER_SIZE_BYTES
