"""Prometheus reads our rules, and a test sets off each alarm."""

from __future__ import annotations

import subprocess
from importlib import import_module

from compat.harness.prometheus import RULES, alarm_names, find_program
from compat.interop.monitoring.watched import COVERED


def test_prometheus_reads_the_rules() -> None:
    done = subprocess.run(
        [find_program("promtool"), "check", "rules", str(RULES)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(alarm_names())} rules found" in done.stdout


def test_every_alarm_is_set_off_by_a_test() -> None:
    for module in ("test_quorum_alarms", "test_storage_alarms", "test_cluster_alarms"):
        import_module(f"compat.interop.monitoring.{module}")
    assert set(alarm_names()) == COVERED
