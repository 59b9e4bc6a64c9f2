"""Read the clocks: only the server has any."""

from __future__ import annotations

import time

import trio

from kraft_wire.raft.events import Now


def monotonic_ms() -> int:
    """Return the time of the clock that never goes back, in milliseconds."""
    return int(trio.current_time() * 1000)


def read_clocks() -> Now:
    """Return the time by both clocks."""
    return Now(monotonic_ms=monotonic_ms(), wall_ms=time.time_ns() // 1_000_000)
