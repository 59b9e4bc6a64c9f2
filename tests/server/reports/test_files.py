"""Reports of the log's files: what needs an operator and what doesn't."""

from __future__ import annotations

import logging

import pytest

from kraft_wire.server.reports.files import report_truncation


def test_a_truncation_of_uncommitted_records_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    report_truncation(old_end_offset=12, new_end_offset=11, deleted_bytes=96)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "log truncated")
    ]
