"""Schedule calls in simulated time. Calls at the same microsecond run in the order in which they were
added."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

MS = 1_000
"""Microseconds in a millisecond."""


class Scheduler:
    """The simulated time and the calls that are due. Only the scheduler moves the time."""

    __slots__ = ("_heap", "_sequence", "events", "now_us")

    def __init__(self) -> None:
        self.now_us = 0
        self.events = 0
        self._sequence = 0
        self._heap: list[tuple[int, int, Callable[..., object], tuple[Any, ...]]] = []

    def at(self, time_us: int, act: Callable[..., object], *arguments: Any) -> None:
        """Call ``act`` at a time. A time in the past means now."""
        self._sequence += 1
        heappush(self._heap, (max(time_us, self.now_us), self._sequence, act, arguments))

    def after(self, delay_us: int, act: Callable[..., object], *arguments: Any) -> None:
        """Call ``act`` after a delay."""
        self.at(self.now_us + delay_us, act, *arguments)

    def run_until(self, end_us: int) -> None:
        """Run all calls that are due by ``end_us``."""
        heap = self._heap
        while heap and heap[0][0] <= end_us:
            self.now_us, _, act, arguments = heappop(heap)
            self.events += 1
            act(*arguments)
        self.now_us = end_us

    def run_until_true(self, condition: Callable[[], bool], end_us: int, every_us: int) -> bool:
        """Run until a condition holds, which is checked every ``every_us``. Return False if it doesn't hold
        by ``end_us``."""
        while not condition():
            if self.now_us >= end_us:
                return False
            self.run_until(min(end_us, self.now_us + every_us))
        return True
