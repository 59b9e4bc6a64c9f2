"""Share the event loop among connections: clients' requests take turns, a few milliseconds a pass.

A pass of the event loop runs every task that can go on. Without turns a thousand clients that send at once
would have a thousand requests served in one pass, and heartbeats would wait for all of them.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Final

import trio

BUDGET_S: Final = 0.005
"""Requests of clients are begun for so long in one pass; then the others wait for the next pass."""
_WEIGHT_OF_NEW: Final = 0.2


class Turns(trio.abc.Instrument):
    """The turns of all connections. ``run`` gives those their turn that wait."""

    def __init__(self) -> None:
        self._pass_ends_s = 0.0
        self._has_let_one_go = False
        self._usual_s = BUDGET_S
        self._waiting: deque[trio.Event] = deque()
        self._wanted = trio.Event()

    def after_io_wait(self, timeout: float) -> None:
        """Take note that a pass begins."""
        self._pass_ends_s = time.perf_counter() + BUDGET_S
        self._has_let_one_go = False

    async def run(self) -> None:
        """Let in each pass as many waiting connections go on as its budget is likely to allow."""
        trio.lowlevel.add_instrument(self)
        try:
            while True:
                await self._wanted.wait()
                while self._waiting:
                    for _ in range(min(max(1, int(BUDGET_S / self._usual_s)), len(self._waiting))):
                        self._waiting.popleft().set()
                    await trio.lowlevel.checkpoint()
                self._wanted = trio.Event()
        finally:
            trio.lowlevel.remove_instrument(self)

    @property
    def is_over(self) -> bool:
        """Whether the next request has to wait: this pass is long enough already, or others wait."""
        return bool(self._waiting) or time.perf_counter() > self._pass_ends_s

    async def wait(self) -> None:
        """Wait for a turn. At least one of those that wait goes on in each pass."""
        turn = trio.Event()
        self._waiting.append(turn)
        self._wanted.set()
        await turn.wait()
        while self._has_let_one_go and time.perf_counter() > self._pass_ends_s:
            turn = trio.Event()
            self._waiting.appendleft(turn)
            self._wanted.set()
            await turn.wait()
        self._has_let_one_go = True

    async def pause(self) -> None:
        """Let other tasks run in the middle of a request, and wait for a turn if this pass is over."""
        if self.is_over:
            await self.wait()
        else:
            await trio.lowlevel.checkpoint()

    def note(self, took_s: float) -> None:
        """Take note of how long a request took that had waited."""
        self._usual_s += (took_s - self._usual_s) * _WEIGHT_OF_NEW
