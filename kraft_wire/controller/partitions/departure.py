"""Take a broker out of ISRs in slices: a few thousand partitions a step, decided in columns.

The usual case is decided by arrays (``_usual_changes``): a partition without reassignment and ELR, whose ISR
stays large enough and in which an active member can lead, or in which nobody can lead any more. Any other
partition is decided by ``partition_change``. Both give the same records, but the order of a slice is: usual
ones, then the others.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kraft_wire.columnar.change_records import MOST_MEMBERS
from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.records import Records, VersionedRecord
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.directory_owners import DirectoryOwners
from kraft_wire.controller.partitions.partition_change import Goal
from kraft_wire.metadata.features.metadata_version import (
    leader_epoch_bump_on_isr_shrink,
    partition_change_record_version,
)
from kraft_wire.metadata.partitions.column_changes import PartitionChanges
from kraft_wire.metadata.partitions.columns import PAD, Changes
from kraft_wire.metadata.partitions.partition import NO_LEADER, NO_LEADER_CHANGE
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kraft_wire.metadata.partitions.columns import Int32s
    from kraft_wire.metadata.partitions.partitions import Rows

    Mask = NDArray[np.bool_]

WINDOW_ROWS: Final = 8192
"""The rows of a slice. 10,000 records fit into a batch."""
MOST_UNUSUAL: Final = 400
"""The partitions of a slice that are decided one by one, at some 20 µs each."""
_HIGHEST_EPOCH: Final = 2**31 - 2
_NO_RECOVERY_CHANGE: Final = -1


class Slice(msgspec.Struct, frozen=True):
    """The changes of one step. ``is_complete`` says that, with them, the broker is in none of the ISRs any
    more, except where it is the last member."""

    records: Records
    is_complete: bool


class Departure:
    """A broker's way out of the ISRs, slice by slice.

    With ``directories``, only the ISRs of its replicas in these log directories. If it ``forgets``, it leaves
    the ELRs as well (KIP-966), because it may have lost records.

    The rows are passed over in order. A pass that took several steps may have missed partitions whose rows
    moved meanwhile, so there is another pass, until one finds nothing to change.
    """

    def __init__(
        self, broker_id: int, *, directories: Collection[Uuid] | None = None, forgets: bool = False
    ) -> None:
        self._broker_id = broker_id
        self._directories = directories
        self._forgets = forgets
        self._next_row = 0
        self._changed_in_pass = False
        self._moves_before_pass = 0

    def next_slice(self, state: ControllerState) -> Slice:
        """Return the changes of the next partitions. They must be applied before the next call."""
        partitions = state.metadata.partitions
        begins_pass = self._next_row == 0
        if begins_pass:
            self._changed_in_pass, self._moves_before_pass = False, partitions.moves
        view = ClusterView(state, unavailable=(self._broker_id,))
        while self._next_row < partitions.row_count:
            window = slice(self._next_row, min(self._next_row + WINDOW_ROWS, partitions.row_count))
            rows = self._affected(state, window)
            self._next_row = window.stop
            if len(rows) and (records := self._decide(view, rows)):
                self._changed_in_pass = True
                return Slice(records, begins_pass and self._next_row >= partitions.row_count)
        self._next_row = 0
        nothing_missed = not self._changed_in_pass and partitions.moves == self._moves_before_pass
        return Slice(Records([]), begins_pass or nothing_missed)

    def _affected(self, state: ControllerState, window: slice) -> Rows:
        partitions = state.metadata.partitions
        rows = partitions.rows_with_isr_member(self._broker_id, window)
        if self._forgets:
            rows = np.union1d(rows, partitions.rows_with_elr_member(self._broker_id, window))
        if self._directories is not None:
            rows = partitions.in_directories_of_rows(rows, self._broker_id, self._directories)
        return rows

    def _decide(self, view: ClusterView, rows: Rows) -> Records:
        """Return the records for these rows. If too many are unusual, the next slice begins earlier."""
        usual, changes = _usual_changes(view, self._broker_id, rows)
        others = np.flatnonzero(~usual)
        if len(others) > MOST_UNUSUAL:
            end = int(others[MOST_UNUSUAL])
            self._next_row = int(rows[end])
            rows, usual, changes = rows[:end], usual[:end], changes.part(slice(0, end))
            others = others[:MOST_UNUSUAL]
        changing = usual & (changes.isr_given | (changes.leader != NO_LEADER_CHANGE))
        partitions = view.state.metadata.partitions
        in_columns = PartitionChanges(
            partitions.places(rows[changing]),
            changes.part(changing),
            partition_change_record_version(view.metadata_version),
        )
        return Records([in_columns, self._one_by_one(view, rows[others])])

    def _one_by_one(self, view: ClusterView, rows: Rows) -> list[VersionedRecord]:
        records = []
        for ref in view.state.metadata.partitions.refs(rows):
            partition = view.partition(ref)
            goal = Goal(
                election=view.online_election(ref.topic_id),
                isr=tuple(member for member in partition.isr if member != self._broker_id),
                unclean_shutdown=(self._broker_id,) if self._forgets else (),
            )
            record = view.change(ref, partition, goal)
            if record is not None:
                records.append(record)
        return records


def _usual_changes(view: ClusterView, broker_id: int, rows: Rows) -> tuple[Mask, Changes]:
    """Return which rows are usual, and the changes of all of them: the broker leaves their ISRs.

    A usual row whose change has neither leader nor ISR doesn't change.
    """
    columns = view.state.metadata.partitions.columns
    leader, isr = columns.leader[rows], columns.isr[rows]
    rest, is_once = _without(isr, broker_id)
    sizes = np.count_nonzero(rest != PAD, axis=1)
    usual = is_once & ~columns.rare[rows] & (sizes <= MOST_MEMBERS)
    usual &= np.maximum(columns.leader_epoch[rows], columns.partition_epoch[rows]) < _HIGHEST_EPOCH
    if view.elr_enabled:
        usual &= sizes >= _min_isrs(view, rows)
    online, is_known = _online_replicas(view, rows)
    usual &= is_known
    elected = _elected(columns.replicas[rows], leader, rest, online)
    unled = elected == NO_LEADER
    if view.elr_enabled:
        usual &= ~unled | (leader == NO_LEADER)  # the last known leader is recorded
    if unled.any():
        usual[unled] &= ~_may_be_unclean(view, rows[unled], online[unled])
    kept = sizes == 0  # without ELRs the ISR keeps its last member
    new_leader = np.where(elected == leader, np.int32(NO_LEADER_CHANGE), elected)
    if leader_epoch_bump_on_isr_shrink(view.metadata_version):
        new_leader = np.where((elected == leader) & ~kept, leader, new_leader)
    changes = Changes(
        new_leader.astype(np.int32),
        np.full(len(rows), _NO_RECOVERY_CHANGE, np.int8),
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


def _elected(replicas: Int32s, leader: Int32s, isr: Int32s, online: Mask) -> Int32s:
    """Return the leaders: the present one if it can lead, else the first replica that can, else none.

    A replica can lead if it is in the ISR and its broker and its directory are online.
    """
    in_sync = (replicas[:, :, None] == isr[:, None, :]).any(axis=2)
    can_lead = in_sync & online
    stays = (can_lead & (replicas == leader[:, None])).any(axis=1)
    first = replicas[np.arange(len(replicas)), can_lead.argmax(axis=1)]
    elected: Int32s = np.where(stays, leader, np.where(can_lead.any(axis=1), first, np.int32(NO_LEADER)))
    return elected


def _online_replicas(view: ClusterView, rows: Rows) -> tuple[Mask, Mask]:
    """Return which replicas are on active brokers and in online directories, and for which rows this is
    known."""
    columns = view.state.metadata.partitions.columns
    replicas, directories = columns.replicas[rows], columns.directories[rows]
    owners = DirectoryOwners.of(view.state.metadata.brokers.values(), columns.directory_numbers)
    active = np.isin(replicas, np.array(sorted(view.active), np.int32))
    can_work: Mask = active & owners.online(replicas, directories)
    is_known: Mask = owners.is_known(directories)
    return can_work, is_known


def _may_be_unclean(view: ClusterView, rows: Rows, online: Mask) -> Mask:
    """Return for which rows an unclean election is possible: it is allowed, and any replica is online."""
    places = view.state.metadata.partitions.places(rows)
    allowed = [view.allows_unclean_election(topic.id) for topic in places.topics]
    return np.repeat(np.array(allowed, np.bool_), places.counts) & online.any(axis=1)


def _min_isrs(view: ClusterView, rows: Rows) -> Int32s:
    places = view.state.metadata.partitions.places(rows)
    min_isrs = np.array([view.min_isr(topic.id) for topic in places.topics], np.int32)
    return np.repeat(min_isrs, places.counts)
