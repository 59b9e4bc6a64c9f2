"""Many files and folders on stable storage, at once: one by one, each would wait for a disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

_AT_ONCE: Final = 16


def flush(paths: Iterable[Path]) -> None:
    """Files with what is in them, folders with the names of what is in them. Raises OSError."""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for _ in threads.map(_flush, paths):
            pass


def flush_tree(folder: Path) -> None:
    """A folder, and all below it. It may not be there."""
    if folder.exists():
        flush([folder, *folder.rglob("*")])


def _flush(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
