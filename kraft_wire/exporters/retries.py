"""Decide how long to wait before the next attempt: longer each time, for ever, and never all at once."""

from __future__ import annotations

from typing import Final

FIRST_PAUSE_MS: Final = 200
LONGEST_PAUSE_MS: Final = 30_000
_MOST_DOUBLINGS: Final = 16


def pause_ms(failures: int, jitter: float) -> int:
    """Return the pause after so many failures in a row (1, 2, …). ``jitter`` is a random number in [0, 1):
    the pause is between half of the full one and all of it."""
    full_ms = min(FIRST_PAUSE_MS << min(failures - 1, _MOST_DOUBLINGS), LONGEST_PAUSE_MS)
    return round(full_ms * (1 + jitter) / 2)
