"""Marks of axes, and the format of times and numbers."""

from __future__ import annotations

import pytest

from kraft_wire.lake.report.scales import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Span,
    duration_text,
    number_marks,
    number_text,
    time_marks,
    time_step,
)


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (12_340, "12.3 s"),
        (60_000, "1 min"),
        (200_000, "3 min 20 s"),
        (3_600_000, "1 h"),
        (18_600_000, "5 h 10 min"),
        (DAY_MS, "1 d"),
        (28 * DAY_MS + 14 * HOUR_MS, "28 d 14 h"),
        (400 * DAY_MS, "400 d"),
    ],
)
def test_durations(duration_ms: int, text: str) -> None:
    assert duration_text(duration_ms) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1_859_052, "1,859,052"),
        (1.25, "1.2"),
        (0.052, "0.052"),
        (123.6, "124"),
        (3.0, "3"),
    ],
)
def test_numbers(number: float, text: str) -> None:
    assert number_text(number) == text


@pytest.mark.parametrize(
    ("most", "marks"),
    [
        (0, [0]),
        (1, [0, 0.5, 1]),
        (3, [0, 1, 2, 3]),
        (100, [0, 50, 100]),
        (101, [0, 50, 100, 150]),
        (2067, [0, 1000, 2000, 3000]),
        (0.3, [0, 0.1, 0.2, 0.3]),
    ],
)
def test_marks_of_numbers_are_round_and_reach_the_largest(most: float, marks: list[float]) -> None:
    assert number_marks(most) == pytest.approx(marks)


def test_marks_of_times_are_round_and_within() -> None:
    span = Span(7 * HOUR_MS + 1, 7 * HOUR_MS + 61 * MINUTE_MS)
    assert time_marks(span) == [
        (7 * HOUR_MS + n * 15 * MINUTE_MS, f"01-01 {text}")
        for n, text in ((1, "07:15"), (2, "07:30"), (3, "07:45"), (4, "08:00"))
    ]
    days = [text for _, text in time_marks(Span(0, 12 * DAY_MS))]
    assert days == [f"1970-01-{day:02}" for day in (1, 3, 5, 7, 9, 11, 13)]


@pytest.mark.parametrize("length_ms", [1, 1000, HOUR_MS, 40 * DAY_MS, 100_000 * DAY_MS])
def test_a_step_makes_no_more_than_so_many(length_ms: int) -> None:
    assert length_ms / time_step(Span(0, length_ms), 150) <= 150
