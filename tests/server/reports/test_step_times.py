"""Steps are counted by the time that they take, and slow ones are named."""

from __future__ import annotations

import logging

import pytest
import trio
import trio.testing

from kraft_wire.controller.node.effects import RecordsAppended
from kraft_wire.controller.node.events import ApiRequest, Caller
from kraft_wire.protocol.messages.create_topics_request import CreateTopicsRequest
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.raft.events import Tick
from kraft_wire.server.reports.step_times import BOUNDS_MS, REPORT_SECONDS, StepTimes


def test_a_slow_step_is_a_warning_that_says_what_it_did(caplog: pytest.LogCaptureFixture) -> None:
    times = StepTimes()
    request = ApiRequest(None, CreateTopicsRequest.API_KEY, 7, CreateTopicsRequest(), Caller(""))
    times.note(Tick(), [], 99.9)
    assert not caplog.records
    times.note(
        request, [RecordsAppended([(NoOpRecord(), 0)] * 3), RecordsAppended([(NoOpRecord(), 0)])], 120.4
    )
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    for part in ("slow step", "CreateTopics", "120", "4"):
        assert part in str(record.__dict__)


async def test_the_histogram_is_logged_every_hour(
    caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    caplog.set_level(logging.INFO)
    times = StepTimes()
    times.note(Tick(), [], 3.0)
    with trio.move_on_after(2.5 * REPORT_SECONDS):
        await times.report_regularly()
    assert [record.message for record in caplog.records] == ["step duration"] * 2


def test_every_step_is_in_one_class() -> None:
    times = StepTimes()
    for took_ms in (0.2, 1.0, 1.1, 100.0, 1000.0, 1000.1, 9000.0):
        times.note(Tick(), [], took_ms)
    classes = dict(zip([*BOUNDS_MS, "above"], times.counts, strict=True))
    assert {bound: count for bound, count in classes.items() if count} == {
        1: 2,
        2: 1,
        100: 1,
        1000: 1,
        "above": 2,
    }
    assert times.longest_ms == 9000.0
