"""Refusals are reported now and then."""

from __future__ import annotations

from kraft_wire.raft.door.report_limit import REPORT_EVERY_MS, ReportLimit


def test_a_refusal_is_reported_once_a_second() -> None:
    limit = ReportLimit()
    assert limit.take(0)
    assert not limit.take(REPORT_EVERY_MS - 1)
    assert limit.take(REPORT_EVERY_MS)
