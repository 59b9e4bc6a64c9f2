"""What the data source asks of a place where metadata logs are: folders on disk, or quorums over the wire."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.spark.positions import LogPosition

if TYPE_CHECKING:
    from kraft_wire.columnar.page import Page
    from kraft_wire.spark.record_tables import LogPlace


class LogBounds(msgspec.Struct, frozen=True):
    """What there is of a cluster's log now: its records from ``start_offset`` to ``end``, and ``snapshots``
    in the order of their ends, without the one that format leaves; a quorum may have more than it names.

    Everything below ``committed_end_offset`` is committed; None where nothing is known to be. ``damage`` is
    what the log ends with where that can't be read, and isn't what a crash or a running controller leaves.
    """

    cluster: str
    start_offset: int
    end: LogPosition
    committed_end_offset: int | None = None
    snapshots: tuple[SnapshotId, ...] = ()
    damage: Damage | None = None


class LogRange(msgspec.Struct, frozen=True):
    """What is to be read of a cluster's log: a whole snapshot if there is one, then the records from
    ``start_offset`` on and below ``end_offset``; None: all that there are when they are read."""

    cluster: str
    start_offset: int
    end_offset: int | None
    snapshot: SnapshotId | None = None
    committed_end_offset: int | None = None


class Piece(Protocol):
    """Part of a range, which a task reads: it is pickled, and says by itself what it takes to read it.
    Between batches a piece may be cut anywhere."""

    @property
    def size_bytes(self) -> int: ...


P = TypeVar("P", bound=Piece)


class PlacedPage(NamedTuple):
    """Some batches, and whose they are; ``place`` also says which of their records belong to the range.
    ``source`` says where they were found, for errors."""

    page: Page
    place: LogPlace
    source: str


class Damage(msgspec.Struct, frozen=True):
    """Bytes that should be records from ``offset`` on, and can't be read; the next that can is at
    ``resume_offset``, None where there is none."""

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
    """Logs of some clusters. All questions but the last are asked where the query is planned, for clusters
    that ``bounds`` named; ``pages`` is asked by tasks, of an object that was made anew there."""

    def bounds(self) -> dict[str, LogBounds]:
        """What there is now, by cluster. A stream asks at each trigger."""
        ...

    def holds(self, cluster: str, position: LogPosition) -> bool:
        """Whether the records below a position, which lies within the bounds, are those that were read there:
        the one below it, or at it, is of the position's epoch. For a position in a snapshot: whether there is
        that snapshot."""
        ...

    def position_at(self, cluster: str, offset: int) -> LogPosition:
        """The position at an offset within the bounds; behind damage, if that is there."""
        ...

    def offset_behind(self, cluster: str, offset: int, max_bytes: int) -> int:
        """Behind the batches from ``offset`` on that take about so many bytes; at least one batch where there
        is one."""
        ...

    def pieces(self, wanted: LogRange) -> Iterator[P]:
        """The range's pieces, in order, each worth a task if there is so much."""
        ...

    def close(self) -> None:
        """Nothing more will be asked where the query is planned."""
        ...

    def pages(self, piece: P) -> Iterator[PlacedPage | Damage]:
        """What is in a piece, in order, with bounded memory. Whatever isn't there of the piece is damage, or
        raises DataLoss where it is the log that has changed."""
        ...
