"""Prometheus reads our rules and what our dashboard asks, and a test sets off each alarm."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from compat.harness.prometheus import RULES, alarm_names, find_program, pause_between_scrapes
from compat.interop.monitoring.watched import COVERED, Site, write
from tests.support.dashboards import panels


def test_prometheus_reads_the_rules() -> None:
    done = subprocess.run(
        [find_program("promtool"), "check", "rules", str(RULES)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(alarm_names())} rules found" in done.stdout


def test_prometheus_has_data_for_every_panel(site: Site, tmp_path: Path) -> None:
    exporter = {"kraft.wire.exporters": "audit", "kraft.wire.exporter.audit.type": "jsonl"}
    keys = {**exporter, "kraft.wire.exporter.audit.path": str(tmp_path / "audit")}
    with site.led("panels", properties=keys) as quorum:
        write(quorum.leader(), 50)
        empty = {title for title, text in _panels("panels") if not _has_data(site, text)}
    assert empty == WITHOUT_DATA


WITHOUT_DATA = {"Checks of /readyz", "Refused requests", "Silence of brokers", "Warnings of the log"}
"""The panels that have nothing to show without brokers and faults."""
VARIABLES = {"$__rate_interval": "20s", "$__range": "20s"}


def _panels(job: str) -> Iterator[tuple[str, str]]:
    for panel in panels():
        for target in panel["targets"]:
            text = target["expr"]
            for name, value in {**VARIABLES, "$job": job}.items():
                text = text.replace(name, value)
            yield panel["title"], text


def _has_data(site: Site, expression: str) -> bool:
    """Whether an expression has results, now or after some scrapes."""
    for _ in range(4):
        if site.prometheus.value(expression) is not None:
            return True
        pause_between_scrapes()
    return False


def test_every_alarm_is_set_off_by_a_test() -> None:
    for module in ("test_quorum_alarms", "test_storage_alarms", "test_cluster_alarms"):
        import_module(f"compat.interop.monitoring.{module}")
    assert set(alarm_names()) == COVERED
