"""Decide which part of a log to read, by what was asked for and what there is."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from kraft_wire.log.errors import LogError
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.logs.positions import BEGINNING, LogPosition
from kraft_wire.logs.store import LogBounds, LogRange

_log = logging.getLogger(__name__)

Holds = Callable[[str, LogPosition], bool]

_ADVICE: Final = (
    "Read from startingOffsets=snapshot with a new checkpoint, or set failOnDataLoss=false to start over "
    "from the snapshot"
)


class DataLoss(LogError):
    """Records that were asked for and that the log doesn't have, or doesn't have any more."""

    def __init__(self, cluster: str, asked: str, found: str, advice: str = _ADVICE) -> None:
        super().__init__(cluster, asked, found, advice)
        self.cluster = cluster
        self.asked = asked
        self.found = found
        self.advice = advice

    def __str__(self) -> str:
        return f"cluster {self.cluster}: {self.asked}: {self.found}. {self.advice}"


def beginning(bounds: LogBounds, end_offset: int | None = None) -> LogPosition:
    """Return where a cluster begins: at offset 0, or with the oldest snapshot that reaches the log's start.

    Raises DataLoss if there is no such snapshot, or none that ends by ``end_offset``.
    """
    if bounds.start_offset == 0:
        return BEGINNING
    return _snapshot_position(next(iter(_usable(bounds, end_offset)), None), bounds, end_offset)


def newest_state(bounds: LogBounds, end_offset: int | None = None) -> LogPosition:
    """Return the newest snapshot that ends by ``end_offset``, or else the beginning. Raises DataLoss."""
    usable = _usable(bounds, end_offset)
    if not usable and bounds.start_offset == 0:
        return BEGINNING
    return _snapshot_position(usable[-1] if usable else None, bounds, end_offset)


def range_between(
    bounds: LogBounds,
    start: LogPosition | None,
    end: LogPosition | None,
    holds: Holds,
    *,
    fail_on_data_loss: bool = True,
) -> LogRange:
    """Return the range between two positions. ``start`` None is the beginning, ``end`` None all that there
    is.

    Raises DataLoss if the log doesn't hold one of the positions. Without ``fail_on_data_loss`` the range is
    then everything from the newest snapshot up to the end; DataLoss is raised only if there is no snapshot.
    """
    problem = _problem(bounds, start, end, holds)
    if problem is not None and fail_on_data_loss:
        raise problem
    end_offset = None if end is None else min(end.offset, bounds.end.offset)
    if problem is not None:
        what = (problem.cluster, problem.asked, problem.found)
        _log.warning("cluster %s: %s: %s. Starting over from the snapshot", *what)
        start = newest_state(bounds, end_offset)
    elif start is None:
        start = beginning(bounds, end_offset)
    return LogRange(
        bounds.cluster,
        start.offset,
        end_offset,
        SnapshotId(start.offset, start.epoch) if start.snapshot else None,
        bounds.committed_end_offset,
    )


def _problem(
    bounds: LogBounds, start: LogPosition | None, end: LogPosition | None, holds: Holds
) -> DataLoss | None:
    for name, position in (("the start", start), ("the end", end)):
        found = None if position is None else _unheld(bounds, position, holds)
        if found is not None:
            return DataLoss(bounds.cluster, f"{name} of the range is {position}", found)
    if start is not None and end is not None and end.offset < start.offset:
        found = f"its end is before it, {end}"
        return DataLoss(bounds.cluster, f"the start of the range is {start}", found)
    return None


def _unheld(bounds: LogBounds, position: LogPosition, holds: Holds) -> str | None:
    """Return why a log can't be read from a position on; None if it can."""
    offset = position.offset
    if position.snapshot:
        snapshot_id = SnapshotId(offset, position.epoch)
        if snapshot_id in bounds.snapshots or holds(bounds.cluster, position):
            return None
        return f"there is no such snapshot; {_has(bounds)}"
    if offset > bounds.end.offset:
        return f"the log was truncated, or is another one; {_has(bounds)}"
    if offset < bounds.start_offset:
        return f"the records after it were deleted; {_has(bounds)}"
    if not holds(bounds.cluster, position):
        return f"the log was truncated, and has records of another epoch there; {_has(bounds)}"
    return None


def _has(bounds: LogBounds) -> str:
    ends = ", ".join(str(snapshot_id.end_offset) for snapshot_id in bounds.snapshots) or "none"
    return f"there are offsets {bounds.start_offset} to {bounds.end}, and snapshots with these ends: {ends}"


def _usable(bounds: LogBounds, end_offset: int | None) -> list[SnapshotId]:
    """Return the snapshots at whose end the log continues."""
    last = bounds.end.offset if end_offset is None else end_offset
    return [each for each in bounds.snapshots if bounds.start_offset <= each.end_offset <= last]


def _snapshot_position(
    snapshot_id: SnapshotId | None, bounds: LogBounds, end_offset: int | None
) -> LogPosition:
    if snapshot_id is None:
        raise without_state(bounds, end_offset)
    return LogPosition(snapshot_id.epoch, snapshot_id.end_offset, snapshot=True)


def without_state(bounds: LogBounds, end_offset: int | None = None) -> DataLoss:
    """Return the error for a log whose beginning was deleted, and that no snapshot reaches."""
    upto = "" if end_offset is None else f" up to offset {end_offset}"
    return DataLoss(
        bounds.cluster,
        f"the state{upto} was asked for",
        f"the log begins above offset 0, and no snapshot reaches it; {_has(bounds)}",
        "Restore the snapshot from a copy, or name positions that are there",
    )
