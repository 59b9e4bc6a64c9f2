"""Take a broker out of ISRs, slice by slice.

Partitions that aren't being reassigned are decided in columns.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.column_change import column_changes, without
from kraft_wire.controller.partitions.partition_change import Election, Goal
from kraft_wire.controller.partitions.slices import Slices
from kraft_wire.metadata.partitions.cells import PAD
from kraft_wire.metadata.partitions.columns import Changes
from kraft_wire.metadata.partitions.partition import Partition, PartitionRef
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.cells import Mask, Rows


class Departure(Slices):
    """A broker's way out of the ISRs, slice by slice: with the last one, it is in none any more, except where
    it is the last member.

    With ``directories``, only the ISRs of its replicas in these log directories. If it ``forgets``, it leaves
    the ELRs as well (KIP-966), because it may have lost records.
    """

    def __init__(
        self, broker_id: int, *, directories: Collection[Uuid] | None = None, forgets: bool = False
    ) -> None:
        super().__init__()
        self._broker_id = broker_id
        self._directories = directories
        self._forgets = forgets

    def view(self, state: ControllerState) -> ClusterView:
        return ClusterView(state, unavailable=(self._broker_id,))

    def affected(self, view: ClusterView, window: slice) -> Rows:
        partitions = view.state.metadata.partitions
        rows = partitions.rows_with_isr_member(self._broker_id, window)
        if self._forgets:
            rows = np.union1d(rows, partitions.rows_with_elr_member(self._broker_id, window))
        if self._directories is not None:
            rows = partitions.rows_in_directories(rows, self._broker_id, self._directories)
        return rows

    def in_columns(self, view: ClusterView, rows: Rows) -> tuple[Mask, Changes]:
        isr = view.state.metadata.partitions.columns.isr[rows]
        is_at_most_once = np.count_nonzero(isr == self._broker_id, axis=1) <= 1
        rest = without(isr, np.array([[self._broker_id]], np.int32))
        forgetful = self._broker_id if self._forgets else PAD
        usual, changes = column_changes(view, rows, rest, Election.ONLINE, forgetful=forgetful)
        return usual & is_at_most_once, changes

    def one_by_one(
        self, view: ClusterView, ref: PartitionRef, partition: Partition
    ) -> VersionedRecord | None:
        goal = Goal(
            election=view.online_election(ref.topic_id),
            isr=tuple(member for member in partition.isr if member != self._broker_id),
            unclean_shutdown=(self._broker_id,) if self._forgets else (),
        )
        return view.change(ref, partition, goal)
