"""Bound how often refused requests are reported: anybody can send thousands."""

from __future__ import annotations

from typing import Final

REPORT_EVERY_MS: Final = 1000


class ReportLimit:
    """One report each ``REPORT_EVERY_MS``."""

    __slots__ = ("_next_report_ms",)

    def __init__(self) -> None:
        self._next_report_ms = 0

    def take(self, now_ms: int) -> bool:
        """Note a report. Returns False if the one before was less than ``REPORT_EVERY_MS`` ago."""
        if now_ms < self._next_report_ms:
            return False
        self._next_report_ms = now_ms + REPORT_EVERY_MS
        return True
