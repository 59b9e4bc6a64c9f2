"""Decide when to make a snapshot: by the bytes of records, or by time (Kafka's SnapshotGenerator)."""

from __future__ import annotations

from typing import Final

URGENT_TIMES: Final = 2
"""A snapshot is urgent if the log behind the newest one is longer than the limit by this factor."""


class SnapshotPolicy:
    """The bytes and the time since the newest snapshot.

    ``max_bytes`` is metadata.log.max.record.bytes.between.snapshots; ``max_interval_ms`` is
    metadata.log.max.snapshot.interval.ms, where 0 means that time makes no snapshot due.
    """

    def __init__(self, max_bytes: int, max_interval_ms: int) -> None:
        self._max_bytes = max_bytes
        self._max_interval_ms = max_interval_ms
        self._bytes_since = 0
        self._bytes_begun = 0
        """The bytes that no complete snapshot covers, but one in progress or one that has failed."""
        self._started_ms: int | None = None
        self._in_progress = False

    @property
    def is_urgent(self) -> bool:
        """Whether the log behind the newest complete snapshot is so long that restarts become slow: earlier
        snapshots were not completed in time."""
        return self._bytes_begun + self._bytes_since > URGENT_TIMES * self._max_bytes

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
        """Return when a snapshot becomes due by time alone, or None."""
        if self._in_progress or self._started_ms is None or self._max_interval_ms == 0:
            return None
        return self._started_ms + self._max_interval_ms

    def started(self) -> None:
        """Start counting again, because a snapshot of all counted batches is being made."""
        self._in_progress = True
        self._bytes_begun += self._bytes_since
        self._bytes_since = 0
        self._started_ms = None

    def forget(self) -> None:
        """Forget what was counted: a snapshot of another node covers it, or none can."""
        self._bytes_begun = self._bytes_since = 0
        self._started_ms = None

    def written(self) -> None:
        """Allow the next snapshot, because the last one is complete."""
        self._in_progress = False
        self._bytes_begun = 0

    def failed(self) -> None:
        """Allow the next snapshot, because the last one has failed."""
        self._in_progress = False
