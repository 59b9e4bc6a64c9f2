"""Wait for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.support.controller_process import GIVE_UP_S

POLL_S = 0.05


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition. Raises AssertionError that says what didn't happen."""
    deadline_s = time.monotonic() + GIVE_UP_S
    while not condition():
        assert time.monotonic() < deadline_s, f"timed out waiting for {what}"
        time.sleep(POLL_S)
