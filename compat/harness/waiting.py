"""Wait for a condition, never for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

POLL_INTERVAL_S: Final = 0.05
PATIENCE_S: Final = 180.0
"""How long to wait for what must happen. Only a failing test waits so long; a machine may be very busy."""


class WaitTimeout(AssertionError):
    """The condition did not become true in time."""


def wait_until(condition: Callable[[], T], what: str, timeout_s: float = PATIENCE_S) -> T:
    """Poll ``condition`` until it returns a true value, and return that value.

    ``what`` completes the sentence "timed out waiting for ..."; the error also names the last value.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise WaitTimeout(f"timed out after {timeout_s:g} s waiting for {what}; last seen: {value!r}")
        time.sleep(POLL_INTERVAL_S)
