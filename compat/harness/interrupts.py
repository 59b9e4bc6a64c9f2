"""Ctrl-C and SIGTERM as exceptions, so that everything is stopped and removed on the way out."""

from __future__ import annotations

import signal
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM."""


def raise_on_signals() -> None:
    """KeyboardInterrupt on SIGINT, even where the parent had it ignored; Terminated on SIGTERM."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated
