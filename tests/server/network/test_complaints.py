"""What clients do wrong is logged, but not each time."""

from __future__ import annotations

import logging

import pytest
import trio

from kraft_wire.server.network.complaints import (
    MISTAKE_INTERVAL_S,
    MOST_MISTAKES,
    REFUSAL_INTERVAL_S,
    Mistakes,
    Refusals,
    WarningLimit,
)


def test_one_number_an_interval_and_all_are_counted() -> None:
    limit = WarningLimit(10.0)
    assert [limit.add(now_s) for now_s in (5.0, 5.0, 14.9, 15.0, 15.1, 30.0, 40.0)] == [1, 0, 0, 3, 0, 2, 1]


def test_the_rest_is_returned_once_when_the_interval_is_over() -> None:
    limit = WarningLimit(10.0)
    assert [limit.add(now_s) for now_s in (5.0, 6.0, 7.0)] == [1, 0, 0]
    assert [limit.rest(now_s) for now_s in (14.9, 15.0, 15.0)] == [0, 2, 0]


def test_some_numbers_an_interval() -> None:
    limit = WarningLimit(10.0, most=2)
    assert [limit.add(now_s) for now_s in (5.0, 6.0, 7.0, 15.0, 15.0, 16.0)] == [1, 1, 0, 2, 1, 0]


def _fields(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [record.__dict__["fields"] for record in caplog.records]


async def test_many_refused_connections_are_one_warning_an_interval(
    caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    refusals = Refusals()
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            refusals.add("CONTROLLER", "too many connections", 7)
        await trio.sleep(REFUSAL_INTERVAL_S)
        refusals.add("CONTROLLER", "too many connections", 7)
    assert [fields["refused"] for fields in _fields(caplog)] == [1, 50]


async def test_many_mistakes_are_a_few_warnings_a_second(
    caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    mistakes = Mistakes()
    with caplog.at_level(logging.WARNING):
        for number in range(1000):
            mistakes.add(f"127.0.0.1:{number}", f"fault {number}")
        await trio.sleep(MISTAKE_INTERVAL_S)
        mistakes.add("127.0.0.1:2000", "fault 2000")
    *first, last = _fields(caplog)
    assert [fields["error"] for fields in first] == [f"fault {number}" for number in range(MOST_MISTAKES)]
    assert first[0] == {"peer": "127.0.0.1:0", "reason": "bad request", "error": "fault 0"}
    assert last == {
        "peer": "127.0.0.1:2000",
        "reason": "bad request",
        "error": "fault 2000",
        "left_out": 1000 - MOST_MISTAKES,
    }


async def test_what_was_left_out_last_is_told_later(
    caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    mistakes, refusals = Mistakes(), Refusals()
    with caplog.at_level(logging.WARNING):
        for _ in range(MOST_MISTAKES + 3):
            mistakes.add("127.0.0.1:1", "a fault")
            refusals.add("CONTROLLER", "too many connections", 7)
        caplog.clear()
        for _ in range(2):
            await trio.sleep(REFUSAL_INTERVAL_S)
            mistakes.report_rest()
            refusals.report_rest()
    assert _fields(caplog) == [
        {"left_out": 3},
        {"listener": "CONTROLLER", "reason": "too many connections", "refused": MOST_MISTAKES + 2},
    ]
