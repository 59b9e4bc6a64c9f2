"""Hold elections for all partitions that need one, slice by slice.

The usual case is decided in columns: a partition without reassignment and ELR, for which a member of the ISR
is elected, or for which nobody can be.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.column_rules import (
    NO_RECOVERY_CHANGE,
    elected_leaders,
    fit_columns,
    may_be_unclean,
    online_replicas,
)
from kraft_wire.controller.partitions.partition_change import Election, Goal
from kraft_wire.controller.partitions.slices import Slices
from kraft_wire.metadata.partitions.columns import FREE, Changes
from kraft_wire.metadata.partitions.partition import NO_LEADER, NO_LEADER_CHANGE, Partition, PartitionRef

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kraft_wire.metadata.partitions.partitions import Rows

    Mask = NDArray[np.bool_]


class Elections(Slices):
    """Elections of one kind.

    PREFERRED ones are for the partitions that their first replica doesn't lead, ONLINE and UNCLEAN ones for
    those without a leader. ONLINE ones are unclean too for topics that allow it; UNCLEAN ones are held for no
    other topics, unless ``everywhere``. ``arriving`` brokers are about to be unfenced.
    """

    def __init__(
        self, election: Election, *, arriving: Collection[int] = (), everywhere: bool = False
    ) -> None:
        super().__init__()
        self._election = election
        self._arriving = arriving
        self._everywhere = everywhere

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
        if self._election is Election.UNCLEAN and not self._everywhere and len(rows):
            places = view.state.metadata.partitions.places(rows)
            allowed = [view.allows_unclean_election(topic.id) for topic in places.topics]
            rows = rows[np.repeat(np.array(allowed, np.bool_), places.counts)]
        return rows

    def in_columns(self, view: ClusterView, rows: Rows) -> tuple[Mask, Changes]:
        columns = view.state.metadata.partitions.columns
        replicas, leader, isr = columns.replicas[rows], columns.leader[rows], columns.isr[rows]
        online, is_known = online_replicas(view, rows)
        elected = elected_leaders(
            replicas, leader, isr, online, preferred=self._election is Election.PREFERRED
        )
        usual = fit_columns(view, rows) & is_known
        unled = elected == NO_LEADER
        if view.elr_enabled:
            usual &= ~unled | (leader == NO_LEADER)  # the last known leader is recorded
        if self._election is Election.UNCLEAN:
            usual &= ~(unled & online.any(axis=1))
        elif self._election is Election.ONLINE and unled.any():
            usual[unled] &= ~may_be_unclean(view, rows[unled], online[unled])
        changes = Changes(
            np.where(elected == leader, np.int32(NO_LEADER_CHANGE), elected).astype(np.int32),
            np.full(len(rows), NO_RECOVERY_CHANGE, np.int8),
            isr,
            np.zeros(len(rows), np.bool_),
        )
        return usual, changes

    def one_by_one(
        self, view: ClusterView, ref: PartitionRef, partition: Partition
    ) -> VersionedRecord | None:
        is_online = self._election is Election.ONLINE
        election = view.online_election(ref.topic_id) if is_online else self._election
        return view.change(ref, partition, Goal(election=election))
