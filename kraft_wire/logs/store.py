"""Declare what the data source needs of a place with metadata logs: folders on disk, or a quorum over the
wire."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.logs.places import PlacedPage
from kraft_wire.logs.positions import LogPosition


class LogBounds(msgspec.Struct, frozen=True):
    """The records and snapshots that a cluster's log has now: records from ``start_offset`` to ``end``, and
    ``snapshots`` in the order of their ends, without the one of format. A quorum may have more snapshots.

    All records below ``committed_end_offset`` are committed; None if it isn't known of any. ``damage`` is at
    the end of the log, unless a crash or a running controller explains it.
    """

    cluster: str
    start_offset: int
    end: LogPosition
    committed_end_offset: int | None = None
    snapshots: tuple[SnapshotId, ...] = ()
    damage: Damage | None = None


class LogRange(msgspec.Struct, frozen=True):
    """The part of a cluster's log to read: a whole snapshot, if one is given, then the records from
    ``start_offset`` on and below ``end_offset``; None for all records that there are when they are read."""

    cluster: str
    start_offset: int
    end_offset: int | None
    snapshot: SnapshotId | None = None
    committed_end_offset: int | None = None


class Piece(Protocol):
    """A part of a range that a task reads. It is pickled, and contains everything that is needed to read it.
    A range can be cut into pieces between any two batches."""

    @property
    def size_bytes(self) -> int: ...


P = TypeVar("P", bound=Piece)


class Damage(msgspec.Struct, frozen=True):
    """Bytes that should hold the records from ``offset`` on, and can't be read. The next readable record is
    at ``resume_offset``; None if there is none."""

    cluster: str
    file: str
    position: int
    offset: int
    reason: str
    resume_offset: int | None = None

    @property
    def path(self) -> Path:
        return Path(self.file)

    def __str__(self) -> str:
        return f"no batch at byte {self.position} (offset {self.offset}): {self.reason}"


class LogStore(Protocol, Generic[P]):
    """The logs of some clusters.

    ``pages`` is called in tasks, on another instance. All other methods are called where the query is
    planned, for clusters that ``bounds`` returned.
    """

    def bounds(self) -> dict[str, LogBounds]:
        """Return what there is now, by cluster. A stream calls it in each trigger."""
        ...

    def holds(self, cluster: str, position: LogPosition) -> bool:
        """Whether the records before a position, which is within the bounds, are still those that were read:
        the record before it, or at it, has the position's epoch. For a position in a snapshot: whether there
        is that snapshot."""
        ...

    def position_at(self, cluster: str, offset: int) -> LogPosition:
        """Return the position at an offset within the bounds, or after the damage that lies there."""
        ...

    def next_offset_within(self, cluster: str, offset: int, max_bytes: int) -> int:
        """Return the offset after the batches from ``offset`` on that take about ``max_bytes``; at least
        after one batch if there is one."""
        ...

    def pieces(self, wanted: LogRange) -> Iterator[P]:
        """Yield the range's pieces, in order."""
        ...

    def close(self) -> None:
        """Close what was opened for planning."""
        ...

    def pages(self, piece: P) -> Iterator[PlacedPage | Damage]:
        """Yield the contents of a piece, in order, with bounded memory. Missing bytes are damage. Raises
        DataLoss if the log has changed."""
        ...
