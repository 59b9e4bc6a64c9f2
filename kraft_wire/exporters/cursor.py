"""Decide what an exporter does next: look at the folder, read, open its sink, send, wait. No I/O, no clock.

The owner of a ``Cursor`` asks for the next step, takes it, and reports how it went. At most one batch is
between reading and acknowledgement: an exporter whose sink is slow stops reading.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from kraft_wire.configs.exporter_orders import SNAPSHOT_AND_TAIL, TAIL, Start
from kraft_wire.exporters.retries import pause_ms
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.own_messages.resync import Resync

PACE_MS: Final = 50
"""The time from one reading of new records to the next, unless there is a backlog: a sink flushes at most so
often."""


class LogView(NamedTuple):
    """The beginning of the log in a folder, and its newest snapshot; None if there is none. ``base`` is the
    offset below which the exporter has kept the state itself."""

    start_offset: int
    snapshot: SnapshotId | None
    base: int | None = None


class Look(msgspec.Struct, frozen=True):
    """List the folder, and report ``looked``."""


class ReadLog(msgspec.Struct, frozen=True):
    """Read records from ``offset`` on, below ``end_offset``, and report ``has_read``, or ``must_look`` if the
    log begins later."""

    offset: int
    end_offset: int


class ReadSnapshot(msgspec.Struct, frozen=True):
    """Read the next records of the snapshot, and report ``has_read``, or ``must_look`` if it isn't there.
    With a ``base``, only its difference from the state below that offset is read."""

    snapshot_id: SnapshotId
    base: int | None = None


class Open(msgspec.Struct, frozen=True):
    """Open the sink, and report ``opened`` or ``failed``."""


class Send(msgspec.Struct, frozen=True):
    """Send the batch that was read, and report ``sent`` or ``failed``."""


class Wait(msgspec.Struct, frozen=True):
    """Do nothing until this time, or until the high watermark advances; None for no time."""

    until_ms: int | None


Step = Look | ReadLog | ReadSnapshot | Open | Send | Wait


class Restart(NamedTuple):
    """The exporter can't go on from ``position`` for the ``reason``. It begins with the newest snapshot,
    which ends at ``snapshot_end``; None if there is none, and it begins with the log."""

    position: int
    reason: str
    snapshot_end: int | None


class Cursor:
    """The place of one exporter.

    ``position`` is the offset after the last record that the sink has acknowledged; None while nothing is
    acknowledged. Offsets below it are never read again, unless the log has lost them. The next batch must
    begin with ``resync``, unless it is None. Times are monotonic milliseconds.
    """

    def __init__(
        self, start: Start, position: int | None, high_watermark: int, pace_ms: int = PACE_MS
    ) -> None:
        self.position = position
        self.failures = 0
        self.resync: Resync | None = None
        self._missed_from: int | None = None
        """The first offset that the sink has missed, until it has the state that stands for it."""
        self._pace_ms = max(PACE_MS, pace_ms)
        self._has_begun_difference = False
        """Whether the sink has a part of a difference, which another one wouldn't go with."""
        self._start = start
        self._high_watermark = high_watermark
        self._offset: int | None = None
        self._snapshot: ReadSnapshot | None = None
        self._read_to: int | None = None
        """The offset that is acknowledged with the batch that was read; None if there is no such batch, or if
        it is a part of a snapshot."""
        self._has_batch = False
        self._is_open = False
        self._is_backlog = True
        self._next_reading_ms = 0
        self._retry_at_ms: int | None = None

    def next_step(self, now_ms: int) -> Step:
        """Return what to do now."""
        if self._retry_at_ms is not None and now_ms < self._retry_at_ms:
            return Wait(self._retry_at_ms)
        if self._has_batch:
            return Send() if self._is_open else Open()
        if self._snapshot is not None:
            return self._snapshot
        if self._offset is None:
            return Look()
        if self._offset >= self._high_watermark:
            return Wait(None)
        if not self._is_backlog and now_ms < self._next_reading_ms:
            return Wait(self._next_reading_ms)
        return ReadLog(self._offset, self._high_watermark)

    def state_to_keep(self, view: LogView) -> int | None:
        """Return the offset below which the state must be kept; None if there is no need, or no way.

        The log may be deleted up to the newest snapshot before the sink has its records, or was. A batch that
        was read is sent in any case.
        """
        if self._missed_from is not None:
            return self._missed_from if view.base == self._missed_from else None
        will_have = self._read_to if self._has_batch and self._read_to is not None else self.position
        if not will_have or view.snapshot is None or will_have >= view.snapshot.end_offset:
            return None
        return will_have if will_have >= view.start_offset or view.base == will_have else None

    # Reports.

    def advanced(self, high_watermark: int) -> None:
        """Take note that everything below this offset is committed."""
        self._high_watermark = max(self._high_watermark, high_watermark)

    def looked(self, view: LogView) -> Restart | None:
        """Choose where to begin. Returns the restart if that isn't where the exporter should go on."""
        reason = self._why_not_from(view)
        if reason:
            return self._begin_again(view, reason)
        if self.position is not None:
            self._offset = self.position
        elif self._start == TAIL:
            self._offset = self.position = self._high_watermark
        elif self._start == SNAPSHOT_AND_TAIL:
            self._begin_with_state(view)
        else:
            self._offset = int(self._start)
        return None

    def has_read(self, next_offset: int | None, now_ms: int, *, has_records: bool, is_backlog: bool) -> None:
        """Take note of what was read up to ``next_offset``; None for a part of a snapshot that isn't its end.

        Without records there is nothing to send, and the position moves on. ``is_backlog``: there is more to
        read at once.
        """
        self._is_backlog = is_backlog
        self._next_reading_ms = now_ms + self._pace_ms
        if next_offset is not None:
            self._offset, self._snapshot = next_offset, None
        self._read_to, self._has_batch = next_offset, has_records
        if not has_records:
            self._acknowledge()

    def opened(self) -> None:
        """Take note that the sink is open."""
        self._is_open = True

    def sent(self) -> None:
        """Take note that the sink has the batch for good."""
        self._has_batch = False
        if self.resync is not None:
            self._has_begun_difference = self.resync.is_difference
            self.resync = None
        self._acknowledge()

    def failed(self, now_ms: int, jitter: float) -> int:
        """Take note that a step failed; returns the pause in milliseconds. The sink must be opened again."""
        self._is_open = False
        self.failures += 1
        pause = pause_ms(self.failures, jitter)
        self._retry_at_ms = now_ms + pause
        return pause

    def must_look(self) -> None:
        """Take note that what should be read isn't there, or can't be read: the folder is listed again."""
        self._offset = self._snapshot = None

    def _acknowledge(self) -> None:
        self.failures = 0
        self._retry_at_ms = None
        if self._read_to is not None:
            self.position, self._missed_from = self._read_to, None
            self._has_begun_difference = False

    @property
    def _wanted(self) -> Start:
        """The offset from which the exporter goes on, or the word for its start."""
        return self._start if self.position is None else self.position

    def _why_not_from(self, view: LogView) -> str:
        """Return why the log doesn't lead on from where the exporter is; "" if it does."""
        wanted = self._wanted
        if not isinstance(wanted, int):
            return ""
        if wanted < view.start_offset:
            return f"the log begins at offset {view.start_offset}"
        if self.position is not None and wanted > self._high_watermark:
            return f"only offsets below {self._high_watermark} are committed: the log has lost records"
        return ""

    def _begin_again(self, view: LogView, reason: str) -> Restart:
        position = self._wanted if isinstance(self._wanted, int) else view.start_offset
        self.position, self._start, self._missed_from = None, SNAPSHOT_AND_TAIL, position
        self._begin_with_state(view)
        return Restart(position, reason, None if view.snapshot is None else view.snapshot.end_offset)

    def _begin_with_state(self, view: LogView) -> None:
        base: int | None = None
        if view.snapshot is None:
            end = self._offset = view.start_offset
        else:
            end = view.snapshot.end_offset
            if view.base == self._missed_from and not self._has_begun_difference:
                base = view.base
            self._snapshot = ReadSnapshot(view.snapshot, base)
        if self._missed_from is not None:
            self.resync = Resync(self._missed_from, end, is_difference=base is not None)
