"""Kill writers of a lake at any file operation. Every writer is a real process.

A server that has imported everything forks the writers, because importing Arrow would take far longer than a
writer runs. The test process itself may have threads and shouldn't be forked.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kraft_wire.lake.protocol import Lake

KILLED = 9
STEPS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"}


class LakeKiller:
    """A server of processes that call ``write``, a function on module level, on a lake."""

    def __init__(self, write: Callable[[Lake], None]) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__, write.__module__, write.__name__],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.communicate()

    def kills(self, target: Path, step: int) -> bool:
        """Run a writer that is killed at this step; return False if it finished in fewer steps."""
        assert self._server.stdin is not None and self._server.stdout is not None
        print(step, target, file=self._server.stdin, flush=True)
        exit_code = int(self._server.stdout.readline())
        assert exit_code in (0, KILLED)
        return exit_code == KILLED


def _serve(write: Callable[[Lake], None]) -> None:
    for line in sys.stdin:
        step, target = line.rstrip("\n").split(" ", 1)
        child = os.fork()
        if not child:
            _write(Path(target), int(step), write)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _write(target: Path, step: int, write: Callable[[Lake], None]) -> None:
    left = step

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event not in STEPS or (event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        left -= 1
        if left == 0:
            os._exit(KILLED)

    with Lake(target) as lake:
        sys.addaudithook(count)
        write(lake)


if __name__ == "__main__":
    _, module, name = sys.argv
    _serve(getattr(import_module(module), name))
