"""Bugs in what exporters export, and in the positions that controllers keep of them."""

from __future__ import annotations

from kraft_wire.exporters.cursor import Cursor, LogView
from kraft_wire.sim.population.exporters import NodeExporter
from tests.sim.planting import Bugs, Patch

EXPORTING = Bugs()
bug = EXPORTING.bug


@bug("ExportedIsCommitted")
def a_new_leader_exports_before_it_knows_what_is_committed(patch: Patch) -> None:
    """It takes a position above its high watermark for lost records."""
    patch.attribute(NodeExporter, "_leads", property(lambda self: self._node.leading is not None))


@bug("ExportedIsCommitted")
def records_are_exported_when_they_are_appended(patch: Patch) -> None:
    real = Cursor.advanced

    def tick(self: NodeExporter) -> None:
        real_tick(self)
        if self._cursor is not None and self._node.is_up:
            real(self._cursor, self._node.disk.end_offset)

    real_tick = NodeExporter._tick
    patch.attribute(NodeExporter, "_tick", tick)


@bug("PositionIsAcknowledged")
def what_was_sent_counts_as_exported(patch: Patch) -> None:
    real = NodeExporter._answered

    def answered(self: NodeExporter, run: int, life: int, is_acknowledged: bool) -> None:
        real(self, run, life, True)

    patch.attribute(NodeExporter, "_answered", answered)


@bug("NothingIsMissing")
def a_batch_that_failed_is_left_out(patch: Patch) -> None:
    real = Cursor.failed

    def failed(self: Cursor, now_ms: int, jitter: float) -> int:
        self._has_batch = False
        return real(self, now_ms, jitter)

    patch.attribute(Cursor, "failed", failed)


@bug("NothingIsMissing")
def a_gap_is_not_told(patch: Patch) -> None:
    real = Cursor.looked

    def looked(self: Cursor, view: LogView) -> object:
        restart = real(self, view)
        self.resync = None
        return restart

    patch.attribute(Cursor, "looked", looked)


@bug("NothingIsMissing")
def a_gap_is_told_once_though_it_grew(patch: Patch) -> None:
    """The snapshot that stands for it was replaced by another before the sink had it."""
    real = Cursor._begin_with_state

    def begin_with_state(self: Cursor, view: LogView) -> None:
        told = self.resync
        real(self, view)
        self.resync = told or (self.resync if self.position is None and self._read_to is None else None)

    patch.attribute(Cursor, "_begin_with_state", begin_with_state)


@bug("EventuallyExported")
def an_exporter_gives_up(patch: Patch) -> None:
    real = Cursor.failed

    def failed(self: Cursor, now_ms: int, jitter: float) -> int:
        pause_ms = real(self, now_ms, jitter)
        self._retry_at_ms = now_ms + (10**9 if self.failures > 2 else pause_ms)
        return pause_ms

    patch.attribute(Cursor, "failed", failed)
