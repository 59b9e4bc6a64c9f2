"""Take a broker out of ISRs, slice by slice.

The usual case is decided in columns: a partition without reassignment and ELR, whose ISR stays large enough
and in which an active member can lead, or in which nobody can lead any more.
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
from kraft_wire.controller.partitions.partition_change import Goal
from kraft_wire.controller.partitions.slices import Slices
from kraft_wire.metadata.features.metadata_version import leader_epoch_bump_on_isr_shrink
from kraft_wire.metadata.partitions.columns import PAD, Changes
from kraft_wire.metadata.partitions.partition import NO_LEADER, NO_LEADER_CHANGE, Partition, PartitionRef
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kraft_wire.metadata.partitions.columns import Int32s
    from kraft_wire.metadata.partitions.partitions import Rows

    Mask = NDArray[np.bool_]


class Departure(Slices):
    """A broker's way out of the ISRs, slice by slice: with the last one, it is in none any more, except where
    it is the last member.

    With ``directories``, only the ISRs of its replicas in these log directories. If it ``forgets``, it leaves
    the ELRs as well (KIP-966), because it may have lost records.
    """

    MISSES_NONE = True

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
        return _usual_changes(view, self._broker_id, rows)

    def one_by_one(
        self, view: ClusterView, ref: PartitionRef, partition: Partition
    ) -> VersionedRecord | None:
        goal = Goal(
            election=view.online_election(ref.topic_id),
            isr=tuple(member for member in partition.isr if member != self._broker_id),
            unclean_shutdown=(self._broker_id,) if self._forgets else (),
        )
        return view.change(ref, partition, goal)


def _usual_changes(view: ClusterView, broker_id: int, rows: Rows) -> tuple[Mask, Changes]:
    """Return which rows are usual, and the changes of all of them: the broker leaves their ISRs.

    A usual row whose change has neither leader nor ISR doesn't change.
    """
    columns = view.state.metadata.partitions.columns
    leader, isr = columns.leader[rows], columns.isr[rows]
    rest, is_once = _without(isr, broker_id)
    sizes = np.count_nonzero(rest != PAD, axis=1)
    usual = is_once & fit_columns(view, rows)
    if view.elr_enabled:
        usual &= sizes >= _min_isrs(view, rows)
    online, is_known = online_replicas(view, rows)
    usual &= is_known
    elected = elected_leaders(columns.replicas[rows], leader, rest, online)
    unled = elected == NO_LEADER
    if view.elr_enabled:
        usual &= ~unled | (leader == NO_LEADER)  # the last known leader is recorded
    if unled.any():
        usual[unled] &= ~may_be_unclean(view, rows[unled], online[unled])
    kept = sizes == 0  # without ELRs the ISR keeps its last member
    new_leader = np.where(elected == leader, np.int32(NO_LEADER_CHANGE), elected)
    if leader_epoch_bump_on_isr_shrink(view.metadata_version):
        new_leader = np.where((elected == leader) & ~kept, leader, new_leader)
    changes = Changes(
        new_leader.astype(np.int32),
        np.full(len(rows), NO_RECOVERY_CHANGE, np.int8),
        rest,
        ~kept,
    )
    return usual, changes


def _without(lists: Int32s, broker_id: int) -> tuple[Int32s, Mask]:
    """Return the lists without a broker, and which of them had it exactly once."""
    here = lists == broker_id
    after = np.cumsum(here, axis=1) > 0
    shifted = np.concatenate([lists[:, 1:], np.full((len(lists), 1), PAD, np.int32)], axis=1)
    return np.where(after, shifted, lists), np.count_nonzero(here, axis=1) == 1


def _min_isrs(view: ClusterView, rows: Rows) -> Int32s:
    places = view.state.metadata.partitions.places(rows)
    min_isrs = np.array([view.min_isr(topic.id) for topic in places.topics], np.int32)
    return np.repeat(min_isrs, places.counts)
