"""Count what the exporters of a controller do."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class ExporterFigures(msgspec.Struct):
    """The counts of one exporter since the controller started. ``advanced_ms`` is the monotonic time at which
    it last exported something, or at which it had to begin."""

    failures: int = 0
    failures_in_a_row: int = 0
    restarts: int = 0
    is_failing: bool = False
    is_paused: bool = False
    advanced_ms: int = 0

    def failed(self, in_a_row: int) -> None:
        """Note that so many attempts in a row have failed; 0 is one that hangs."""
        self.failures += max(0, in_a_row - self.failures_in_a_row)
        self.failures_in_a_row = in_a_row
        self.is_failing = True

    def advanced(self, now_ms: int) -> None:
        """Note that something was exported."""
        self.advanced_ms = now_ms

    def recovered(self) -> None:
        """Note that something was exported after failures."""
        self.failures_in_a_row = 0
        self.is_failing = False


class Exporters(msgspec.Struct, frozen=True):
    """The exporters of a node by name: their figures, and the offsets up to which they have exported, as far
    as this node knows."""

    figures: Mapping[str, ExporterFigures] = {}
    positions: Mapping[str, int] = {}


def exporter_values(
    exporters: Exporters, high_watermark: int, *, is_exporting: bool, now_ms: int
) -> dict[str, dict[str, float]]:
    """Return the values by name. Nodes that don't export don't know who lags: only the active controller and
    observers do."""
    figures, positions = exporters.figures, exporters.positions
    values: dict[str, dict[str, float]] = {
        "exporter_position": dict(positions),
        "exporter_failures": {name: each.failures for name, each in figures.items()},
        "exporters_restarted": {name: each.restarts for name, each in figures.items()},
        "exporters_failing": {name: int(is_exporting and each.is_failing) for name, each in figures.items()},
    }
    values["exporters_paused"] = {
        name: int(is_exporting and each.is_paused) for name, each in figures.items()
    }
    lags = {name: max(0, high_watermark - position) for name, position in positions.items()}
    values["exporter_lag_records"] = dict(lags) if is_exporting else {}
    values["exporter_lag_seconds"] = {
        name: max(0, now_ms - figures[name].advanced_ms) / 1000 if lag else 0
        for name, lag in lags.items()
        if is_exporting and name in figures and not figures[name].is_paused
    }
    return values
