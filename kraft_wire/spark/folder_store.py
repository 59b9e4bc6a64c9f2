"""Logs in folders on disk, as the data source asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kraft_wire.spark.batch_walk import PAGE_BYTES
from kraft_wire.spark.log_copy import LogCopy, look_at
from kraft_wire.spark.log_folders import find_folders
from kraft_wire.spark.log_pages import pages_of
from kraft_wire.spark.log_splits import SPLIT_BYTES, FilePiece, pieces_of
from kraft_wire.spark.log_store import Damage, LogBounds, LogRange, PlacedPage
from kraft_wire.spark.positions import LogPosition


class FolderStore:
    """The clusters whose logs lie in or below some folders, given by paths or globs.

    Of several copies of a cluster's log the one is read that goes furthest. What is committed, any of them
    may know. Raises NoLogs, CorruptFile, OSError.
    """

    def __init__(
        self, paths: Sequence[str], split_bytes: int = SPLIT_BYTES, page_bytes: int = PAGE_BYTES
    ) -> None:
        self._paths = tuple(paths)
        self._split_bytes = split_bytes
        self._page_bytes = page_bytes
        self._copies: dict[str, LogCopy] = {}

    def bounds(self) -> dict[str, LogBounds]:
        """As ``LogStore`` says; so are all others."""
        by_cluster: dict[str, list[LogCopy]] = {}
        for path in find_folders(self._paths):
            copy = look_at(path)
            by_cluster.setdefault(copy.cluster, []).append(copy)
        found = {}
        for cluster, copies in sorted(by_cluster.items()):
            best = max(copies, key=lambda copy: copy.reach)
            committed = min(best.end.offset, max(copy.committed_end_offset for copy in copies))
            self._copies[cluster] = best
            found[cluster] = LogBounds(
                cluster, best.start_offset, best.end, committed or None, best.snapshots, best.damage
            )
        return found

    def holds(self, cluster: str, position: LogPosition) -> bool:
        return self._copies[cluster].holds(position)

    def position_at(self, cluster: str, offset: int) -> LogPosition:
        return self._copies[cluster].position_at(offset)

    def offset_behind(self, cluster: str, offset: int, max_bytes: int) -> int:
        return self._copies[cluster].offset_behind(offset, max_bytes)

    def pieces(self, wanted: LogRange) -> Iterator[FilePiece]:
        return pieces_of(self._copies[wanted.cluster], wanted, self._split_bytes)

    def close(self) -> None:
        """Files are open while they are read only."""

    def pages(self, piece: FilePiece) -> Iterator[PlacedPage | Damage]:
        return pages_of(piece, self._page_bytes)
