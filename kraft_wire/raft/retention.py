"""Which snapshots and how much of the log are kept (KIP-630; KafkaRaftLog's cleaning).

The log begins at the end of a snapshot that is on disk, and nowhere else (KAFKA-14238, KAFKA-14240): a
snapshot goes only together with the log up to the next one, and the newest stays whatever the limits say.
"""

from __future__ import annotations

from kraft_wire.raft import describe
from kraft_wire.raft.config import SnapshotInfo
from kraft_wire.raft.effects import DeleteSnapshot, TrimLog
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import LogTrimmed, SnapshotWritten
from kraft_wire.raft.quorum import Quorum


def start(quorum: Quorum) -> None:
    """Delete what an interrupted deletion left: snapshots below the log's start."""
    stale = [info.id for info in quorum.log.snapshots if info.id.end_offset < quorum.log.start_offset]
    for snapshot_id in stale:
        quorum.emit(DeleteSnapshot(snapshot_id))
    quorum.log.snapshots = [info for info in quorum.log.snapshots if info.id not in stale]
    _schedule(quorum)


def snapshot_written(quorum: Quorum, event: SnapshotWritten) -> None:
    """A snapshot is complete. Raises InvariantViolated when it isn't one of what is committed in this log."""
    snapshot_id, log = event.snapshot_id, quorum.log
    if snapshot_id.end_offset > quorum.committed_offset:
        raise InvariantViolated(
            f"snapshot {snapshot_id} is above the high watermark {quorum.committed_offset}"
        )
    if snapshot_id.end_offset < log.start_offset:
        quorum.emit(DeleteSnapshot(snapshot_id))
        return
    if log.snapshot(snapshot_id) is None:
        if quorum.snapshot_id_at(snapshot_id.end_offset) != snapshot_id:
            raise InvariantViolated(
                f"snapshot {snapshot_id} ends with another epoch than the log has there,"
                f" {log.epoch_at(snapshot_id.end_offset - 1)}"
            )
        log.add_snapshot(SnapshotInfo(snapshot_id, event.size_bytes, event.last_contained_log_timestamp_ms))
    quorum.history.truncate_from_start(snapshot_id.end_offset)
    _clean(quorum)


def log_trimmed(quorum: Quorum, event: LogTrimmed) -> None:
    """Segments are gone: go on with the next snapshot, if the limits still ask for it."""
    quorum.log.size_bytes -= event.deleted_bytes
    quorum.is_trimming = False
    _clean(quorum)


def on_deadline(quorum: Quorum) -> None:
    """Look at the limits every minute, and at who has fallen silent."""
    if quorum.now.monotonic_ms < quorum.cleaning_deadline_ms:
        return
    _schedule(quorum)
    if quorum.leadership is not None:
        describe.drop_silent_observers(quorum, quorum.leadership)
    _clean(quorum)


def _schedule(quorum: Quorum) -> None:
    quorum.cleaning_deadline_ms = quorum.now.monotonic_ms + quorum.config.cleaning_interval_ms


def _clean(quorum: Quorum) -> None:
    """Drop the oldest snapshot and the log below the next one, if the limits ask for it.

    How many bytes that frees is known only when it is done: one at a time, and ``log_trimmed`` goes on.
    """
    log = quorum.log
    if quorum.is_trimming or len(log.snapshots) < 2:
        return
    oldest, following = log.snapshots[0], log.snapshots[1]
    if not (_is_too_much(quorum) or _is_too_old(quorum, oldest)):
        return
    quorum.is_trimming = True
    forgotten = log.start_at(following.id)
    quorum.emit(TrimLog(log.start_offset))
    for snapshot_id in forgotten:
        quorum.emit(DeleteSnapshot(snapshot_id))


def _is_too_much(quorum: Quorum) -> bool:
    limit = quorum.config.max_retention_bytes
    snapshot_bytes = sum(info.size_bytes for info in quorum.log.snapshots)
    return 0 <= limit < quorum.log.size_bytes + snapshot_bytes


def _is_too_old(quorum: Quorum, snapshot: SnapshotInfo) -> bool:
    limit = quorum.config.max_retention_ms
    return 0 <= limit < quorum.now.wall_ms - snapshot.last_contained_log_timestamp_ms
