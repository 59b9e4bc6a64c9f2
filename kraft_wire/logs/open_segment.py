"""Read one segment or snapshot file: find batches by its sparse index."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kraft_wire.log.batch import LENGTH_END, MAX_READABLE_BATCH_SIZE_BYTES, is_intact, read_header
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.log.files import INDEX_SUFFIX, LOG_SUFFIX
from kraft_wire.log.index import OFFSET_ENTRY
from kraft_wire.logs.walk import Spot
from kraft_wire.storage.disk import read_at
from kraft_wire.storage.errors import SegmentChanged
from kraft_wire.storage.log.batch_reader import read_batches

_TRIES: Final = 16
_PADDING: Final = (0, 0)


class Entry(NamedTuple):
    """The last offset of a batch, and where the batch begins."""

    last_offset: int
    position: int


class SegmentFile(msgspec.Struct, frozen=True):
    """One file of batches, with its size when it was listed.

    ``known`` are batches that were seen there before, in order: a copy of a log may lack its index.
    """

    path: str
    base_offset: int
    size_bytes: int
    known: tuple[Entry, ...] = ()


class OpenSegment:
    """A file of batches up to a position. ``kraft_wire.storage.log`` can search and walk it.

    The index may be missing, short, padded or damaged. An entry is trusted if a whole batch lies at its
    position and ends with its offset. Entries are read from disk one by one, as the index may have megabytes
    of padding.
    """

    def __init__(self, fd: int, index_fd: int | None, segment: SegmentFile, end: int) -> None:
        self.fd = fd
        self.path = Path(segment.path)
        self.base_offset = segment.base_offset
        self.end = end
        self._index_fd = index_fd
        self._known = segment.known

    def file_size_bytes(self) -> int:
        """Return ``end``: bytes after it are ignored."""
        return self.end

    @property
    def first(self) -> Spot:
        return Spot(0, self.base_offset)

    def last_indexed(self) -> Spot:
        """Return the last batch in the index."""
        found = self._nearest(range(self._entry_count - 1, -1, -1)) or self.first
        return self._nearest_known(found, self._known)

    def at_or_before(self, offset: int) -> Spot:
        """Return a batch that begins with this offset or a lower one, as close to it as the index allows."""
        slot = bisect_right(range(self._entry_count), offset, key=lambda slot: self._entry(slot)[0])
        found = self._nearest(range(slot - 1, -1, -1)) or self.first
        return self._nearest_known(found, [each for each in self._known if each.last_offset <= offset])

    def after(self, offset: int) -> Spot | None:
        """Return a batch that begins with a higher offset; None if the index has none."""
        slot = bisect_left(range(self._entry_count), offset, key=lambda slot: self._entry(slot)[0])
        return self._nearest(range(slot + 1, self._entry_count))

    def near_position(self, position: int) -> Spot:
        """Return a batch that begins at a position or before it, as close to it as the index allows."""
        slot = bisect_right(range(self._entry_count), position, key=lambda slot: self._entry(slot)[1])
        return self._nearest(range(slot - 1, -1, -1)) or self.first

    def cuts(self, start: Spot, end: int, split_bytes: int) -> Iterator[Spot]:
        """Yield batches between two positions that are at least ``split_bytes`` from each other and from
        both."""
        find = self._indexed_from if self._entry_count else self._hop_to
        last = start
        while end - last.position >= 2 * split_bytes:
            cut = find(last, last.position + split_bytes)
            if cut is None or end - cut.position < split_bytes:
                return
            yield cut
            last = cut

    def spots(self, start: Spot) -> Iterator[Spot]:
        """Yield the batches from one on, by their lengths alone, up to where they can't be followed."""
        try:
            for position, batch in read_batches(self.fd, start.position, self.end, check_crc=False):
                yield Spot(position, batch.header.base_offset)
        except CorruptBatch:
            return  # reading the batches reports it

    def _indexed_from(self, last: Spot, position: int) -> Spot | None:
        slot = bisect_left(range(self._entry_count), position, key=lambda slot: self._entry(slot)[1])
        return self._nearest(range(slot, self._entry_count))

    def _hop_to(self, last: Spot, position: int) -> Spot | None:
        return next((spot for spot in self.spots(last) if spot.position >= position), None)

    def _nearest(self, slots: range) -> Spot | None:
        """Return the first of some entries that can be trusted."""
        found = (self._checked(*self._entry(slot)) for slot in slots[:_TRIES])
        return next((spot for spot in found if spot is not None), None)

    def _nearest_known(self, indexed: Spot, known: Sequence[Entry]) -> Spot:
        """Return the last of some known batches that lies after an indexed one, and is still there."""
        for entry in reversed(known):
            if entry.position <= indexed.position:
                break
            spot = self._checked(*entry)
            if spot is not None:
                return spot
        return indexed

    def _checked(self, last_offset: int, position: int) -> Spot | None:
        if not 0 <= position < self.end:
            return None
        beginning = read_at(self.fd, position, LENGTH_END)
        size_bytes = LENGTH_END + int.from_bytes(beginning[8:], "big", signed=True)
        if not LENGTH_END < size_bytes <= min(MAX_READABLE_BATCH_SIZE_BYTES, self.end - position):
            return None
        data = read_at(self.fd, position, size_bytes)
        if not is_intact(data):
            return None
        header = read_header(data, 0)
        if header is None or header.last_offset != last_offset:
            return None
        return Spot(position, header.base_offset)

    @cached_property
    def _entry_count(self) -> int:
        if self._index_fd is None:
            return 0
        slots = range(os.fstat(self._index_fd).st_size // OFFSET_ENTRY.size)
        return bisect_left(slots, True, key=lambda slot: self._raw_entry(slot) == _PADDING)

    def _entry(self, slot: int) -> tuple[int, int]:
        """Return the last offset and the position of a batch."""
        relative_offset, position = self._raw_entry(slot)
        return self.base_offset + relative_offset, position

    def _raw_entry(self, slot: int) -> tuple[int, int]:
        assert self._index_fd is not None, "there are no entries without it"
        data = os.pread(self._index_fd, OFFSET_ENTRY.size, slot * OFFSET_ENTRY.size)
        return OFFSET_ENTRY.unpack(data) if len(data) == OFFSET_ENTRY.size else _PADDING


@contextmanager
def opened(segment: SegmentFile, end: int | None = None) -> Iterator[OpenSegment]:
    """Open a segment file; ``end`` is the position up to which it is read, None for its listed size.

    Raises SegmentChanged, OSError.
    """
    try:
        fd = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise SegmentChanged(Path(segment.path), "it was deleted") from None
    try:
        index_fd = _open_index(segment)
        try:
            yield OpenSegment(fd, index_fd, segment, segment.size_bytes if end is None else end)
        finally:
            if index_fd is not None:
                os.close(index_fd)
    finally:
        os.close(fd)


def _open_index(segment: SegmentFile) -> int | None:
    if not segment.path.endswith(LOG_SUFFIX):
        return None
    try:
        return os.open(segment.path.removesuffix(LOG_SUFFIX) + INDEX_SUFFIX, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
