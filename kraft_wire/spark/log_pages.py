"""Reading a piece of a segment page by page: memory doesn't grow with the segment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kraft_wire.columnar.page import Page
from kraft_wire.log.batch import LENGTH_END
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.spark.log_splits import Piece
from kraft_wire.storage.errors import StorageError

PAGE_BYTES: Final = 1024 * 1024


class CorruptSegment(StorageError):
    """Bytes of a segment that are no batches; what, where, and what to do."""


def pages_of(piece: Piece, page_bytes: int = PAGE_BYTES) -> Iterator[Page]:
    """The piece's batches. One that is cut off by the piece's end isn't all there yet, and is left out.

    Raises CorruptSegment, OSError.
    """
    fd = os.open(piece.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        position, want = piece.start, page_bytes
        while position < piece.end:
            data = os.pread(fd, min(want, piece.end - position), position)
            page, size_bytes = _page(data, position, piece)
            if size_bytes:
                yield page
                position, want = position + size_bytes, page_bytes
            elif len(data) < want:
                return
            else:
                want = _size_of_first(data)
    finally:
        os.close(fd)


def _page(data: bytes, position: int, piece: Piece) -> tuple[Page, int]:
    try:
        return Page.of(data)
    except CorruptBatch as error:
        raise CorruptSegment(
            Path(piece.path),
            f"no batch at byte {position + error.position} (offset {error.offset}): {error.reason}",
        ) from None


def _size_of_first(data: bytes) -> int:
    return LENGTH_END + int.from_bytes(data[8:LENGTH_END], "big")
