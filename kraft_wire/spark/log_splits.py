"""Cutting logs into pieces that tasks read: large segments where their index allows, small ones together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import Final

import msgspec

from kraft_wire.log.batch import MAGIC
from kraft_wire.log.files import INDEX_SUFFIX, LOG_SUFFIX
from kraft_wire.log.index import OFFSET_ENTRY
from kraft_wire.spark.log_folders import LogFolder, SegmentFile

_BEGINNING: Final = Struct(">qiibIhi")
SPLIT_BYTES: Final = 64 * 1024 * 1024
"""Each task costs some 30 ms beside its work: fewer bytes aren't worth one."""


class Piece(msgspec.Struct, frozen=True):
    """Whole batches of one segment, from one position to another."""

    cluster: str
    path: str
    start: int
    end: int
    committed_end_offset: int | None

    @property
    def size_bytes(self) -> int:
        return self.end - self.start


def pieces_of(folder: LogFolder, split_bytes: int = SPLIT_BYTES) -> Iterator[Piece]:
    """A log's pieces, in the order of their offsets. Raises OSError."""
    for segment in folder.segments:
        cuts = [0, *_cuts(segment, split_bytes), segment.size_bytes]
        for start, end in pairwise(cuts):
            if end > start:
                yield Piece(folder.cluster, segment.path, start, end, folder.committed_end_offset)


def _cuts(segment: SegmentFile, split_bytes: int) -> Iterator[int]:
    """Positions of batches, at least so far apart, and from the end."""
    if segment.size_bytes < 2 * split_bytes:
        return
    last = 0
    with Path(segment.path).open("rb") as file:
        for offset, position in _index_entries(segment):
            if position - last < split_bytes or segment.size_bytes - position < split_bytes:
                continue
            if _is_batch(os.pread(file.fileno(), _BEGINNING.size, position), offset):
                yield position
                last = position


def _is_batch(data: bytes, last_offset: int) -> bool:
    """Whether a batch that ends at this offset seems to begin here: an index may be damaged."""
    if len(data) < _BEGINNING.size:
        return False
    base_offset, _, _, magic, _, _, last_delta = _BEGINNING.unpack(data)
    return bool(magic == MAGIC and base_offset + last_delta == last_offset)


def _index_entries(segment: SegmentFile) -> Iterator[tuple[int, int]]:
    """The last offset and the position of batches, as the index says. It may be missing, or behind."""
    index = Path(segment.path.removesuffix(LOG_SUFFIX) + INDEX_SUFFIX)
    data = index.read_bytes() if index.exists() else b""
    whole = len(data) - len(data) % OFFSET_ENTRY.size
    for relative_offset, position in OFFSET_ENTRY.iter_unpack(data[:whole]):
        yield segment.base_offset + relative_offset, position


def packed(pieces: Iterable[Piece], split_bytes: int = SPLIT_BYTES) -> list[tuple[Piece, ...]]:
    """One task's pieces each: as many as it takes to be worth a task, in their order."""
    tasks: list[tuple[Piece, ...]] = []
    task: list[Piece] = []
    size_bytes = 0
    for piece in pieces:
        task.append(piece)
        size_bytes += piece.size_bytes
        if size_bytes >= split_bytes:
            tasks.append(tuple(task))
            task, size_bytes = [], 0
    return [*tasks, tuple(task)] if task else tasks
