"""Readings of the process, which the node doesn't have: disk, traffic, event loop, log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kraft_wire.metrics.counts import Counts
from kraft_wire.metrics.exporters import Exporters
from kraft_wire.metrics.windows import Histogram, RecentGrowth, quantile
from kraft_wire.wire.traffic import Traffic

Value = float | Mapping[str, float] | Histogram | Mapping[str, Histogram]
"""A number or a histogram of milliseconds, or some by the value of the only label."""

QUANTILES: Final = (0.5, 0.75, 0.95, 0.99, 0.999)


class DiskUse(msgspec.Struct, frozen=True):
    """The log's bytes; the bytes of its file system, and those that are free there."""

    log_bytes: int = 0
    size_bytes: int = 0
    free_bytes: int = 0


class Process(msgspec.Struct, frozen=True):
    """The values of the process.

    ``steps`` are the times of the node's steps, ``delays`` those for which the event loop let a probe wait,
    and ``cpu_ms`` is the time for which it used the CPU since the counts began. ``traffic`` are the bytes of
    the connections to other controllers. ``warnings`` count the events of warnings and errors in the log.
    ``has_static_voters``: controller.quorum.voters is configured. ``exporters`` are those of this node.
    """

    steps: Histogram
    delays: Histogram
    cpu_ms: float
    traffic: Traffic
    disk: DiskUse
    warnings: Mapping[str, int]
    has_static_voters: bool
    exporters: Exporters = Exporters()


def event_loop(counts: Counts, process: Process, now_ms: int) -> dict[str, Value]:
    """Return the values of the event loop by name."""
    cpu_ms, elapsed_ms = counts.recent_cpu.since(now_ms, (process.cpu_ms, now_ms - counts.started_ms))
    return {
        "steps": sum(process.steps.counts),
        "step_duration_seconds": process.steps,
        "step_duration_quantile_seconds": _quantiles(process.steps, counts.recent_steps, now_ms),
        "event_loop_delay_seconds": process.delays,
        "event_loop_delay_quantile_seconds": _quantiles(process.delays, counts.recent_delays, now_ms),
        "event_loop_idle_ratio": min(1.0, max(0.0, 1 - cpu_ms / elapsed_ms)) if elapsed_ms else 1.0,
    }


def _quantiles(histogram: Histogram, recent: RecentGrowth, now_ms: int) -> dict[str, float]:
    counts = recent.since(now_ms, histogram.counts)
    return {str(share): quantile(histogram.bounds, counts, share) / 1000 for share in QUANTILES}
