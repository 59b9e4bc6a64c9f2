"""Our commands as a user runs them, ended when the test is."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def running(words: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """In this folder, its output and its errors to be read; killed if it is still there at the end."""
    with subprocess.Popen(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()
