"""Decide how many snapshots and how much of the log are kept (KIP-630; KafkaRaftLog's cleaning).

The log always starts at the end of a snapshot that is on disk (KAFKA-14238, KAFKA-14240). So a snapshot is
deleted only together with the log up to the next snapshot, and the newest one is kept whatever the limits
are.
"""

from __future__ import annotations

from kraft_wire.raft.config import SnapshotInfo
from kraft_wire.raft.effects import DeleteSnapshot, TrimLog
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import KeepRecords, LogTrimmed, SnapshotWritten
from kraft_wire.raft.quorum_state import QuorumState


def start(quorum: QuorumState) -> None:
    """Delete the snapshots below the log start offset, which an interrupted deletion left."""
    stale = [info.id for info in quorum.log.snapshots if info.id.end_offset < quorum.log.start_offset]
    for snapshot_id in stale:
        quorum.emit(DeleteSnapshot(snapshot_id))
    quorum.log.snapshots = [info for info in quorum.log.snapshots if info.id not in stale]
    _schedule(quorum)


def handle_snapshot_written(quorum: QuorumState, event: SnapshotWritten) -> None:
    """Register a new snapshot. Raises InvariantViolated if it isn't a snapshot of committed records of this
    log."""
    snapshot_id, log = event.snapshot_id, quorum.log
    if snapshot_id.end_offset > quorum.committed_offset:
        raise InvariantViolated(
            f"snapshot {snapshot_id} is above the committed offset {quorum.committed_offset}"
        )
    if snapshot_id.end_offset < log.start_offset:
        quorum.emit(DeleteSnapshot(snapshot_id))
        return
    if log.snapshot(snapshot_id) is None:
        if quorum.snapshot_id_at(snapshot_id.end_offset) != snapshot_id:
            raise InvariantViolated(
                f"snapshot {snapshot_id} has another epoch than the log before its end offset,"
                f" {log.epoch_at(snapshot_id.end_offset - 1)}"
            )
        log.add_snapshot(SnapshotInfo(snapshot_id, event.size_bytes, event.last_contained_log_timestamp_ms))
    quorum.history.truncate_from_start(snapshot_id.end_offset)
    _clean(quorum)


def handle_log_trimmed(quorum: QuorumState, event: LogTrimmed) -> None:
    """Continue with the next snapshot if the limits are still exceeded."""
    quorum.log.size_bytes -= event.deleted_bytes
    quorum.is_trimming = False
    _clean(quorum)


def handle_keep_records(quorum: QuorumState, event: KeepRecords) -> None:
    """Note which records are wanted. Those before may be trimmed now."""
    quorum.wanted_from_offset = event.from_offset
    _clean(quorum)


def on_deadline(quorum: QuorumState) -> None:
    """Check the limits and the silent observers once per cleaning interval."""
    if quorum.now.monotonic_ms < quorum.cleaning_deadline_ms:
        return
    _schedule(quorum)
    if quorum.leadership is not None:
        quorum.leadership.drop_silent_observers(quorum.now.monotonic_ms)
    _clean(quorum)


def _schedule(quorum: QuorumState) -> None:
    quorum.cleaning_deadline_ms = quorum.now.monotonic_ms + quorum.config.cleaning_interval_ms


def _clean(quorum: QuorumState) -> None:
    """Drop the oldest snapshot and the log below the next one if the limits are exceeded.

    The number of freed bytes is known only afterwards, so one snapshot is dropped at a time;
    ``handle_log_trimmed`` continues.
    """
    log = quorum.log
    if quorum.is_trimming or len(log.snapshots) < 2:
        return
    oldest, following = log.snapshots[0], log.snapshots[1]
    if following.id.end_offset > log.flushed_offset:
        return  # A Fetch names the epoch of our last flushed record, so that record stays.
    config = quorum.config
    if not _exceeds(quorum, oldest, config.max_retention_bytes, config.max_retention_ms):
        return
    is_wanted = quorum.wanted_from_offset is not None and quorum.wanted_from_offset < following.id.end_offset
    if is_wanted and not _exceeds(quorum, oldest, config.max_wanted_bytes, config.max_wanted_ms):
        return
    quorum.is_trimming = True
    forgotten = log.advance_start(following.id)
    quorum.emit(TrimLog(log.start_offset))
    for snapshot_id in forgotten:
        quorum.emit(DeleteSnapshot(snapshot_id))


def _exceeds(quorum: QuorumState, oldest: SnapshotInfo, max_bytes: int, max_ms: int) -> bool:
    """Whether log and snapshots are larger than one limit, or the oldest snapshot is older than the other."""
    snapshot_bytes = sum(info.size_bytes for info in quorum.log.snapshots)
    age_ms = quorum.now.wall_ms - oldest.last_contained_log_timestamp_ms
    return 0 <= max_bytes < quorum.log.size_bytes + snapshot_bytes or 0 <= max_ms < age_ms
