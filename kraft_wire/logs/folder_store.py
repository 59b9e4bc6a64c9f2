"""Serve logs in folders on disk to the data source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from kraft_wire.logs.copies import LogCopies, check_not_lost, merged
from kraft_wire.logs.copy import LogCopy, read_copy
from kraft_wire.logs.folders import check_named, find_folders
from kraft_wire.logs.open_segment import Entry
from kraft_wire.logs.pages import pages_of
from kraft_wire.logs.places import PlacedPage
from kraft_wire.logs.positions import LogPosition
from kraft_wire.logs.splits import SPLIT_BYTES, FilePiece
from kraft_wire.logs.store import Damage, LogBounds, LogRange
from kraft_wire.storage.errors import SegmentChanged
from kraft_wire.storage.log.batch_reader import CHUNK_SIZE_BYTES

T = TypeVar("T")

_ATTEMPTS: Final = 3
_REMEMBERED: Final = 8
"""The number of batches to remember of each segment."""


class FolderStore:
    """The clusters whose logs lie in or below some folders, given as paths or globs.

    Copies of a cluster's log are one log (``copies``). Raises NoLogs, MissingLog, UnknownCluster,
    CorruptFile, SegmentChanged, OSError.
    """

    def __init__(
        self, paths: Sequence[str], split_bytes: int = SPLIT_BYTES, page_bytes: int = CHUNK_SIZE_BYTES
    ) -> None:
        self._paths = tuple(paths)
        self._split_bytes = split_bytes
        self._page_bytes = page_bytes
        self._logs: dict[str, LogCopies] = {}
        self._known: dict[str, tuple[Entry, ...]] = {}

    def bounds(self) -> dict[str, LogBounds]:
        """See ``LogStore``, also for all other methods."""
        self._logs = self._look()
        return {cluster: log.bounds for cluster, log in self._logs.items()}

    def _look(self) -> dict[str, LogCopies]:
        for _ in range(_ATTEMPTS):
            with suppress(SegmentChanged):
                return self._look_once()
        return self._look_once()

    def _look_once(self) -> dict[str, LogCopies]:
        by_cluster: dict[str, list[LogCopy]] = {}
        for path in find_folders(self._paths):
            copy = read_copy(path, self._known)
            self._remember(copy)
            by_cluster.setdefault(copy.cluster, []).append(copy)
        for copies in by_cluster.values():
            check_named([copy.path for copy in copies])
            check_not_lost(copies)
        return {cluster: merged(copies) for cluster, copies in sorted(by_cluster.items())}

    def _remember(self, copy: LogCopy) -> None:
        """Remember the last batch: if triggers keep up, the next range begins at the end of a recent
        reading."""
        if copy.last is not None and copy.last.entry not in self._known.get(copy.last.path, ()):
            entries = (*self._known.pop(copy.last.path, ()), copy.last.entry)
            self._known[copy.last.path] = entries[-_REMEMBERED:]

    def holds(self, cluster: str, position: LogPosition) -> bool:
        return self._ask(cluster, lambda log: log.holds(position))

    def position_at(self, cluster: str, offset: int) -> LogPosition:
        return self._ask(cluster, lambda log: log.position_at(offset))

    def next_offset_within(self, cluster: str, offset: int, max_bytes: int) -> int:
        return self._ask(cluster, lambda log: log.next_offset_within(offset, max_bytes))

    def pieces(self, wanted: LogRange) -> Iterator[FilePiece]:
        return self._logs[wanted.cluster].pieces(wanted, self._split_bytes)

    def _ask(self, cluster: str, question: Callable[[LogCopies], T]) -> T:
        """Ask again after another reading, if a controller has truncated the log since the last one."""
        for _ in range(_ATTEMPTS):
            with suppress(SegmentChanged):
                return question(self._logs[cluster])
            self._logs |= self._look()
        return question(self._logs[cluster])

    def close(self) -> None:
        """Do nothing: files are open only while they are read."""

    def pages(self, piece: FilePiece) -> Iterator[PlacedPage | Damage]:
        return pages_of(piece, self._page_bytes)
