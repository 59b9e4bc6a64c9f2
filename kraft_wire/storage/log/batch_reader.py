"""Read record batches from a file, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from kraft_wire.log.batch import (
    BEGINNING,
    HEADER_SIZE_BYTES,
    LENGTH_END,
    Batch,
    BatchHeader,
    first_batch_size_bytes,
    scan_batches,
)
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.storage.disk import read_at

CHUNK_SIZE_BYTES = 1024 * 1024

_LAST_OFFSET_DELTA = Struct(">i")
_LAST_OFFSET_DELTA_POSITION = 23


def read_pages(
    fd: int, start: int, end: int, *, check_crc: bool = True, page_bytes: int = CHUNK_SIZE_BYTES
) -> Iterator[tuple[int, bytes, int, BatchHeader]]:
    """Yield the batches between two positions of a file, each as (page position, page, position in the page,
    header).

    A page is what one read returned: ``page_bytes``, or one larger batch. Raises CorruptBatch at the first
    bytes that are no batch, and CutOffBatch for a batch that ``end`` or the end of the file cuts off; the
    position is counted in the file, and the batches before have been yielded. Raises OSError.
    """
    position, want = start, page_bytes
    while position < end:
        wanted = min(want, end - position)
        page = read_at(fd, position, wanted)
        if len(page) < wanted:
            end = position + len(page)  # the file was cut since ``end`` was chosen
        consumed = 0
        try:
            for at, header in scan_batches(page, check_crc):
                consumed = at + header.size_bytes
                yield position, page, at, header
        except CorruptBatch as error:
            raise CorruptBatch(position + error.position, error.offset, error.reason) from None
        if consumed or position == end:
            want = page_bytes
        else:
            want = first_batch_size_bytes(page, position, end - position)
        position += consumed


def read_batches(
    fd: int, start: int, end: int, *, check_crc: bool = True, chunk_size_bytes: int = CHUNK_SIZE_BYTES
) -> Iterator[tuple[int, Batch]]:
    """Yield the batches between two positions of a file, each with its position. Raises what ``read_pages``
    raises."""
    found = read_pages(fd, start, end, check_crc=check_crc, page_bytes=chunk_size_bytes)
    for position, page, at, header in found:
        yield position + at, Batch(header, page[at : at + header.size_bytes])


def read_range(fd: int, position: int, end: int, offset: int, end_offset: int, max_bytes: int) -> bytes:
    """Return whole batches from the one that holds ``offset`` on, all below ``end_offset``.

    ``position`` is where that batch, or an earlier one, begins. Returns about ``max_bytes``, but at least one
    batch if there is one. Checksums aren't checked: they were when the file was opened or written. Raises
    OSError.
    """
    want = max_bytes + CHUNK_SIZE_BYTES // 16
    while True:
        data = read_at(fd, position, min(want, end - position))
        start, stop, needed = _extent(data, offset, end_offset, max_bytes)
        if stop > start or needed <= len(data) or position + len(data) >= end:
            return data[start:stop]
        want = max(2 * want, needed)


def _extent(data: bytes, offset: int, end_offset: int, max_bytes: int) -> tuple[int, int, int]:
    """Return where the wanted batches begin and end in ``data``, and how many bytes of it the next batch
    needs."""
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
