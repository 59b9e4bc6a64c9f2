"""The offsets, epochs and snapshots of the log, without its bytes (Kafka's RaftLog, KafkaRaftLog)."""

from __future__ import annotations

import msgspec

from kraft_wire.log.batch_ends import BatchEnds
from kraft_wire.log.epochs import EpochCache, EpochEnd
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from kraft_wire.raft.config import DurableState, SnapshotInfo
from kraft_wire.raft.errors import CannotStart, InvariantViolated


class Diverged(msgspec.Struct, frozen=True, gc=False):
    """A follower's log diverges from ours: the two can agree at most up to ``end``."""

    end: EpochEnd


class NeedsSnapshot(msgspec.Struct, frozen=True, gc=False):
    """The records that a follower asks for are no longer in the log: it has to start with this snapshot."""

    id: SnapshotId


class LogState:
    """The offsets, epochs and snapshots of the log.

    ``flushed_offset`` is the end of the records that are on stable storage. ``generation`` counts how often
    the log was truncated or restarted from a snapshot. ``batch_ends`` are the ends of the batches that were
    appended since the start.
    """

    __slots__ = (
        "batch_ends",
        "end_offset",
        "epochs",
        "flushed_offset",
        "generation",
        "size_bytes",
        "snapshots",
        "start_offset",
    )

    def __init__(self, durable: DurableState) -> None:
        self.start_offset = durable.log_start_offset
        self.end_offset = durable.log_end_offset
        self.flushed_offset = durable.log_end_offset
        self.size_bytes = durable.log_size_bytes
        self.epochs = durable.epochs.copy()
        self.snapshots = sorted(durable.snapshots, key=_by_epoch_and_offset)
        self.generation = 0
        self.batch_ends = BatchEnds(self.end_offset)
        self._check()

    def _check(self) -> None:
        latest = self.latest_snapshot
        if self.start_offset > 0 and (latest is None or latest.end_offset < self.start_offset):
            raise CannotStart(
                f"the log starts at offset {self.start_offset} and no snapshot covers the records before it"
                f" (newest: {_show(latest)}): restore the missing .checkpoint file, or the whole folder"
            )
        if latest is not None and latest.end_offset > self.end_offset:
            raise CannotStart(
                f"snapshot {_show(latest)} is ahead of the log, which ends at offset {self.end_offset}:"
                " the log must be emptied so that it starts at the snapshot's end"
            )

    # Queries.

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[-1].id if self.snapshots else None

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[0].id if self.snapshots else None

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, in the log or in a snapshot; 0 for an empty log."""
        if self.epochs.latest_epoch is not None:
            return self.epochs.latest_epoch
        return self.latest_snapshot.epoch if self.latest_snapshot is not None else 0

    @property
    def last_flushed_epoch(self) -> int:
        """The epoch of the last record that is flushed, in the log or in a snapshot; 0 if there is none."""
        if self.flushed_offset == self.end_offset:
            return self.last_epoch
        return self.epoch_at(self.flushed_offset - 1) if self.flushed_offset else 0

    def epoch_at(self, offset: int) -> int:
        """Return the epoch of the record at ``offset``.

        Raises KeyError if neither the log nor a snapshot that is kept knows it.
        """
        if offset >= self.end_offset:
            raise KeyError(f"there is no record at offset {offset}, the log ends at {self.end_offset}")
        if offset >= self.start_offset:
            epoch = self.epochs.epoch_of(offset)
            if epoch is not None:
                return epoch
        for snapshot in self.snapshots:
            if snapshot.id.end_offset == offset + 1:
                return snapshot.id.epoch
        raise KeyError(f"offset {offset} is below the log's start {self.start_offset}")

    def snapshot(self, snapshot_id: SnapshotId) -> SnapshotInfo | None:
        """Return the snapshot of this id, None if it is not on disk."""
        return next((info for info in self.snapshots if info.id == snapshot_id), None)

    # Comparing a follower's log.

    def compare(self, offset: int, epoch: int) -> Diverged | NeedsSnapshot | None:
        """Compare the log of a follower, which ends at ``offset`` with a record of ``epoch``, with ours.

        Returns None if it is a prefix of ours.
        """
        if offset == 0:
            latest = self.latest_snapshot
            if latest is not None and latest != BOOTSTRAP_SNAPSHOT_ID:
                return NeedsSnapshot(latest)
            if self.start_offset == 0:
                return None
        if self._is_before_log(offset, epoch):
            latest = self.latest_snapshot
            assert latest is not None  # a log that starts above 0 has a snapshot: checked at startup
            return NeedsSnapshot(latest)
        end = self.end_for_epoch(epoch)
        if end.epoch != epoch or end.end_offset < offset:
            return Diverged(end)
        return None

    def _is_before_log(self, offset: int, epoch: int) -> bool:
        earliest = self.earliest_snapshot
        if earliest is None:
            return False
        if offset < self.start_offset or epoch < earliest.epoch:
            return True
        return offset == self.start_offset and epoch != earliest.epoch

    def end_for_epoch(self, epoch: int) -> EpochEnd:
        """Return the newest epoch that isn't above ``epoch``, and the offset at which it ends in our log."""
        if self.epochs.latest_epoch is None:
            return EpochEnd(self.last_epoch, self.end_offset)
        end = self.epochs.end_offset_for_epoch(epoch, self.end_offset)
        earliest = self.earliest_snapshot
        if earliest is not None and end == (epoch, earliest.end_offset):
            return EpochEnd(earliest.epoch, earliest.end_offset)
        return end

    # Changes.

    def note_append(self, epoch: int, next_offset: int, size_bytes: int) -> None:
        """Note that a batch was appended."""
        self.epochs.assign(epoch, self.end_offset)
        self.end_offset = next_offset
        self.batch_ends.append(next_offset)
        self.size_bytes += size_bytes

    def note_flush(self, end_offset: int, generation: int) -> None:
        """Note that everything below ``end_offset`` is on stable storage.

        A flush of an older generation is ignored. Raises InvariantViolated for an offset above the log's end.
        """
        if generation != self.generation:
            return
        if end_offset > self.end_offset:
            raise InvariantViolated(
                f"offset {end_offset} was reported as flushed, the log ends at {self.end_offset}"
            )
        self.flushed_offset = max(self.flushed_offset, end_offset)

    def truncate_to(self, end_offset: int) -> None:
        """Note that the log was truncated; the rest is on stable storage."""
        self.epochs.truncate_from_end(end_offset)
        self.end_offset = self.flushed_offset = end_offset
        self.batch_ends.truncate(end_offset)
        self.generation += 1

    def reset_to_snapshot(self, info: SnapshotInfo) -> list[SnapshotId]:
        """Note that the log is empty and starts at the end of an installed snapshot.

        Returns the ids of the older snapshots, which are forgotten because no log follows them.
        """
        self.epochs = EpochCache()
        self.end_offset = self.flushed_offset = info.id.end_offset
        self.batch_ends = BatchEnds(self.end_offset)
        self.size_bytes = 0
        self.generation += 1
        if self.snapshot(info.id) is None:
            self.add_snapshot(info)
        return self.advance_start(info.id)

    def add_snapshot(self, info: SnapshotInfo) -> None:
        self.snapshots.append(info)
        self.snapshots.sort(key=_by_epoch_and_offset)

    def advance_start(self, snapshot_id: SnapshotId) -> list[SnapshotId]:
        """Let the log start at a snapshot's end. Returns the ids of the older snapshots, which are
        forgotten."""
        key = (snapshot_id.epoch, snapshot_id.end_offset)
        forgotten = [info.id for info in self.snapshots if _by_epoch_and_offset(info) < key]
        self.snapshots = [info for info in self.snapshots if _by_epoch_and_offset(info) >= key]
        self.start_offset = snapshot_id.end_offset
        self.epochs.truncate_from_start(snapshot_id.end_offset)
        return forgotten


def _by_epoch_and_offset(info: SnapshotInfo) -> tuple[int, int]:
    return info.id.epoch, info.id.end_offset


def _show(snapshot_id: SnapshotId | None) -> str:
    return "none" if snapshot_id is None else f"{snapshot_id.end_offset}-{snapshot_id.epoch}"
