"""Walk the batches of a file, checking each one, past bytes that are no batch."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from struct import Struct
from typing import Final, NamedTuple

from kraft_wire.log.batch import Batch, BatchHeader
from kraft_wire.log.chain import BatchChain
from kraft_wire.log.errors import BadSnapshot, CorruptBatch
from kraft_wire.log.recovery import is_torn_tail
from kraft_wire.log.snapshot import SnapshotMarks
from kraft_wire.storage.disk import read_at
from kraft_wire.storage.errors import SegmentChanged
from kraft_wire.storage.log.batch_reader import CHUNK_SIZE_BYTES, read_pages
from kraft_wire.storage.log.search import SegmentBytes, is_cut_off, is_unwritten, plausible_batch

_BASE_OFFSET: Final = Struct(">q")


class Spot(NamedTuple):
    """The position of a whole batch, and the offset of its first record."""

    position: int
    base_offset: int


class Run(NamedTuple):
    """Whole batches that follow each other. ``data`` was read at ``position``; the batches' own positions are
    counted in ``data``."""

    position: int
    data: bytes
    batches: list[tuple[int, BatchHeader]]


class Gap(NamedTuple):
    """Bytes at ``position`` that should hold the records from ``offset`` on, and can't be read.
    ``resume_offset`` is the offset of the next batch that can be read; None if there is none."""

    position: int
    offset: int
    reason: str
    resume_offset: int | None


class BatchWalk:
    """The batches of a file from ``start`` on, with checksum, offset and epoch of each checked.

    The walk ends before ``stop_offset``, or at the end of the file. ``next_offset`` is the offset of the
    batch after the file's last one; None if the log ends in this file. At the log's end, bytes that a crash
    leaves, or that a controller is writing, are no gap, unless they lie below ``durable_offset``.
    """

    def __init__(
        self,
        segment: SegmentBytes,
        start: Spot,
        *,
        next_offset: int | None = None,
        stop_offset: int | None = None,
        durable_offset: int = 0,
        marks: SnapshotMarks | None = None,
        page_bytes: int = CHUNK_SIZE_BYTES,
    ) -> None:
        self._segment = segment
        self._end = segment.file_size_bytes()
        self._position = start.position
        self._next_offset = next_offset
        self._stop_offset = stop_offset
        self._durable_offset = durable_offset
        self._marks = marks
        self._page_bytes = page_bytes
        self._chain = BatchChain(start.base_offset, None)

    def __iter__(self) -> Iterator[Run | Gap]:
        """Yield runs and the gaps between them. Raises SegmentChanged, OSError."""
        while self._position < self._end and not self._is_done:
            problem = yield from self._runs()
            if problem is None or self._is_done:
                break
            gap, self._position = self._gap(self._position, problem.reason)
            if gap is not None:
                yield gap
        expected = self._expected_end
        if expected is not None and self._chain.next_offset != expected:
            self._check_is_unchanged()
            reason = f"the batches end at offset {self._chain.next_offset}, and offset {expected} follows"
            yield Gap(self._position, self._chain.next_offset, reason, expected)

    def _runs(self) -> Generator[Run, None, CorruptBatch | None]:
        """Yield the runs up to the first bytes that are no batch; returns what is wrong with these."""
        run = None
        problem = None
        try:
            found = read_pages(self._segment.fd, self._position, self._end, page_bytes=self._page_bytes)
            for position, page, at, header in found:
                if self._is_done:
                    break
                self._check(position, page, at, header)
                if run is None or run.position != position:
                    if run is not None:
                        yield run
                    run = Run(position, page, [])
                run.batches.append((at, header))
                self._position = position + at + header.size_bytes
        except CorruptBatch as error:
            problem = error
        if run is not None:
            yield run
        return problem

    @property
    def _is_done(self) -> bool:
        return self._stop_offset is not None and self._chain.next_offset >= self._stop_offset

    @property
    def _expected_end(self) -> int | None:
        """The offset that the walk must reach; None if any will do. A batch may extend beyond
        ``stop_offset``."""
        if self._is_done:
            return None
        return self._stop_offset if self._next_offset is None else self._next_offset

    def _check(self, position: int, page: bytes, at: int, header: BatchHeader) -> None:
        """Raises CorruptBatch if the batch can't come next."""
        if self._marks is None and self._chain.take_usual(header):
            return
        batch = Batch(header, page[at : at + header.size_bytes])
        self._chain.take(position + at, batch)
        if self._marks is not None:
            try:
                self._marks.take(batch)
            except BadSnapshot as error:
                raise CorruptBatch(position + at, header.base_offset, f"the snapshot {error}") from None

    def _gap(self, position: int, reason: str) -> tuple[Gap | None, int]:
        """Return the gap that begins here, if it is one, and the position to go on at."""
        offset = self._chain.next_offset
        resume = plausible_batch(self._segment, position + 1, offset)
        if resume is not None:
            resume_offset: int = _BASE_OFFSET.unpack(read_at(self._segment.fd, resume, 8))[0]
            self._chain = BatchChain(resume_offset, None)
            return Gap(position, offset, reason, resume_offset), resume
        expected = self._expected_end
        if expected is None and self._is_torn(position, offset):
            return None, self._end
        self._check_is_unchanged()
        if expected is not None:
            self._chain = BatchChain(expected, None)
        return Gap(position, offset, reason, expected), self._end

    def _check_is_unchanged(self) -> None:
        """Raises SegmentChanged if a controller has cut the file, or is appending to it: in the newest
        segment, a batch may lie across the end that was listed."""
        size_bytes = os.fstat(self._segment.fd).st_size
        is_newest = self._next_offset is None and self._marks is None
        if size_bytes < self._end or (is_newest and size_bytes != self._end):
            raise SegmentChanged(self._segment.path, "it was cut")

    def _is_torn(self, position: int, offset: int) -> bool:
        return self._marks is None and is_torn_tail(
            offset,
            self._durable_offset,
            has_hole=is_unwritten(self._segment, position, offset),
            is_cut_off=is_cut_off(self._segment, position, offset),
            whole_batch_after=False,
        )
