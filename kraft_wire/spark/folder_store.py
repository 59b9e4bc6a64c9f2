"""Logs in folders on disk, as the data source asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from kraft_wire.spark.batch_walk import PAGE_BYTES
from kraft_wire.spark.log_copies import LogCopies, check_not_gone, together
from kraft_wire.spark.log_copy import LogCopy, look_at
from kraft_wire.spark.log_folders import check_named, find_folders
from kraft_wire.spark.log_pages import pages_of
from kraft_wire.spark.log_splits import SPLIT_BYTES, FilePiece
from kraft_wire.spark.log_store import Damage, LogBounds, LogRange, PlacedPage
from kraft_wire.spark.open_segment import Entry, SegmentChanged
from kraft_wire.spark.positions import LogPosition

T = TypeVar("T")

_ATTEMPTS: Final = 3
_REMEMBERED: Final = 8
"""Batches of a segment."""


class FolderStore:
    """The clusters whose logs lie in or below some folders, given by paths or globs.

    Copies of a cluster's log are one log (``log_copies``). Raises NoLogs, LogGone, UnknownCluster,
    CorruptFile, SegmentChanged, OSError.
    """

    def __init__(
        self, paths: Sequence[str], split_bytes: int = SPLIT_BYTES, page_bytes: int = PAGE_BYTES
    ) -> None:
        self._paths = tuple(paths)
        self._split_bytes = split_bytes
        self._page_bytes = page_bytes
        self._logs: dict[str, LogCopies] = {}
        self._known: dict[str, tuple[Entry, ...]] = {}

    def bounds(self) -> dict[str, LogBounds]:
        """As ``LogStore`` says; so are all others."""
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
            copy = look_at(path, self._known)
            self._remember(copy)
            by_cluster.setdefault(copy.cluster, []).append(copy)
        for copies in by_cluster.values():
            check_named([copy.path for copy in copies])
            check_not_gone(copies)
        return {cluster: together(copies) for cluster, copies in sorted(by_cluster.items())}

    def _remember(self, copy: LogCopy) -> None:
        """What is read next begins where the log ended some looks ago, if triggers keep up."""
        if copy.last is not None and copy.last.entry not in self._known.get(copy.last.path, ()):
            entries = (*self._known.pop(copy.last.path, ()), copy.last.entry)
            self._known[copy.last.path] = entries[-_REMEMBERED:]

    def holds(self, cluster: str, position: LogPosition) -> bool:
        return self._ask(cluster, lambda log: log.holds(position))

    def position_at(self, cluster: str, offset: int) -> LogPosition:
        return self._ask(cluster, lambda log: log.position_at(offset))

    def offset_behind(self, cluster: str, offset: int, max_bytes: int) -> int:
        return self._ask(cluster, lambda log: log.offset_behind(offset, max_bytes))

    def pieces(self, wanted: LogRange) -> Iterator[FilePiece]:
        return self._logs[wanted.cluster].pieces(wanted, self._split_bytes)

    def _ask(self, cluster: str, question: Callable[[LogCopies], T]) -> T:
        """A controller may have trimmed or cut the log since it was looked at: it is looked at again."""
        for _ in range(_ATTEMPTS):
            with suppress(SegmentChanged):
                return question(self._logs[cluster])
            self._logs |= self._look()
        return question(self._logs[cluster])

    def close(self) -> None:
        """Files are open while they are read only."""

    def pages(self, piece: FilePiece) -> Iterator[PlacedPage | Damage]:
        return pages_of(piece, self._page_bytes)
