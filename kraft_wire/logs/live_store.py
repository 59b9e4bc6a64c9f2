"""Serve the log of a live quorum to the data source.

Rows and positions are the same as for folders on disk, but nothing uncommitted is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final

import msgspec

from kraft_wire.client.errors import CorruptAnswer, LogRangeGone, SnapshotGone
from kraft_wire.client.live_log import FETCH_BYTES, LiveLog, LogEnds
from kraft_wire.client.live_snapshot import snapshot_batches
from kraft_wire.client.quorum import KnownLeader, QuorumClient
from kraft_wire.client.settings import QuorumSettings
from kraft_wire.columnar.page import Page
from kraft_wire.log.batch import Batch
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.logs.places import LogPlace, PlacedPage, SnapshotPlace
from kraft_wire.logs.positions import LogPosition
from kraft_wire.logs.ranges import DataLoss
from kraft_wire.logs.store import Damage, LogBounds, LogRange
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord

SPLIT_OFFSETS: Final = 1_000_000
"""This many records are worth a task. The size of a range isn't known before it is read."""
_BYTES_A_RECORD: Final = 64


class LivePiece(msgspec.Struct, frozen=True):
    """A snapshot, or a range of the log, and the leader when it was planned."""

    cluster: str
    start_offset: int
    end_offset: int
    committed_end_offset: int
    known: KnownLeader
    snapshot: SnapshotId | None = None

    @property
    def size_bytes(self) -> int:
        """An estimate."""
        return _BYTES_A_RECORD * (self.end_offset - self.start_offset)


class LiveStore:
    """One quorum. Keeps a connection to the leader until ``close``.

    Raises QuorumError, and what ``LogStore`` raises.
    """

    def __init__(self, settings: QuorumSettings, split_offsets: int = SPLIT_OFFSETS) -> None:
        self._settings = settings
        self._split_offsets = split_offsets
        self._bounds: LogBounds | None = None
        self._oldest: dict[int, SnapshotId | None] = {}
        self._held: set[tuple[int, int]] = set()

    @cached_property
    def _quorum(self) -> QuorumClient:
        return QuorumClient(self._settings)

    @cached_property
    def _log(self) -> LiveLog:
        return LiveLog(self._quorum)

    def close(self) -> None:
        self._quorum.close()

    # --- where the query is planned

    def bounds(self) -> dict[str, LogBounds]:
        ends = self._log.ends()
        end = LogPosition(ends.epoch, ends.high_watermark)
        cluster = self._quorum.cluster_id()
        self._bounds = LogBounds(
            cluster, ends.log_start_offset, end, ends.high_watermark, self._snapshots(ends)
        )
        self._held.add((end.offset, end.epoch))
        return {cluster: self._bounds}

    def holds(self, cluster: str, position: LogPosition) -> bool:
        """See ``LogStore.holds``. A position is checked once, because committed records stay."""
        if position.snapshot:
            return self._log.has_snapshot(SnapshotId(position.offset, position.epoch))
        key = position.offset, position.epoch
        if key not in self._held and self._is_held(*key):
            self._held.add(key)
        return key in self._held

    def position_at(self, cluster: str, offset: int) -> LogPosition:
        position = LogPosition(self._epoch_below(offset), offset)
        self._held.add((position.offset, position.epoch))
        return position

    def next_offset_within(self, cluster: str, offset: int, max_bytes: int) -> int:
        """See ``LogStore.next_offset_within``. The bytes must be fetched, as only the leader knows their
        number."""
        bounds, left = self._seen(), max_bytes
        while left > 0 and offset < bounds.end.offset:
            served = next(self._log.batches(offset, bounds.end.offset, min(left, FETCH_BYTES)))
            left -= sum(header.size_bytes for _, header in served.batches)
            offset = served.next_offset
        return offset

    def pieces(self, wanted: LogRange) -> Iterator[LivePiece]:
        bounds = self._seen()
        committed_end_offset = bounds.end.offset
        known = self._quorum.known()
        if wanted.snapshot is not None:
            offset = wanted.snapshot.end_offset
            yield LivePiece(wanted.cluster, 0, offset, committed_end_offset, known, wanted.snapshot)
        end_offset = committed_end_offset if wanted.end_offset is None else wanted.end_offset
        for start_offset in range(wanted.start_offset, end_offset, self._split_offsets):
            following = min(start_offset + self._split_offsets, end_offset)
            yield LivePiece(wanted.cluster, start_offset, following, committed_end_offset, known)

    def _seen(self) -> LogBounds:
        assert self._bounds is not None, "bounds() is called first"
        return self._bounds

    def _snapshots(self, ends: LogEnds) -> tuple[SnapshotId, ...]:
        """Return the snapshot that the log begins with, and the newest one: leaders name no others."""
        start_offset = ends.log_start_offset
        if start_offset not in self._oldest:
            self._oldest = {start_offset: self._log.oldest_snapshot(ends)}
        found = {self._oldest[start_offset], ends.newest_snapshot}
        return tuple(sorted(snapshot_id for snapshot_id in found if snapshot_id is not None))

    def _is_held(self, offset: int, epoch: int) -> bool:
        bounds = self._seen()
        try:
            if offset <= bounds.start_offset:
                return offset == 0 or epoch <= self._epoch_below(offset)
            if self._epoch_below(offset) == epoch:
                return True
            return offset < bounds.end.offset and self._log.epoch_at(offset) == epoch
        except LogRangeGone:
            return False

    def _epoch_below(self, offset: int) -> int:
        """Return the epoch of the last record before an offset; at the log's start that of the snapshot that
        ends there, or of the first record."""
        bounds = self._seen()
        if offset == bounds.end.offset:
            return bounds.end.epoch
        if offset > bounds.start_offset:
            return self._log.epoch_at(offset - 1)
        for snapshot_id in bounds.snapshots:
            if snapshot_id.end_offset == offset:
                return snapshot_id.epoch
        return self._log.epoch_at(offset) if offset else 0

    # --- where a task reads

    def pages(self, piece: LivePiece) -> Iterator[PlacedPage | Damage]:
        with QuorumClient(self._settings, piece.known) as quorum:
            try:
                if piece.snapshot is None:
                    yield from _log_pages(quorum, piece)
                else:
                    yield from _snapshot_pages(quorum, piece, piece.snapshot)
            except (LogRangeGone, SnapshotGone) as error:
                asked = f"offsets {piece.start_offset} to {piece.end_offset} were to be read"
                advice = "Read again from what there is now"
                raise DataLoss(piece.cluster, asked, f"{error}", advice) from error


def _log_pages(quorum: QuorumClient, piece: LivePiece) -> Iterator[PlacedPage | Damage]:
    place = LogPlace(
        piece.cluster,
        piece.committed_end_offset,
        start_offset=piece.start_offset,
        end_offset=piece.end_offset,
    )
    log, offset = LiveLog(quorum), piece.start_offset
    while offset < piece.end_offset:
        try:
            for served in log.batches(offset, piece.end_offset):
                source = f"{quorum.answered_by}, from offset {offset} on"
                yield PlacedPage(Page(served.data, served.batches), place, source)
                offset = served.next_offset
        except CorruptAnswer as error:
            yield _damage(piece, error)
            if error.resume_offset is None or error.resume_offset <= offset:
                return
            offset = error.resume_offset


def _snapshot_pages(
    quorum: QuorumClient, piece: LivePiece, snapshot_id: SnapshotId
) -> Iterator[PlacedPage | Damage]:
    end_offset, epoch = snapshot_id
    timestamp_ms = None
    try:
        for number, data in enumerate(snapshot_batches(quorum, snapshot_id)):
            page, _ = Page.of(data, check_crc=False)
            timestamp_ms = timestamp_ms if number else _timestamp_ms(page)
            place = LogPlace(piece.cluster, snapshot=SnapshotPlace(end_offset, epoch, timestamp_ms))
            yield PlacedPage(page, place, f"{quorum.answered_by}, snapshot {end_offset}-{epoch}")
    except CorruptAnswer as error:
        yield _damage(piece, error)


def _timestamp_ms(first: Page) -> int | None:
    """Return the timestamp of the last record that a snapshot covers, which is in its header."""
    (position, header), *_ = first.control_batches
    data = first.chunk.data[position : position + header.size_bytes]
    for message in decode_control_batch(Batch(header, data)):
        if isinstance(message, SnapshotHeaderRecord):
            return message.last_contained_log_timestamp
    return None


def _damage(piece: LivePiece, error: CorruptAnswer) -> Damage:
    return Damage(
        piece.cluster, error.address, error.position, error.offset, error.reason, error.resume_offset
    )
