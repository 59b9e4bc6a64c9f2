"""Print the steps of a demonstration: each one before it starts, and its result."""

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


class Progress:
    """The printed report of a demonstration; every line starts with the seconds since the beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def begin(self, step: str) -> None:
        """Announce a step that starts now."""
        self._print(f"{step} ...")

    def result(self, text: str) -> None:
        """Print a result of the current step."""
        self._print(f"  {text}")

    def detail(self, text: str) -> None:
        """Print a line that belongs to the last result."""
        print(f"{'':15}{text}", flush=True)

    def finish(self) -> None:
        """Say that everything is over and cleaned up."""
        self._print("finished: no process is left, and the temporary folder is removed")

    def _print(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:7.2f} s  {text}", flush=True)


def run_demo(run: Callable[[Path, Progress], None]) -> int:
    """Run a demonstration in a temporary folder and remove the folder; return the exit code."""
    raise_on_signals()
    progress = Progress()
    try:
        with tempfile.TemporaryDirectory(prefix="kraft-wire-demo-") as folder:
            run(Path(folder), progress)
        progress.finish()
    except KeyboardInterrupt:
        print("\ninterrupted; all processes are stopped and the folder is removed")
        return 130
    except (MissingComponent, ProcessFailed, WaitTimeout) as failure:
        print(f"demo failed: {failure}", file=sys.stderr)
        return 1
    return 0


def ms_since(moment: float) -> str:
    """Return the milliseconds since a time of the monotonic clock, as text."""
    return f"{(time.monotonic() - moment) * 1000:,.0f} ms"
