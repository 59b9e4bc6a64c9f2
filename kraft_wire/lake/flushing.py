"""Flush many files and folders at once. One by one, each would wait for a disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

_AT_ONCE: Final = 16


def flush(paths: Iterable[Path]) -> None:
    """Wait until files with their contents, and folders with the names in them, are on stable storage. Raises
    OSError."""
    _in_parallel(_flush, paths)


def flush_tree(folder: Path) -> None:
    """Flush a folder and everything below it that still exists: Spark deletes old files of a stream's
    checkpoint at any time. Raises OSError."""
    if folder.exists():
        _in_parallel(_flush_if_there, [folder, *folder.rglob("*")])


def _in_parallel(flush_one: Callable[[Path], None], paths: Iterable[Path]) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for _ in threads.map(flush_one, paths):
            pass


def _flush_if_there(path: Path) -> None:
    with suppress(FileNotFoundError):
        _flush(path)


def _flush(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
