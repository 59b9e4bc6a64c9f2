"""The metadata log of a live quorum: where it begins and ends, and what is in between.

Nothing at or past the high watermark comes out of here. Every batch's checksum is looked at, and whether its
offsets continue those before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import msgspec

from kraft_wire.client.errors import CorruptAnswer, LogRangeGone
from kraft_wire.client.questions import NOT_SAID, FetchAnswer
from kraft_wire.client.quorum import Quorum
from kraft_wire.log.batch import BatchHeader, read_header, scan_batches
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import ErrorCode

FETCH_BYTES: Final = 8 * 1024 * 1024
ONE_BATCH_BYTES: Final = 1
"""Controllers serve at least one batch, whatever its size."""
FIRST_SERVED_OFFSET: Final = 1
SNAPSHOT_GONE: Final = (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE)


class LogEnds(msgspec.Struct, frozen=True, gc=False):
    """Where the leader's log begins, and where what is committed of it ends. The last committed record is of
    the leader's ``epoch``: leaders commit nothing before a record of their own. ``newest_snapshot`` is None
    where there is none yet."""

    log_start_offset: int
    high_watermark: int
    epoch: int
    newest_snapshot: SnapshotId | None


class Served(NamedTuple):
    """What came in one answer, and where in that the batches are that were asked for: their offsets have no
    gaps."""

    data: bytes
    batches: list[tuple[int, BatchHeader]]

    @property
    def next_offset(self) -> int:
        return self.batches[-1][1].next_offset


class LiveLog:
    """Raises, beside what is said, what ``Quorum`` raises."""

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum

    # Where it begins and ends.

    def ends(self) -> LogEnds:
        """As the leader knows them now. Who asks for the beginning is pointed to the newest snapshot."""
        answer = self._quorum.fetch(0, 0, ONE_BATCH_BYTES, unfit=_unknown_high_watermark)
        return LogEnds(answer.log_start_offset, answer.high_watermark, self._quorum.epoch, answer.snapshot_id)

    def oldest_snapshot(self, ends: LogEnds) -> SnapshotId | None:
        """The snapshot that ends where the log begins. None where there is none: the log begins at 0 or,
        after a restart, where its first segment does."""
        if ends.newest_snapshot is None or ends.log_start_offset == 0:
            return None
        oldest = SnapshotId(ends.log_start_offset, self._oldest_epoch(ends.newest_snapshot, ends))
        return oldest if oldest == ends.newest_snapshot or self.has_snapshot(oldest) else None

    def _oldest_epoch(self, newest: SnapshotId, ends: LogEnds) -> int:
        """The oldest snapshot's epoch. Leaders name their newest only; but whoever gives an older epoch than
        the oldest one's as the last fetched is pointed to a snapshot, and nobody else is."""
        if newest.end_offset <= ends.log_start_offset:
            return newest.epoch
        low, high = 0, newest.epoch
        while low < high:
            middle = (low + high) // 2
            answer = self._quorum.fetch(ends.log_start_offset + 1, middle, ONE_BATCH_BYTES)
            low, high = (middle + 1, high) if answer.snapshot_id is not None else (low, middle)
        return high

    def epoch_at(self, offset: int) -> int:
        """The epoch of a committed record. Raises LogRangeGone, CorruptAnswer."""
        served = self._served(offset, offset + 1, ONE_BATCH_BYTES)
        return served.batches[0][1].leader_epoch if served is not None else self.epoch_at(offset + 1)

    def has_snapshot(self, snapshot_id: SnapshotId) -> bool:
        """Whether the leader has got it."""
        return self._quorum.fetch_snapshot(snapshot_id, 0, ONE_BATCH_BYTES, final=SNAPSHOT_GONE).error == 0

    # What is in it.

    def batches(self, start_offset: int, end_offset: int, max_bytes: int = FETCH_BYTES) -> Iterator[Served]:
        """Whole batches with all of [start_offset, end_offset), which must be committed; the first and the
        last may hold more. About ``max_bytes`` come at a time. Raises LogRangeGone, CorruptAnswer.

        Java's leaders don't serve offset 0 when they have a snapshot. It comes as part of its batch where it
        isn't alone in that; otherwise the log begins for us at 1.
        """
        offset = start_offset
        while offset < end_offset:
            served = self._served(offset, end_offset, max_bytes)
            if served is not None:
                yield served
            offset = served.next_offset if served is not None else FIRST_SERVED_OFFSET

    def _served(self, offset: int, end_offset: int, max_bytes: int) -> Served | None:
        """What can be had of [offset, end_offset) at once, one batch or more; None for the offset 0 that
        isn't served."""
        answer = self._fetch_from(offset, max_bytes, end_offset)
        found: list[tuple[int, BatchHeader]] = []
        next_offset = offset
        try:
            for position, header in scan_batches(answer.records):
                if header.next_offset <= offset:
                    continue
                if offset == 0 and not found and header.base_offset == FIRST_SERVED_OFFSET:
                    return None
                if header.base_offset >= end_offset or header.next_offset > answer.high_watermark:
                    break
                if not _continues(header, next_offset, is_first=not found):
                    raise CorruptBatch(position, next_offset, f"it says offset {header.base_offset}")
                found.append((position, header))
                next_offset = header.next_offset
        except CorruptBatch as error:
            if not found:  # what is before it is good
                raise self._corrupt(answer, error) from None
        if not found:
            reason = f"no whole batch in {len(answer.records)} bytes"
            raise self._corrupt(answer, CorruptBatch(0, offset, reason))
        return Served(answer.records, found)

    def _corrupt(self, answer: FetchAnswer, error: CorruptBatch) -> CorruptAnswer:
        return CorruptAnswer(
            str(self._quorum.answered_by),
            error.position,
            error.offset,
            error.reason,
            _next_offset(answer, error.position),
        )

    def _fetch_from(self, offset: int, max_bytes: int, end_offset: int) -> FetchAnswer:
        """Records from the batch that holds ``offset`` on, when all below ``end_offset`` is committed. Raises
        LogRangeGone."""

        def unfit(answer: FetchAnswer) -> str | None:
            if answer.high_watermark >= end_offset:
                return None
            return f"it knows what is committed up to {answer.high_watermark} only, {end_offset} is wanted"

        answer = self._quorum.fetch(offset, None if offset else 0, max_bytes, unfit=unfit)
        if answer.snapshot_id is None:
            return answer
        if offset == 0 == answer.log_start_offset:
            return self._fetch_first(max_bytes, unfit)
        if offset == answer.log_start_offset:
            epoch = self._oldest_epoch(answer.snapshot_id, self.ends())
            answer = self._quorum.fetch(offset, epoch, max_bytes, unfit=unfit)
            if answer.snapshot_id is None:
                return answer
        raise LogRangeGone(offset, answer.log_start_offset)

    def _fetch_first(self, max_bytes: int, unfit: Callable[[FetchAnswer], str | None]) -> FetchAnswer:
        """From offset 0 where there are snapshots: our leaders answer an ordinary consumer, Java's have to be
        asked for what follows."""
        answer = self._quorum.fetch(0, NOT_SAID, max_bytes, unfit=unfit, final=(ErrorCode.INVALID_REQUEST,))
        if answer.error:
            return self._quorum.fetch(FIRST_SERVED_OFFSET, None, max_bytes, unfit=unfit)
        return answer


def _continues(header: BatchHeader, next_offset: int, *, is_first: bool) -> bool:
    return header.base_offset == next_offset or (is_first and header.base_offset < next_offset)


def _next_offset(answer: FetchAnswer, position: int) -> int | None:
    """Where the log goes on behind a damaged batch, if its header is to be believed."""
    try:
        header = read_header(answer.records, position)
    except CorruptBatch:
        return None
    return None if header is None else header.next_offset


def _unknown_high_watermark(answer: FetchAnswer) -> str | None:
    return "it doesn't know yet what is committed" if answer.high_watermark < 0 else None
