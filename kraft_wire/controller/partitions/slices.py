"""Pass over the partitions in slices: as many in a step as don't keep others waiting.

Most partitions of a slice are decided in columns (``column_rules``), the unusual ones one by one. Both give
the same records, but the order of a slice is: those of the columns, then the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import msgspec
import numpy as np

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.records import Records, VersionedRecord, joined
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.column_rules import changes_of
from kraft_wire.metadata.partitions.columns import Changes
from kraft_wire.metadata.partitions.partition import Partition, PartitionRef

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kraft_wire.metadata.partitions.cells import Rows

    Mask = NDArray[np.bool_]


class Slice(msgspec.Struct, frozen=True):
    """The changes of one step. ``is_complete`` says that they are the last."""

    records: Records
    is_complete: bool


class Slices(ABC):
    """A decision about all partitions that ``affected`` finds.

    The rows are passed over in order. A pass that took several steps may have missed partitions whose rows
    moved meanwhile. If ``MISSES_NONE``, there is another pass, until one finds nothing to change.
    """

    MISSES_NONE: ClassVar[bool] = False

    def __init__(self) -> None:
        self.considered: list[Rows] = []
        """The rows that the last slice decided about, valid until it is applied."""
        self._next_row = 0
        self._changed_in_pass = False
        self._moves_before_pass = 0

    @abstractmethod
    def view(self, state: ControllerState) -> ClusterView:
        """Return the cluster as this decision sees it."""

    @abstractmethod
    def affected(self, view: ClusterView, window: slice) -> Rows:
        """Return the rows of a window that this decision is about, in ascending order."""

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
        begins_pass = self._next_row == 0
        if begins_pass:
            self._changed_in_pass, self._moves_before_pass = False, partitions.moves
        records = self._decide_windows(self.view(state))
        self._changed_in_pass |= bool(records)
        if self._next_row < partitions.row_count:
            return Slice(records, is_complete=False)
        self._next_row = 0
        found_nothing = not self._changed_in_pass and partitions.moves == self._moves_before_pass
        return Slice(records, begins_pass or found_nothing or not self.MISSES_NONE)

    def _decide_windows(self, view: ClusterView) -> Records:
        """Decide window after window, until there are enough changes for a step, or no more rows."""
        partitions, limits = view.state.metadata.partitions, view.state.slice_limits
        found = Records([])
        self.considered = []
        unusual_left = limits.most_unusual
        rows_left = limits.most_considered
        while (
            self._next_row < partitions.row_count
            and rows_left > 0
            and unusual_left > 0
            and len(found) <= limits.few_changes
        ):
            window = slice(self._next_row, min(self._next_row + limits.window_rows, partitions.row_count))
            rows = self.affected(view, window)
            self._next_row = window.stop
            if len(rows):
                records, unusual = self._decide(view, rows, unusual_left)
                found = joined(found, records)
                unusual_left -= unusual
                rows_left -= len(rows)
        return found

    def _decide(self, view: ClusterView, rows: Rows, most_unusual: int) -> tuple[Records, int]:
        """Return the records for these rows, and how many were decided one by one. If too many are unusual,
        the next slice begins earlier."""
        usual, changes = self.in_columns(view, rows)
        others = np.flatnonzero(~usual)
        if len(others) > most_unusual:
            end = int(others[most_unusual])
            self._next_row = int(rows[end])
            rows, usual, changes = rows[:end], usual[:end], changes.part(slice(0, end))
            others = others[:most_unusual]
        self.considered.append(rows)
        in_columns = changes_of(view, rows[usual], changes.part(usual))
        return Records([in_columns, self._one_by_one(view, rows[others])]), len(others)

    def _one_by_one(self, view: ClusterView, rows: Rows) -> list[VersionedRecord]:
        refs = view.state.metadata.partitions.refs(rows)
        records = (self.one_by_one(view, ref, view.partition(ref)) for ref in refs)
        return [record for record in records if record is not None]
