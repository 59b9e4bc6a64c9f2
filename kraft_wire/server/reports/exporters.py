"""Log what happens to the exporters of the active controller."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import trio

from kraft_wire.exporters.messages import Failing, NoBase, Recovered, Restarted
from kraft_wire.server.logging import get_logger
from kraft_wire.server.network.complaints import WarningLimit

log = get_logger(__name__)

FAILING_INTERVAL_S: Final = 60.0
"""An exporter that fails is reported once in this time."""


class ExporterReports:
    """The log of the exporters. An exporter that fails again and again doesn't fill it."""

    def __init__(self) -> None:
        self._limits: dict[tuple[str, bool], WarningLimit] = {}

    def started(self, exporters: Sequence[str], pid: int, high_watermark: int) -> None:
        log.info("exporters started", exporters=list(exporters), pid=pid, high_watermark=high_watermark)

    def stopped(self, *, is_active: bool) -> None:
        lost, ordered = "this node is no longer the active controller", "there are new orders for them"
        log.info("exporters stopped", reason=ordered if is_active else lost)

    def reset(self, exporter: str, reset: str) -> None:
        """Log that an operator let an exporter begin again."""
        log.warning("exporter reset", exporter=exporter, reset=reset)

    def ended(self, problem: str, retry_ms: int) -> None:
        """Log that the process of the exporters ended, although nobody stopped it."""
        log.error("exporters ended", reason=problem, retry_ms=retry_ms)

    def failing(self, told: Failing) -> None:
        is_bug = bool(told.traceback)
        limit = self._limits.setdefault((told.exporter, is_bug), WarningLimit(FAILING_INTERVAL_S))
        if not limit.add(trio.current_time()):
            return
        fields = {"traceback": told.traceback} if is_bug else {}
        report = log.error if is_bug else log.warning
        report(
            "exporter failing",
            exporter=told.exporter,
            reason=told.problem,
            failures=told.failures,
            retry_ms=told.retry_ms,
            **fields,
        )

    def recovered(self, told: Recovered) -> None:
        for is_bug in (False, True):
            self._limits.pop((told.exporter, is_bug), None)
        log.info("exporter recovered", exporter=told.exporter, failures=told.failures)

    def restarted(self, told: Restarted) -> None:
        log.warning(
            "exporter restarted",
            exporter=told.exporter,
            position=told.position,
            reason=told.reason,
            snapshot_end_offset=told.snapshot_end,
        )

    def no_base(self, told: NoBase) -> None:
        log.warning(
            "exporter state not kept",
            exporter=told.exporter,
            reason=told.reason,
            effect="if the log is deleted before the sink has its records, it gets the whole state",
        )

    def bases_left(self, problem: str) -> None:
        """Log that the states that an earlier run kept couldn't be deleted."""
        log.error("exporter states not deleted", error=problem)

    def positions_lost(self, path: Path, problem: str) -> None:
        """Log that the file of the positions can't be used."""
        log.error(
            "exporter positions unusable",
            file=str(path),
            error=problem,
            effect="exporters begin where their keys `start` say",
        )

    def positions_not_kept(self, problem: str) -> None:
        """Log that positions couldn't be written; they are written again with the next change."""
        log.error("exporter positions not written", error=problem)
