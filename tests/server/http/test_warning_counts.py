"""Warnings and errors of the log are counted by their event."""

from __future__ import annotations

import logging

from kraft_wire.server.http.warning_counts import WarningCounts
from kraft_wire.server.logging import get_logger


def test_warnings_and_errors_of_this_package_count() -> None:
    log, counts = get_logger("kraft_wire.some.module"), WarningCounts()
    log.warning("slow step")
    with counts.counting():
        log.warning("slow step", took_ms=120)
        log.error("slow step", took_ms=130)
        log.error("snapshot failed")
        log.info("listening")
        logging.getLogger("trio").warning("anything")
    log.error("snapshot failed")
    assert counts.by_event == {"slow step": 2, "snapshot failed": 1}
