"""Telling what a demonstration does while it does it."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from compat.harness.interrupts import raise_on_signals
from compat.harness.paths import MissingComponent
from compat.harness.processes import ProcessFailed
from compat.harness.waiting import WaitTimeout


class Story:
    """Tells what happens, each line with the seconds since the beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def tell(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:7.2f} s  {text}", flush=True)


def tell_it(run: Callable[[Path, Story], None]) -> int:
    """Runs it in a folder that is gone afterwards; returns the exit code."""
    raise_on_signals()
    try:
        with tempfile.TemporaryDirectory(prefix="kraft-wire-demo-") as folder:
            run(Path(folder), Story())
    except KeyboardInterrupt:
        print("\ninterrupted; everything is stopped and removed")
        return 130
    except (MissingComponent, ProcessFailed, WaitTimeout) as failure:
        print(f"demo: {failure}", file=sys.stderr)
        return 1
    return 0


def ms_since(moment: float) -> str:
    """Since a time of the monotonic clock."""
    return f"{(time.monotonic() - moment) * 1000:,.0f} ms"
