"""The metadata log of a live quorum: where it begins and ends, and what is in between.

Nothing at or past the high watermark comes out of here. Every batch's checksum is looked at, and whether its
offsets continue those before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from kraft_wire.client.errors import CorruptAnswer, LogDiverged, LogRangeGone
from kraft_wire.client.questions import NOT_SAID, FetchAnswer
from kraft_wire.client.quorum import Quorum
from kraft_wire.log.batch import BatchHeader, scan_batches
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import ErrorCode

FETCH_BYTES: Final = 8 * 1024 * 1024
ONE_BATCH_BYTES: Final = 1
"""Controllers serve at least one batch, whatever its size."""


class LogBounds(msgspec.Struct, frozen=True, gc=False):
    """The leader's log: what is committed ends at ``high_watermark``, and the last record below is of
    ``epoch``: leaders commit nothing before a record of their own. ``snapshot_id`` is the newest snapshot's,
    None if there is none yet."""

    log_start_offset: int
    high_watermark: int
    epoch: int
    snapshot_id: SnapshotId | None


class LiveLog:
    """Raises, beside what is said, what ``Quorum`` raises."""

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum

    # Where it begins and ends.

    def bounds(self) -> LogBounds:
        """As the leader knows them now. Who asks for the beginning is pointed to the newest snapshot."""
        answer = self._quorum.fetch(0, 0, ONE_BATCH_BYTES, unfit=_unknown_high_watermark)
        return LogBounds(
            answer.log_start_offset, answer.high_watermark, self._quorum.epoch, answer.snapshot_id
        )

    def first_offset(self, bounds: LogBounds) -> int:
        """The first offset that is served. Java's leaders don't serve offset 0 when they have a snapshot: if
        it is alone in its batch, the log begins for us at 1."""
        if bounds.log_start_offset > 0 or bounds.snapshot_id is None:
            return bounds.log_start_offset
        try:
            self._fetch_from(0, ONE_BATCH_BYTES, bounds.high_watermark)
        except LogRangeGone as error:
            return error.first_offset
        return 0

    def oldest_snapshot(self, bounds: LogBounds) -> SnapshotId | None:
        """The snapshot that ends where the log begins; None where the log begins at 0.

        Leaders name their newest only. The oldest one's epoch is the first that isn't answered with a
        snapshot when it is given as the last fetched one.
        """
        newest, end_offset = bounds.snapshot_id, bounds.log_start_offset
        if newest is None or end_offset == 0:
            return None
        low, high = 0, newest.epoch
        while newest.end_offset > end_offset and low < high:
            middle = (low + high) // 2
            answer = self._quorum.fetch(end_offset + 1, middle, ONE_BATCH_BYTES)
            low, high = (middle + 1, high) if answer.snapshot_id is not None else (low, middle)
        return SnapshotId(end_offset, high)

    def check(self, offset: int, epoch: int) -> None:
        """Whether the leader's log up to ``offset`` is the one that was read, whose last record is of
        ``epoch``. Raises LogDiverged, LogRangeGone."""
        if offset == 0:
            return
        answer = self._quorum.fetch(offset, epoch, ONE_BATCH_BYTES, unfit=_unknown_high_watermark)
        if epoch > self._quorum.epoch:
            raise LogDiverged(offset, epoch, f"there the newest epoch is {self._quorum.epoch}")
        if answer.diverging_end_offset is not None:
            raise LogDiverged(offset, epoch, f"there the epoch ends at {answer.diverging_end_offset}")
        if answer.snapshot_id is None:
            return
        if offset < answer.log_start_offset:
            raise LogRangeGone(offset, answer.log_start_offset)
        if offset == answer.log_start_offset:
            raise LogDiverged(offset, epoch, "the snapshot that ends there is of another epoch")
        # An epoch from before the oldest snapshot isn't judged, although the log may still hold it.
        self._check_record(offset - 1, epoch)

    def _check_record(self, offset: int, epoch: int) -> None:
        try:
            answer = self._fetch_from(offset, ONE_BATCH_BYTES, offset + 1)
        except LogRangeGone:
            return  # the record at offset 0, which nobody can have read then
        found = self._committed(answer, offset, offset + 1)[0][1].leader_epoch
        if found != epoch:
            raise LogDiverged(offset + 1, epoch, f"the record before that is of epoch {found}")

    # What is in it.

    def batches(self, start_offset: int, end_offset: int) -> Iterator[bytes]:
        """Whole batches with all of [start_offset, end_offset), which must be committed; the first and the
        last may hold more. Raises LogRangeGone, CorruptAnswer."""
        offset = start_offset
        while offset < end_offset:
            answer = self._fetch_from(offset, FETCH_BYTES, end_offset)
            batches = self._committed(answer, offset, end_offset)
            first_position, last_position = batches[0][0], batches[-1][0]
            last = batches[-1][1]
            yield answer.records[first_position : last_position + last.size_bytes]
            offset = last.next_offset

    def _committed(self, answer: FetchAnswer, offset: int, end_offset: int) -> list[tuple[int, BatchHeader]]:
        """The batches of an answer that belong to [offset, end_offset), with their positions: one or more."""
        found: list[tuple[int, BatchHeader]] = []
        next_offset = offset
        try:
            for position, header in scan_batches(answer.records):
                if header.next_offset <= offset:
                    continue
                if header.base_offset >= end_offset or header.next_offset > answer.high_watermark:
                    break
                if header.base_offset != next_offset and (found or header.base_offset > offset):
                    raise self._corrupt(next_offset, f"it says offset {header.base_offset}")
                found.append((position, header))
                next_offset = header.next_offset
        except CorruptBatch as error:
            raise self._corrupt(error.offset, error.reason) from None
        if not found:
            raise self._corrupt(offset, f"no whole batch in {len(answer.records)} bytes")
        return found

    def _corrupt(self, offset: int, reason: str) -> CorruptAnswer:
        return CorruptAnswer(str(self._quorum.answered_by), offset, reason)

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
            snapshot_id = self.oldest_snapshot(self.bounds())
            assert snapshot_id is not None, "the log begins later than 0"
            answer = self._quorum.fetch(offset, snapshot_id.epoch, max_bytes, unfit=unfit)
            if answer.snapshot_id is None:
                return answer
        raise LogRangeGone(offset, answer.log_start_offset)

    def _fetch_first(self, max_bytes: int, unfit: Callable[[FetchAnswer], str | None]) -> FetchAnswer:
        """From offset 0 where there are snapshots: our leaders answer an ordinary consumer, Java's have to be
        asked for a later record of the first batch."""
        refusals = (ErrorCode.INVALID_REQUEST,)
        answer = self._quorum.fetch(0, NOT_SAID, max_bytes, unfit=unfit, final=refusals)
        if answer.error == ErrorCode.NONE:
            return answer
        answer = self._quorum.fetch(1, None, max_bytes, unfit=unfit)
        if self._committed(answer, 1, 2)[0][1].base_offset > 0:
            raise LogRangeGone(0, 1)
        return answer


def _unknown_high_watermark(answer: FetchAnswer) -> str | None:
    return "it doesn't know yet what is committed" if answer.high_watermark < 0 else None
