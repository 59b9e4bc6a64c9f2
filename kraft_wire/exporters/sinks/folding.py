"""Put small files together while more are written: which of them, and in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Final, NamedTuple

FOLD: Final = 16
SMALL_BYTES: Final = 64 * 1024
"""A file of at most so many bytes is of level 0; each level has files that are ``FOLD`` times as large."""

Fold = Callable[[list[Path]], Path]
"""Puts files together, in their order, and returns the one that has their records now."""


class Group(NamedTuple):
    """Files of about one size, in the order of their records."""

    level: int
    files: list[Path]


class SmallFiles:
    """The files that wait to be put together, those of each level in the order of their records. No I/O.

    What is put together goes up a level, so that no record is written very often. The files of a level lie
    before all files of lower levels.
    """

    def __init__(self, max_file_bytes: int) -> None:
        self._max_file_bytes = max_file_bytes
        self._top = _level_of(max_file_bytes // FOLD)
        self._levels: list[list[Path]] = [[] for _ in range(self._top + 1)]

    def add(self, path: Path, size_bytes: int) -> None:
        """Add a new file. The smaller ones before it go to its level, so that the order is kept."""
        level = min(_level_of(size_bytes), self._top)
        for lower in range(level - 1, -1, -1):
            self._raise(lower, level)
        self._levels[level].append(path)

    def add_folded(self, path: Path, size_bytes: int, level: int) -> None:
        """Add a file that was put together from those of a level, unless it is large enough."""
        if size_bytes * FOLD > self._max_file_bytes:
            return
        new = min(max(level + 1, _level_of(size_bytes)), self._top)
        files = self._levels[new]
        files.insert(0 if new == level else len(files), path)

    def due(self) -> Group | None:
        """Return the files that are to be put together now, and forget them; None if there are too few."""
        for level, files in enumerate(self._levels):
            if len(files) >= FOLD:
                self._levels[level] = files[FOLD:]
                return Group(level, files[:FOLD])
        return None

    def _raise(self, lower: int, level: int) -> None:
        self._levels[level] += self._levels[lower]
        self._levels[lower] = []


def _level_of(size_bytes: int) -> int:
    level, limit_bytes = 0, SMALL_BYTES
    while size_bytes > limit_bytes:
        level, limit_bytes = level + 1, limit_bytes * FOLD
    return level


class _Running(NamedTuple):
    level: int
    folded: Future[Path]


class Folding:
    """Puts small files together, one group at a time, while the owner writes more."""

    def __init__(self, fold: Fold, max_file_bytes: int) -> None:
        self._fold = fold
        self._small = SmallFiles(max_file_bytes)
        self._new: list[Path] = []
        """Files that were added while others are put together: the outcome of that comes before them."""
        self._running: _Running | None = None

    def add(self, path: Path) -> None:
        """Add a file, which follows all others."""
        self._new.append(path)

    def go_on(self) -> None:
        """Put files together, if enough wait and none are being put together. Raises what that raised
        before."""
        running = self._running
        if running is not None:
            if not running.folded.done():
                return
            self._running = None
            path = running.folded.result()
            self._small.add_folded(path, path.stat().st_size, running.level)
        for path in self._new:
            self._small.add(path, path.stat().st_size)
        self._new = []
        group = self._small.due()
        if group is not None:
            self._running = _Running(group.level, _in_background(lambda: self._fold(group.files)))

    def finish(self) -> None:
        """Put everything together that is due, and wait for it. Raises what that raises."""
        self.go_on()
        while self._running is not None:
            self._running.folded.exception()
            self.go_on()


def _in_background(work: Callable[[], Path]) -> Future[Path]:
    """Work in a thread that doesn't keep the process alive."""
    future: Future[Path] = Future()

    def carry_out() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
            future.set_exception(error)

    Thread(target=carry_out, daemon=True).start()
    return future
