"""Going through a file of batches: those that are whole, in runs, and what lies between them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple, Protocol

from kraft_wire.log.batch import BEGINNING, LENGTH_END, Batch, BatchHeader, scan_batches
from kraft_wire.log.chain import BatchChain
from kraft_wire.log.errors import BadSnapshot, CorruptBatch
from kraft_wire.log.recovery import is_torn_tail
from kraft_wire.spark.open_segment import MAX_BATCH_BYTES, OpenSegment, SegmentChanged, Spot
from kraft_wire.storage.disk import read_at
from kraft_wire.storage.search import is_cut_off, is_unwritten, plausible_batch

PAGE_BYTES: Final = 1024 * 1024
_BASE_OFFSET: Final = Struct(">q")


class Run(NamedTuple):
    """Whole batches one behind the other: ``data`` begins at ``position``, theirs are counted in it."""

    position: int
    data: bytes
    batches: list[tuple[int, BatchHeader]]


class Gap(NamedTuple):
    """Where records from ``offset`` on can't be read; ``resume_offset`` is that of the next that can be; None
    where there is none."""

    position: int
    offset: int
    reason: str
    resume_offset: int | None


class Marks(Protocol):
    """What batches must be beside following each other."""

    def take(self, batch: Batch) -> None:
        """Raises BadSnapshot."""
        ...


class BatchWalk:
    """The batches of a file from one on, each checked: checksum, offset, epoch.

    The walk ends before ``stop_offset``, or at the file's end, where ``next_offset`` is due: that of the
    batch behind it. Where it is None the log ends there, and what a crash leaves or a controller that is
    writing is no gap; nothing below ``durable_offset`` can be that.
    """

    def __init__(
        self,
        segment: OpenSegment,
        start: Spot,
        *,
        next_offset: int | None = None,
        stop_offset: int | None = None,
        durable_offset: int = 0,
        marks: Marks | None = None,
        page_bytes: int = PAGE_BYTES,
    ) -> None:
        self._segment = segment
        self._start = start
        self._next_offset = next_offset
        self._stop_offset = stop_offset
        self._durable_offset = durable_offset
        self._marks = marks
        self._page_bytes = page_bytes
        self._is_cut = False
        self._chain = BatchChain(start.base_offset, None)

    def __iter__(self) -> Iterator[Run | Gap]:
        """Raises SegmentChanged, OSError."""
        position, end, want = self._start.position, self._segment.end, self._page_bytes
        while position < end and not self._is_done:
            data = read_at(self._segment.fd, position, min(want, end - position))
            if len(data) < min(want, end - position):
                end, self._is_cut = position + len(data), True
            batches, size_bytes, problem = self._take(data)
            want = self._page_bytes
            if batches:
                yield Run(position, data, batches)
                position += size_bytes
            elif not problem:
                want = _size_of_first(data)
                problem = _size_problem(want, end - position)
            if problem and not self._is_done:
                gap, position = self._gap(position, problem)
                if gap is not None:
                    yield gap
        due = self._due
        if due is not None and self._chain.next_offset != due:
            self._check_is_as_listed()
            reason = f"offset {self._chain.next_offset} is due, and offset {due} follows"
            yield Gap(position, self._chain.next_offset, reason, due)

    @property
    def _is_done(self) -> bool:
        return self._stop_offset is not None and self._chain.next_offset >= self._stop_offset

    @property
    def _due(self) -> int | None:
        """What the walk must have reached in the end; a batch may lie across the offset that it stops at."""
        if self._is_done:
            return None
        return self._stop_offset if self._next_offset is None else self._next_offset

    def _take(self, data: bytes) -> tuple[list[tuple[int, BatchHeader]], int, str]:
        """The whole batches at the beginning, how many bytes they take, and what is wrong behind them."""
        batches: list[tuple[int, BatchHeader]] = []
        size_bytes = 0
        try:
            for at, header in scan_batches(data):
                if self._is_done:
                    break
                if self._marks is not None or not self._chain.take_usual(header):
                    self._look_at(at, Batch(header, data[at : at + header.size_bytes]))
                batches.append((at, header))
                size_bytes = at + header.size_bytes
        except CorruptBatch as error:
            return batches, size_bytes, error.reason
        except BadSnapshot as error:
            return batches, size_bytes, f"the snapshot {error}"
        return batches, size_bytes, ""

    def _look_at(self, at: int, batch: Batch) -> None:
        self._chain.take(at, batch)
        if self._marks is not None:
            self._marks.take(batch)

    def _gap(self, position: int, reason: str) -> tuple[Gap | None, int]:
        """The gap that begins here, if it is one, and the position to go on at."""
        offset = self._chain.next_offset
        resume = plausible_batch(self._segment, position + 1, offset)
        if resume is not None:
            resume_offset: int = _BASE_OFFSET.unpack(read_at(self._segment.fd, resume, 8))[0]
            self._chain = BatchChain(resume_offset, None)
            return Gap(position, offset, reason, resume_offset), resume
        due = self._due
        if due is None and self._is_torn(position, offset):
            return None, self._segment.end
        self._check_is_as_listed()
        if due is not None:
            self._chain = BatchChain(due, None)
        return Gap(position, offset, reason, due), self._segment.end

    def _check_is_as_listed(self) -> None:
        """Where the newest segment was cut, and written to again, a batch may lie across the end."""
        is_newest = self._next_offset is None and self._marks is None
        if self._is_cut or (is_newest and os.fstat(self._segment.fd).st_size != self._segment.end):
            raise SegmentChanged(self._segment.path, "it was cut")

    def _is_torn(self, position: int, offset: int) -> bool:
        return self._marks is None and is_torn_tail(
            offset,
            self._durable_offset,
            has_hole=is_unwritten(self._segment, position, offset),
            is_cut_off=is_cut_off(self._segment, position, offset),
            whole_batch_behind=False,
        )


def _size_of_first(data: bytes) -> int:
    """The size of a batch that ``data`` doesn't hold all of; one byte more than that where it doesn't say."""
    if len(data) < LENGTH_END:
        return len(data) + 1
    size_bytes: int = LENGTH_END + BEGINNING.unpack_from(data)[1]
    return size_bytes


def _size_problem(size_bytes: int, available: int) -> str:
    if size_bytes > available:
        return f"cut off: {available} bytes are left of a batch of {size_bytes}"
    if size_bytes > MAX_BATCH_BYTES:
        return f"length {size_bytes - LENGTH_END} is more than a batch of a metadata log takes"
    return ""
