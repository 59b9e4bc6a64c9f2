"""Pass over the partitions in slices: as many in a step as don't keep others waiting.

Most partitions of a slice are decided in columns (``column_rules``), the unusual ones one by one. Both give
the same records, but the order of a slice is: those of the columns, then the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.records import Records, VersionedRecord, joined
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.column_rules import changes_of
from kraft_wire.metadata.partitions.columns import Changes
from kraft_wire.metadata.partitions.partition import Partition, PartitionRef
from kraft_wire.metadata.partitions.partitions import Partitions
from kraft_wire.metadata.topics import TopicRows

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.cells import Mask, Rows


class Slice(msgspec.Struct, frozen=True):
    """The changes of one step. ``is_complete`` says that they are the last."""

    records: Records
    is_complete: bool


class _Moved(msgspec.Struct):
    """A topic that has moved, and the index of its next partition to decide about."""

    topic: TopicRows
    next_index: int = 0


class Slices(ABC):
    """A decision about all partitions that ``affected`` finds.

    The rows are passed over in order, once. Between two slices, the partitions of a topic may move to rows
    that are passed already; those topics come after all rows.
    """

    def __init__(self) -> None:
        self.considered: list[Rows] = []
        """The rows that the last slice decided about, valid until it is applied."""
        self._next_row = 0
        self._seen_moves: int | None = None
        self._moved: list[_Moved] = []

    @abstractmethod
    def view(self, state: ControllerState) -> ClusterView:
        """Return the cluster as this decision sees it."""

    @abstractmethod
    def affected(self, view: ClusterView, window: slice) -> Rows:
        """Return the rows of a window that this decision is about, in ascending order."""

    def chosen(self, view: ClusterView, affected: Rows) -> Rows:
        """Return those of the affected rows that are decided about, if it takes time to tell which: all
        affected rows count for the step."""
        return affected

    @abstractmethod
    def in_columns(self, view: ClusterView, rows: Rows) -> tuple[Mask, Changes]:
        """Return which rows columns can decide, and the changes of all rows."""

    @abstractmethod
    def one_by_one(
        self, view: ClusterView, ref: PartitionRef, partition: Partition
    ) -> VersionedRecord | None:
        """Return the record of one partition; None if it doesn't change."""

    def next_slice(self, state: ControllerState) -> Slice:
        """Return the changes of the next partitions. They must be applied before the next call."""
        partitions = state.metadata.partitions
        self._note_moves(partitions)
        records = self._decide_windows(self.view(state))
        return Slice(records, self._next_row >= partitions.row_count and not self._moved)

    def _note_moves(self, partitions: Partitions) -> None:
        """Find the topics that have moved since the last slice."""
        moved = [] if self._seen_moves is None else partitions.moved_since(self._seen_moves)
        self._seen_moves = partitions.moves
        if moved is None:
            self._next_row = 0
        else:
            self._moved += [_Moved(topic) for topic in moved]

    def _decide_windows(self, view: ClusterView) -> Records:
        """Decide window after window, until there are enough changes for a step, or no more rows."""
        partitions, limits = view.state.metadata.partitions, view.state.slice_limits
        found = Records([])
        self.considered = []
        unusual_left = limits.most_unusual
        rows_left = limits.most_considered
        while rows_left > 0 and unusual_left > 0 and len(found) <= limits.few_changes:
            window = self._window(partitions, limits.window_rows)
            if window is None:
                break
            affected = self.affected(view, window)
            rows_left -= len(affected)
            rows = self.chosen(view, affected)
            first_left = None
            if len(rows):
                records, unusual, first_left = self._decide(view, rows, unusual_left)
                found = joined(found, records)
                unusual_left -= unusual
            self._pass(partitions, window.stop if first_left is None else first_left)
        return found

    def _window(self, partitions: Partitions, size: int) -> slice | None:
        """Return the next rows to decide about, at most so many; None if there are no more."""
        if self._next_row < partitions.row_count:
            return slice(self._next_row, min(self._next_row + size, partitions.row_count))
        while self._moved:
            topic, index = self._moved[-1].topic, self._moved[-1].next_index
            if index < topic.extent:
                return slice(topic.start + index, topic.start + min(index + size, topic.extent))
            self._moved.pop()
        return None

    def _pass(self, partitions: Partitions, end: int) -> None:
        """Note that the rows of this window are decided, up to this one."""
        if self._next_row < partitions.row_count:
            self._next_row = end
        else:
            self._moved[-1].next_index = end - self._moved[-1].topic.start

    def _decide(self, view: ClusterView, rows: Rows, most_unusual: int) -> tuple[Records, int, int | None]:
        """Return the records for these rows, and how many were decided one by one. If too many are unusual,
        the last of the rows are left for the next slice: return the first of them."""
        usual, changes = self.in_columns(view, rows)
        others = np.flatnonzero(~usual)
        first_left = None
        if len(others) > most_unusual:
            end = int(others[most_unusual])
            first_left = int(rows[end])
            rows, usual, changes = rows[:end], usual[:end], changes.part(slice(0, end))
            others = others[:most_unusual]
        self.considered.append(rows)
        in_columns = changes_of(view, rows[usual], changes.part(usual))
        return Records([in_columns, self._one_by_one(view, rows[others])]), len(others), first_left

    def _one_by_one(self, view: ClusterView, rows: Rows) -> list[VersionedRecord]:
        refs = view.state.metadata.partitions.refs(rows)
        records = (self.one_by_one(view, ref, view.partition(ref)) for ref in refs)
        return [record for record in records if record is not None]
