"""The figures of exporters."""

from __future__ import annotations

from kraft_wire.metrics.exporters import ExporterFigures, Exporters, exporter_values


def test_failures_are_counted_once_each_though_only_the_last_of_a_row_may_be_told() -> None:
    figures = ExporterFigures()
    for in_a_row in (1, 4, 5):
        figures.failed(in_a_row)
    assert (figures.failures, figures.is_failing) == (5, True)
    figures.recovered()
    figures.failed(1)
    assert figures.failures == 6


def test_an_attempt_that_hangs_fails_without_being_a_failure() -> None:
    figures = ExporterFigures()
    figures.failed(0)
    assert (figures.failures, figures.is_failing) == (0, True)


def test_only_the_active_controller_knows_who_lags() -> None:
    audit, idle = ExporterFigures(advanced_ms=1000, is_failing=True), ExporterFigures(advanced_ms=1000)
    exporters = Exporters({"audit": audit, "idle": idle}, {"audit": 90, "idle": 100})
    active = exporter_values(exporters, 100, is_exporting=True, now_ms=3500)
    assert active["exporter_lag_records"] == {"audit": 10, "idle": 0}
    assert active["exporter_lag_seconds"] == {"audit": 2.5, "idle": 0}
    assert active["exporters_failing"] == {"audit": 1, "idle": 0}
    standby = exporter_values(exporters, 100, is_exporting=False, now_ms=3500)
    assert standby["exporter_lag_records"] == standby["exporter_lag_seconds"] == {}
    assert standby["exporters_failing"] == {"audit": 0, "idle": 0}
    assert standby["exporter_position"] == {"audit": 90, "idle": 100}


def test_a_paused_exporter_has_no_time_since_it_exported() -> None:
    exporters = Exporters({"audit": ExporterFigures(advanced_ms=1000, is_paused=True)}, {"audit": 90})
    active = exporter_values(exporters, 100, is_exporting=True, now_ms=900_000)
    assert active["exporters_paused"] == {"audit": 1}
    assert active["exporter_lag_records"] == {"audit": 10}
    assert active["exporter_lag_seconds"] == {}
    assert exporter_values(exporters, 100, is_exporting=False, now_ms=0)["exporters_paused"] == {"audit": 0}


def test_an_exporter_without_a_position_has_no_lag() -> None:
    values = exporter_values(Exporters({"new": ExporterFigures()}), 100, is_exporting=True, now_ms=0)
    assert values["exporter_lag_records"] == values["exporter_position"] == {}
