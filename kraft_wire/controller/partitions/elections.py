"""Hold elections for all partitions that need one, slice by slice.

Partitions that aren't being reassigned are decided in columns.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.column_change import column_changes
from kraft_wire.controller.partitions.column_rules import may_be_unclean
from kraft_wire.controller.partitions.partition_change import Election, Goal
from kraft_wire.controller.partitions.slices import Slice, Slices
from kraft_wire.metadata.partitions.columns import FREE, Changes
from kraft_wire.metadata.partitions.partition import NO_LEADER, Partition, PartitionRef

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.cells import Mask, Rows


class Elections(Slices):
    """Elections of one kind.

    PREFERRED ones are for the partitions that their first replica doesn't lead, ONLINE and UNCLEAN ones for
    those without a leader. ONLINE ones are unclean too for topics that allow it; UNCLEAN ones are held for no
    other topics, unless ``everywhere``. ``arriving`` brokers are unfenced with the first slice.
    """

    def __init__(
        self, election: Election, *, arriving: Collection[int] = (), everywhere: bool = False
    ) -> None:
        super().__init__()
        self._election = election
        self._arriving = arriving
        self._everywhere = everywhere

    def next_slice(self, state: ControllerState) -> Slice:
        """Return the next elections. From the second slice on, only the metadata says who is active: a broker
        that has arrived may have gone again."""
        held = super().next_slice(state)
        self._arriving = ()
        return held

    def view(self, state: ControllerState) -> ClusterView:
        return ClusterView(state, arriving=self._arriving)

    def affected(self, view: ClusterView, window: slice) -> Rows:
        columns = view.state.metadata.partitions.columns
        leader = columns.leader[window]
        if self._election is Election.PREFERRED:
            wanted = (leader != columns.replicas[window, 0]) & (leader != FREE)
        else:
            wanted = leader == NO_LEADER
        rows: Rows = np.flatnonzero(wanted) + window.start
        return rows

    def chosen(self, view: ClusterView, affected: Rows) -> Rows:
        if self._election is Election.UNCLEAN and not self._everywhere and len(affected):
            return affected[may_be_unclean(view, affected, Election.ONLINE)]
        return affected

    def in_columns(self, view: ClusterView, rows: Rows) -> tuple[Mask, Changes]:
        isr = view.state.metadata.partitions.columns.isr[rows]
        return column_changes(view, rows, isr, self._election)

    def one_by_one(
        self, view: ClusterView, ref: PartitionRef, partition: Partition
    ) -> VersionedRecord | None:
        is_online = self._election is Election.ONLINE
        election = view.online_election(ref.topic_id) if is_online else self._election
        return view.change(ref, partition, Goal(election=election))
