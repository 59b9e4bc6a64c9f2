"""Simulate the event loop of a process: it does one thing after the other, in the order in which they came.
What comes during a step, or while the process is suspended, waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any


class EventLoop:
    """The event loop of one process. ``is_busy`` while a step has begun and isn't over, ``is_paused`` while
    the process is suspended."""

    __slots__ = ("_backlog", "is_busy", "is_paused")

    def __init__(self) -> None:
        self.is_busy = False
        self.is_paused = False
        self._backlog: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()

    def reset(self) -> None:
        """Forget everything: the process has ended."""
        self.is_busy = self.is_paused = False
        self._backlog.clear()

    def when_free(self, act: Callable[..., object], *arguments: Any) -> None:
        """Do something now, or after all that waits already."""
        if self.is_busy or self.is_paused or self._backlog:
            self._backlog.append((act, arguments))
        else:
            act(*arguments)

    def begin_step(self) -> None:
        """Let everything wait until ``end_step``."""
        self.is_busy = True

    def end_step(self, act: Callable[..., object], *arguments: Any) -> None:
        """End the step with this, and go on. If the process is suspended, it does so when it continues."""
        self.is_busy = False
        self._backlog.appendleft((act, arguments))
        self._go_on()

    def pause(self) -> None:
        """Suspend the process."""
        self.is_paused = True

    def resume(self) -> None:
        """Continue the process."""
        self.is_paused = False
        self._go_on()

    def _go_on(self) -> None:
        """Do what waits, until a step begins that takes time."""
        while self._backlog and not self.is_busy and not self.is_paused:
            act, arguments = self._backlog.popleft()
            act(*arguments)
