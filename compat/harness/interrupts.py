"""Turn Ctrl-C and SIGTERM into exceptions, so that all processes are stopped and folders removed."""

from __future__ import annotations

import signal
from types import FrameType


class Terminated(KeyboardInterrupt):
    """The process received SIGTERM."""


def raise_on_signals() -> None:
    """Raise KeyboardInterrupt on SIGINT, even if the parent process ignored it, and Terminated on SIGTERM."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated
