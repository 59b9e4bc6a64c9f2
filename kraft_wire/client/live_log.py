"""Read the metadata log of a live quorum: its start, its end, and the committed batches between them.

Nothing at or after the high watermark is returned. Every batch is verified: its checksum is right, and its
offsets continue those of the batch before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import msgspec

from kraft_wire.client.errors import CorruptAnswer, LogRangeGone
from kraft_wire.client.questions import NO_EPOCH, FetchAnswer
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.log.batch import BatchHeader, read_header, scan_batches
from kraft_wire.log.chain import offset_problem
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import ErrorCode

FETCH_BYTES: Final = 8 * 1024 * 1024
ONE_BATCH_BYTES: Final = 1
"""The smallest limit: controllers serve at least one batch, whatever its size."""
FIRST_SERVED_OFFSET: Final = 1
SNAPSHOT_GONE: Final = (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE)


class LogEnds(msgspec.Struct, frozen=True, gc=False):
    """The log start offset and the high watermark of the leader.

    The last committed record has the leader's ``epoch``, as a leader commits nothing before a record of its
    own epoch. ``newest_snapshot`` is None if there is no snapshot yet.
    """

    log_start_offset: int
    high_watermark: int
    epoch: int
    newest_snapshot: SnapshotId | None


class Served(NamedTuple):
    """One answer, and the positions in it of the wanted batches. Their offsets have no gaps."""

    data: bytes
    batches: list[tuple[int, BatchHeader]]

    @property
    def next_offset(self) -> int:
        """The offset after the last batch."""
        return self.batches[-1][1].next_offset


class LiveLog:
    """The log of the leader. Every method also raises what ``QuorumClient`` raises."""

    def __init__(self, quorum: QuorumClient) -> None:
        self._quorum = quorum

    # Start and end.

    def ends(self) -> LogEnds:
        """Return the ends as the leader knows them now. Its answer to offset 0 names the newest snapshot."""
        answer = self._quorum.fetch(0, 0, ONE_BATCH_BYTES, unfit=_unknown_high_watermark)
        return LogEnds(answer.log_start_offset, answer.high_watermark, self._quorum.epoch, answer.snapshot_id)

    def oldest_snapshot(self, ends: LogEnds) -> SnapshotId | None:
        """Return the snapshot that ends at the log start offset.

        None if there is none: the log starts at 0 or, after a restart, with its first segment.
        """
        if ends.newest_snapshot is None or ends.log_start_offset == 0:
            return None
        oldest = SnapshotId(ends.log_start_offset, self._oldest_epoch(ends.newest_snapshot, ends))
        return oldest if oldest == ends.newest_snapshot or self.has_snapshot(oldest) else None

    def _oldest_epoch(self, newest: SnapshotId, ends: LogEnds) -> int:
        """Find the oldest snapshot's epoch by bisection.

        Leaders name their newest snapshot only. But they answer a Fetch within the log with a snapshot id
        exactly if its last fetched epoch is older than the epoch of their oldest snapshot.
        """
        if newest.end_offset <= ends.log_start_offset:
            return newest.epoch
        low, high = 0, newest.epoch
        while low < high:
            middle = (low + high) // 2
            answer = self._quorum.fetch(ends.log_start_offset + 1, middle, ONE_BATCH_BYTES)
            low, high = (middle + 1, high) if answer.snapshot_id is not None else (low, middle)
        return high

    def epoch_at(self, offset: int) -> int:
        """Return the epoch of a committed record. Raises LogRangeGone, CorruptAnswer."""
        served = self._served(offset, offset + 1, ONE_BATCH_BYTES)
        return served.batches[0][1].leader_epoch if served is not None else self.epoch_at(offset + 1)

    def has_snapshot(self, snapshot_id: SnapshotId) -> bool:
        """Whether the leader has this snapshot."""
        return self._quorum.fetch_snapshot(snapshot_id, 0, ONE_BATCH_BYTES, final=SNAPSHOT_GONE).error == 0

    # Batches.

    def batches(self, start_offset: int, end_offset: int, max_bytes: int = FETCH_BYTES) -> Iterator[Served]:
        """Iterate over the batches that hold [start_offset, end_offset), which must be committed.

        The first and the last batch may hold other offsets too. About ``max_bytes`` are fetched at a time.
        Raises LogRangeGone, CorruptAnswer.

        Java's leaders don't serve offset 0 if they have a snapshot. If the batch of offset 0 holds other
        offsets too, it comes with them; if not, the first batch starts at offset 1.
        """
        offset = start_offset
        while offset < end_offset:
            served = self._served(offset, end_offset, max_bytes)
            if served is not None:
                yield served
            offset = served.next_offset if served is not None else FIRST_SERVED_OFFSET

    def _served(self, offset: int, end_offset: int, max_bytes: int) -> Served | None:
        """Fetch one batch or more of [offset, end_offset); None if the leader doesn't serve offset 0."""
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
                holds_first = not found and header.base_offset < offset
                problem = "" if holds_first else offset_problem(header, next_offset)
                if problem:
                    raise CorruptBatch(position, next_offset, problem)
                found.append((position, header))
                next_offset = header.next_offset
        except CorruptBatch as error:
            if not found:  # otherwise return the good batches first
                raise self._corrupt(answer, error) from None
        if not found:
            reason = f"no complete batch in {len(answer.records)} bytes"
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
        """Fetch records from the batch with ``offset`` on, once all below ``end_offset`` is committed.

        Raises LogRangeGone.
        """

        def unfit(answer: FetchAnswer) -> str | None:
            if answer.high_watermark >= end_offset:
                return None
            return f"its high watermark is {answer.high_watermark}, wanted is {end_offset}"

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
        """Fetch from offset 0 although there are snapshots.

        Our leaders answer an ordinary consumer. Java's don't: they are asked for what follows offset 0.
        """
        answer = self._quorum.fetch(0, NO_EPOCH, max_bytes, unfit=unfit, final=(ErrorCode.INVALID_REQUEST,))
        if answer.error:
            return self._quorum.fetch(FIRST_SERVED_OFFSET, None, max_bytes, unfit=unfit)
        return answer


def _next_offset(answer: FetchAnswer, position: int) -> int | None:
    """The offset after a damaged batch, if its header can be read."""
    try:
        header = read_header(answer.records, position)
    except CorruptBatch:
        return None
    return None if header is None else header.next_offset


def _unknown_high_watermark(answer: FetchAnswer) -> str | None:
    return "it doesn't know the high watermark yet" if answer.high_watermark < 0 else None
