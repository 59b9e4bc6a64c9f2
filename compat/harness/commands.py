"""Run our commands as a user does, and end them with the test."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def running(words: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a command in this folder with its output and errors as pipes; kill it on leaving the block."""
    with subprocess.Popen(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()
