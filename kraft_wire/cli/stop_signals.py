"""Handle SIGINT and SIGTERM in a command that has work to finish first."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType, TracebackType
from typing import Final, Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_TOGETHER_S: Final = 1.0


class StopSignals:
    """A context in which the first signal is only noted, and ``word`` is printed; a second one interrupts.

    A second signal within a second doesn't count: signalling a process and its group sends two.
    """

    def __init__(self, word: str) -> None:
        self._word = word
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}
        self.came: int | None = None
        self._came_s = 0.0

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.came is None:
            self.came, self._came_s = number, time.monotonic()
            print(self._word, file=sys.stderr, flush=True)
        elif time.monotonic() - self._came_s > _TOGETHER_S:
            raise KeyboardInterrupt
