"""Log what happened to the log's segments and to snapshots on disk."""

from __future__ import annotations

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.digest import StateDigest
from kraft_wire.raft.events import SnapshotWritten
from kraft_wire.server.logging import get_logger

log = get_logger(__name__)


def report_truncation(old_end_offset: int, new_end_offset: int, deleted_bytes: int) -> None:
    """Log that uncommitted records were cut off because the leader's log differs."""
    log.info("log truncated", end_offset=new_end_offset, was=old_end_offset, deleted_bytes=deleted_bytes)


def report_trimming(log_start_offset: int, deleted_bytes: int) -> None:
    """Log that segments were deleted because a snapshot covers them."""
    log.info("log trimmed", log_start_offset=log_start_offset, deleted_bytes=deleted_bytes)


def report_loaded(snapshot_id: SnapshotId) -> None:
    """Log that this node has taken its state from a snapshot: at the start, or after it was installed."""
    log.info("snapshot loaded", end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)


def report_snapshot(written: SnapshotWritten, took_ms: int) -> None:
    """Log that a snapshot of this node's state was written."""
    log.info(
        "snapshot written",
        end_offset=written.snapshot_id.end_offset,
        epoch=written.snapshot_id.epoch,
        size_bytes=written.size_bytes,
        took_ms=took_ms,
    )


def report_failed_snapshot(snapshot_id: SnapshotId, error: Exception, *, is_superseded: bool) -> None:
    """Log that a snapshot was not written. If a fetched one took its place meanwhile, that is no error."""
    if is_superseded:
        log.info(
            "snapshot abandoned",
            end_offset=snapshot_id.end_offset,
            reason="another snapshot was installed meanwhile",
        )
    else:
        log.error("snapshot failed", end_offset=snapshot_id.end_offset, error=str(error))


def report_digest(end_offset: int, made: StateDigest, took_ms: int) -> None:
    """Log the digest of this node's state at an offset."""
    log.info(
        "state digest",
        end_offset=end_offset,
        digest=made.digest.hex(),
        records=made.record_count,
        took_ms=took_ms,
    )


def report_failed_digest(end_offset: int, reason: str) -> None:
    """Log that no digest was made of this node's state."""
    log.warning("state digest failed", end_offset=end_offset, reason=reason)
