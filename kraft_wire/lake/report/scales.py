"""Place the marks of an axis, and write times and numbers."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final, NamedTuple

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

_STEPS: Final = (
    *(SECOND_MS * n for n in (1, 2, 5, 10, 15, 30)),
    *(MINUTE_MS * n for n in (1, 2, 5, 10, 15, 30)),
    *(HOUR_MS * n for n in (1, 2, 3, 6, 12)),
    *(DAY_MS * n for n in (1, 2, 7, 14, 28, 91, 182, 364)),
)
"""The steps of time that people count in, in milliseconds."""


class Span(NamedTuple):
    """The time from one moment to another, in milliseconds since 1970."""

    start_ms: int
    end_ms: int

    @property
    def length_ms(self) -> int:
        return self.end_ms - self.start_ms


def time_step(span: Span, at_most: int) -> int:
    """Return the shortest step, in milliseconds, that divides the span into at most ``at_most`` parts."""
    least = span.length_ms / at_most
    return next((step for step in _STEPS if step >= least), _STEPS[-1] * math.ceil(least / _STEPS[-1]))


def time_marks(span: Span, at_most: int = 6) -> list[tuple[int, str]]:
    """Return round times within the span and their texts, in UTC."""
    step = time_step(span, at_most)
    first = -(-span.start_ms // step) * step
    return [(time_ms, _mark(time_ms, step)) for time_ms in range(first, span.end_ms + 1, step)]


def _mark(time_ms: int, step: int) -> str:
    if step >= DAY_MS:
        return _utc(time_ms).strftime("%Y-%m-%d")
    return _utc(time_ms).strftime("%m-%d %H:%M" if step >= MINUTE_MS else "%H:%M:%S")


def number_marks(most: float, at_most: int = 4) -> list[float]:
    """Return round numbers from 0 on; the last one is at least ``most``."""
    least = max(most, 1e-9) / at_most
    power = 10.0 ** math.floor(math.log10(least))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))
    return [step * n for n in range(math.ceil(most / step - 1e-9) + 1)]


def time_text(time_ms: int) -> str:
    return _utc(time_ms).strftime("%Y-%m-%d %H:%M:%S")


def _utc(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)


def duration_text(duration_ms: float) -> str:
    """Write a duration in at most two units: 250 ms, 12.3 s, 3 min 20 s, 5 h 10 min, 3 d 4 h."""
    if duration_ms < SECOND_MS:
        return f"{duration_ms:.0f} ms"
    if duration_ms < MINUTE_MS:
        return f"{duration_ms / SECOND_MS:.1f} s"
    for unit, smaller, name, smaller_name in _UNITS:
        if duration_ms < _LIMITS[name]:
            whole, rest = divmod(round(duration_ms / smaller), unit // smaller)
            return f"{whole} {name} {rest} {smaller_name}" if rest else f"{whole} {name}"
    return f"{duration_ms / DAY_MS:,.0f} d"


_UNITS: Final = (
    (MINUTE_MS, SECOND_MS, "min", "s"),
    (HOUR_MS, MINUTE_MS, "h", "min"),
    (DAY_MS, HOUR_MS, "d", "h"),
)
_LIMITS: Final = {"min": HOUR_MS, "h": DAY_MS, "d": 100 * DAY_MS}


def number_text(number: float) -> str:
    """Write a number with thousands' commas, and with decimals only if they matter. There is no -0."""
    number = number or 0
    if number == int(number) or abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:,.2g}" if abs(number) < 1 else f"{number:,.1f}"
