"""What a log's files hold when a node starts: every batch is read and checked, and what does not fit is
judged.

A tail that a crash tore off is cut away: it was never flushed, so nobody was told that it is there.
Everything else that does not fit is corruption, and nothing is changed. It is a torn tail only if

- it lies above the durable floor (what is known to have been flushed), and
- no whole batch can be found in it or behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct

import msgspec

from kraft_wire.log.batch import HEADER_SIZE_BYTES, LENGTH_END, Batch, is_intact
from kraft_wire.log.control import starts_epoch
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.storage.batch_reader import read_batches
from kraft_wire.storage.disk import Disk, read_at
from kraft_wire.storage.errors import CorruptLog
from kraft_wire.storage.segment import Segment

_WINDOW_SIZE_BYTES = 16 * 1024 * 1024
_BASE_OFFSET = Struct(">q")
_MAX_PLAUSIBLE_GAP = 2**31


class TornTail(msgspec.Struct, frozen=True):
    """Bytes that a crash left incomplete and recovery cut away."""

    path: Path
    position: int
    offset: int
    size_bytes: int
    reason: str


class Recovered(msgspec.Struct):
    """The segments of a log, whole, and the epochs in them. ``torn_tail`` is what was cut away to get
    there."""

    segments: list[Segment]
    epochs: EpochCache
    torn_tail: TornTail | None = None


class BatchChain:
    """Checks that batches follow each other as those of one metadata log do.

    A checksum covers neither base offset nor leader epoch; these are held against the batches around:
    offsets are contiguous, epochs don't go back, and an epoch begins with its leader's LeaderChange and
    nowhere else.
    """

    def __init__(self, next_offset: int, max_epoch: int | None) -> None:
        self.next_offset = next_offset
        self.epochs = EpochCache()
        self._max_epoch = max_epoch
        self._latest_epoch: int | None = None

    def take(self, position: int, batch: Batch) -> None:
        """Raises CorruptBatch where the batch cannot come next."""
        header = batch.header
        is_usual = header.base_offset == self.next_offset and header.leader_epoch == self._latest_epoch
        if header.is_control or not is_usual:
            problem = self._problem(batch)
            if problem:
                raise CorruptBatch(position, self.next_offset, problem)
            self.epochs.assign(header.leader_epoch, header.base_offset)
            self._latest_epoch = header.leader_epoch
        self.next_offset = header.next_offset

    def _problem(self, batch: Batch) -> str:
        header = batch.header
        latest = self._latest_epoch
        if header.base_offset != self.next_offset:
            return f"it says offset {header.base_offset}"
        if latest is not None and header.leader_epoch < latest:
            return f"its epoch {header.leader_epoch} comes after epoch {latest}"
        if self._max_epoch is not None and header.leader_epoch > self._max_epoch:
            return f"its epoch {header.leader_epoch} is above {self._max_epoch}, the last one in quorum-state"
        if latest is not None and starts_epoch(batch) != (header.leader_epoch > latest):
            return (
                f"epoch {header.leader_epoch} does not begin with its leader's record, after epoch {latest}"
            )
        return ""


def recover(
    folder: Path, base_offsets: Sequence[int], disk: Disk, *, durable_floor: int, max_epoch: int | None
) -> Recovered:
    """Open the segments that begin at ``base_offsets`` (ascending, at least one), cutting a torn tail away.

    ``max_epoch`` is the epoch in quorum-state, where there is one. Raises CorruptLog, with every file as it
    was; OSError; DiskFailed.
    """
    segments: list[Segment] = []
    try:
        for base_offset in base_offsets:
            segments.append(Segment.open(folder, base_offset, disk))
        chain = BatchChain(base_offsets[0], max_epoch)
        for number, segment in enumerate(segments):
            problem = _scan(segment, chain)
            if problem is not None:
                judge(segments[number:], problem, chain.next_offset, durable_floor)
                torn = _cut(segments, number, chain.next_offset, problem, disk)
                return Recovered(segments, chain.epochs, torn)
        if chain.next_offset < durable_floor:
            last = segments[-1]
            reason = f"the log ends here, and it was durable up to offset {durable_floor}"
            raise CorruptLog(last.path, last.size_bytes, last.end_offset, reason)
    except BaseException:
        for segment in segments:
            segment.close()
        raise
    return Recovered(segments, chain.epochs)


def _scan(segment: Segment, chain: BatchChain) -> CorruptBatch | None:
    """Feed the segment with its batches; returns what is wrong with the first that cannot be there."""
    if segment.base_offset != chain.next_offset:
        return CorruptBatch(0, chain.next_offset, f"the segment begins at offset {segment.base_offset}")
    try:
        for position, batch in read_batches(segment.fd, 0, segment.file_size_bytes()):
            chain.take(position, batch)
            segment.note(batch.header)
    except CorruptBatch as error:
        return error
    return None


def judge(segments: Sequence[Segment], problem: CorruptBatch, offset: int, durable_floor: int) -> None:
    """Return for a torn tail that begins with ``problem`` in the first of ``segments``; else raise
    CorruptLog."""
    first = segments[0]
    if offset < durable_floor:
        reason = f"{problem.reason}; the log was durable up to offset {durable_floor}"
        raise CorruptLog(first.path, problem.position, offset, reason)
    for segment in segments:
        start = problem.position if segment is first else 0
        found = next(_whole_batches(segment, start, offset), None)
        if found is not None:
            reason = f"{problem.reason}; a whole batch is at byte {found} of {segment.path.name}"
            raise CorruptLog(first.path, problem.position, offset, reason)


def _whole_batches(segment: Segment, start: int, offset: int) -> Iterator[int]:
    """Positions from ``start`` on at which a batch with a good checksum lies that may belong behind
    ``offset``."""
    end = segment.file_size_bytes()
    for window_start in range(start, end, _WINDOW_SIZE_BYTES):
        window = read_at(
            segment.fd, window_start, min(_WINDOW_SIZE_BYTES + HEADER_SIZE_BYTES, end - window_start)
        )
        for at in _candidates(window):
            position = window_start + at
            if _is_whole_batch(segment, position, end):
                base_offset = _BASE_OFFSET.unpack_from(window, at)[0]
                if position == start or offset <= base_offset < offset + _MAX_PLAUSIBLE_GAP:
                    yield position


def _candidates(window: bytes) -> list[int]:
    """Where in ``window`` the fixed bytes of a batch's header are right: version 2, a length below 16 MiB."""
    import numpy  # not needed by a node whose log is whole

    count = len(window) - HEADER_SIZE_BYTES + 1
    if count <= 0:
        return []
    data = numpy.frombuffer(window, numpy.uint8)
    right = (data[16 : 16 + count] == 2) & (data[8 : 8 + count] == 0)
    return [int(at) for at in numpy.flatnonzero(right)]


def _is_whole_batch(segment: Segment, position: int, end: int) -> bool:
    beginning = read_at(segment.fd, position, LENGTH_END)
    size_bytes = LENGTH_END + int.from_bytes(beginning[8:], "big", signed=True)
    if not HEADER_SIZE_BYTES <= size_bytes <= end - position:
        return False
    return is_intact(read_at(segment.fd, position, size_bytes))


def _cut(
    segments: list[Segment], number: int, end_offset: int, problem: CorruptBatch, disk: Disk
) -> TornTail:
    """Let the log end at ``end_offset``, where the segment of this number stops making sense."""
    torn = segments[number]
    lost = sum(segment.file_size_bytes() for segment in segments[number:]) - torn.size_bytes
    report = TornTail(torn.path, torn.size_bytes, end_offset, lost, problem.reason)
    keep = number + 1 if torn.end_offset == end_offset else number
    while len(segments) > keep:
        segments.pop().remove()
    if keep > number:
        disk.truncate(torn.fd, torn.size_bytes, torn.path)
        torn.flush()
    return report
