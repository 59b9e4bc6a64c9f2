"""Logs in folders on disk, as the data source asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kraft_wire.spark.batch_walk import PAGE_BYTES
from kraft_wire.spark.log_copies import LogCopies, together
from kraft_wire.spark.log_copy import LogCopy, look_at
from kraft_wire.spark.log_folders import find_folders
from kraft_wire.spark.log_pages import pages_of
from kraft_wire.spark.log_splits import SPLIT_BYTES, FilePiece
from kraft_wire.spark.log_store import Damage, LogBounds, LogRange, PlacedPage
from kraft_wire.spark.positions import LogPosition


class FolderStore:
    """The clusters whose logs lie in or below some folders, given by paths or globs.

    Copies of a cluster's log are one log (``log_copies``). Raises NoLogs, CorruptFile, SegmentChanged,
    OSError.
    """

    def __init__(
        self, paths: Sequence[str], split_bytes: int = SPLIT_BYTES, page_bytes: int = PAGE_BYTES
    ) -> None:
        self._paths = tuple(paths)
        self._split_bytes = split_bytes
        self._page_bytes = page_bytes
        self._logs: dict[str, LogCopies] = {}

    def bounds(self) -> dict[str, LogBounds]:
        """As ``LogStore`` says; so are all others."""
        by_cluster: dict[str, list[LogCopy]] = {}
        for path in find_folders(self._paths):
            copy = look_at(path)
            by_cluster.setdefault(copy.cluster, []).append(copy)
        self._logs = {cluster: together(copies) for cluster, copies in sorted(by_cluster.items())}
        return {cluster: log.bounds for cluster, log in self._logs.items()}

    def holds(self, cluster: str, position: LogPosition) -> bool:
        return self._logs[cluster].holds(position)

    def position_at(self, cluster: str, offset: int) -> LogPosition:
        return self._logs[cluster].position_at(offset)

    def offset_behind(self, cluster: str, offset: int, max_bytes: int) -> int:
        return self._logs[cluster].offset_behind(offset, max_bytes)

    def pieces(self, wanted: LogRange) -> Iterator[FilePiece]:
        return self._logs[wanted.cluster].pieces(wanted, self._split_bytes)

    def close(self) -> None:
        """Files are open while they are read only."""

    def pages(self, piece: FilePiece) -> Iterator[PlacedPage | Damage]:
        return pages_of(piece, self._page_bytes)
