"""Join several copies of a cluster's log, in the folders of its nodes, into one log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kraft_wire.log.errors import LogError
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.logs.copy import LogCopy
from kraft_wire.logs.positions import LogPosition
from kraft_wire.logs.splits import FilePiece, log_pieces, snapshot_pieces
from kraft_wire.logs.store import LogBounds, LogRange
from kraft_wire.storage.log.log_recovery import has_leftovers


class LogCopies(msgspec.Struct, frozen=True):
    """The copy that ends last, and the one with most of the records that this copy has deleted, if there is
    any."""

    best: LogCopy
    older: LogCopy | None
    committed_end_offset: int | None

    @property
    def bounds(self) -> LogBounds:
        best = self.best
        start_offset = best.start_offset if self.older is None else self.older.start_offset
        return LogBounds(
            best.cluster, start_offset, best.end, self.committed_end_offset, self._snapshots, best.damage
        )

    def holds(self, position: LogPosition) -> bool:
        """See ``LogStore.holds``."""
        if position.snapshot:
            return SnapshotId(position.offset, position.epoch) in self._snapshots
        return self._copy_below(position.offset).holds(position)

    def position_at(self, offset: int) -> LogPosition:
        """See ``LogStore.position_at``."""
        return self._copy_below(offset).position_at(offset)

    def next_offset_within(self, offset: int, max_bytes: int) -> int:
        """See ``LogStore.next_offset_within``."""
        if self.older is None or offset >= self.best.start_offset:
            return self.best.next_offset_within(offset, max_bytes)
        return min(self.older.next_offset_within(offset, max_bytes), self.best.start_offset)

    def pieces(self, wanted: LogRange, split_bytes: int) -> Iterator[FilePiece]:
        """See ``LogStore.pieces``."""
        if wanted.snapshot is not None:
            has_it = self.best if self.older is None or wanted.snapshot in self.best.snapshots else self.older
            yield from snapshot_pieces(has_it, wanted.snapshot, split_bytes)
        border = self.best.start_offset
        if self.older is not None and wanted.start_offset < border:
            end_offset = border if wanted.end_offset is None else min(wanted.end_offset, border)
            yield from log_pieces(self.older, replace(wanted, end_offset=end_offset), split_bytes)
        if wanted.end_offset is None or wanted.end_offset > border:
            start_offset = max(wanted.start_offset, border)
            yield from log_pieces(self.best, replace(wanted, start_offset=start_offset), split_bytes)

    @property
    def _snapshots(self) -> tuple[SnapshotId, ...]:
        older = () if self.older is None else self.older.snapshots
        return tuple(sorted({*self.best.snapshots, *older}))

    def _copy_below(self, offset: int) -> LogCopy:
        """Return the copy that has the record before an offset."""
        return self.best if self.older is None or offset > self.best.start_offset else self.older


class MissingLog(LogError):
    """A cluster that had a log, which is missing. The text says where it was and what to do."""


def check_not_lost(copies: Sequence[LogCopy]) -> None:
    """Raise MissingLog if the log is empty, but other files show that it had records."""
    if not all(copy.is_empty for copy in copies):
        return
    for copy in copies:
        if copy.durable_offset or has_leftovers(Path(copy.path)):
            raise MissingLog(
                f"{copy.path}: there was a log, and none of its segments is left. Restore them from a copy, "
                "or leave the folder out"
            )


def merged(copies: Sequence[LogCopy]) -> LogCopies:
    """Join copies of one cluster's log. The committed offset is the highest that any copy knows."""
    best = max(copies, key=lambda copy: copy.reach)
    border = best.position_at(best.start_offset)
    older = [copy for copy in copies if copy.start_offset < best.start_offset and _leads_to(copy, border)]
    committed = min(best.end.offset, max(copy.committed_end_offset for copy in copies))
    return LogCopies(best, min(older, key=lambda copy: copy.start_offset, default=None), committed or None)


def _leads_to(copy: LogCopy, border: LogPosition) -> bool:
    """Whether a copy has the same records below a position: offset and epoch together identify a record."""
    return copy.end.offset >= border.offset and copy.holds(border)
