"""Simulate a machine's clocks: a monotonic clock that drifts, and a wall clock that can jump."""

from __future__ import annotations

from kraft_wire.raft.events import Now
from kraft_wire.sim.scheduler import MS, Scheduler

MILLION = 1_000_000
WALL_START_MS = 1_700_000_000_000


class Clock:
    """Both clocks of one machine. ``drift_ppm`` is by how many millionths the monotonic clock
    is fast; ``wall_offset_ms`` is the sum of all jumps."""

    __slots__ = ("_rate", "_scheduler", "wall_offset_ms")

    def __init__(self, scheduler: Scheduler, drift_ppm: int) -> None:
        self._scheduler = scheduler
        self._rate = MILLION + drift_ppm
        self.wall_offset_ms = 0

    def now(self) -> Now:
        monotonic_ms = self._scheduler.now_us * self._rate // (MILLION * MS)
        return Now(monotonic_ms, WALL_START_MS + monotonic_ms + self.wall_offset_ms)

    def simulated_us(self, monotonic_ms: int) -> int:
        """Return the simulated time at which the monotonic clock first shows this."""
        return -(-monotonic_ms * MILLION * MS // self._rate)
