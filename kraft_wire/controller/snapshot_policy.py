"""When to make a snapshot: after so many bytes of records, or after so long (Kafka's SnapshotGenerator)."""

from __future__ import annotations


class SnapshotPolicy:
    """Counts what was committed since the newest snapshot.

    ``max_bytes`` is metadata.log.max.record.bytes.between.snapshots; ``max_interval_ms`` is
    metadata.log.max.snapshot.interval.ms, 0 for never by time.
    """

    def __init__(self, max_bytes: int, max_interval_ms: int) -> None:
        self._max_bytes = max_bytes
        self._max_interval_ms = max_interval_ms
        self._bytes_since = 0
        self._started_ms: int | None = None
        self._in_progress = False

    def committed(self, size_bytes: int, now_ms: int) -> None:
        """Count a committed batch."""
        self._bytes_since += size_bytes
        if self._started_ms is None:
            self._started_ms = now_ms

    def due(self, now_ms: int) -> bool:
        """Whether a snapshot should be started now."""
        if self._in_progress or self._bytes_since == 0:
            return False
        deadline = self.deadline_ms()
        return self._bytes_since >= self._max_bytes or (deadline is not None and now_ms >= deadline)

    def deadline_ms(self) -> int | None:
        """When a snapshot becomes due by time alone, if nothing else happens."""
        if self._in_progress or self._started_ms is None or self._max_interval_ms == 0:
            return None
        return self._started_ms + self._max_interval_ms

    def started(self) -> None:
        """A snapshot of all that was counted is being made."""
        self._in_progress = True
        self._bytes_since = 0
        self._started_ms = None

    def finished(self) -> None:
        """The snapshot that was being made is complete, or has failed; counting went on meanwhile."""
        self._in_progress = False
