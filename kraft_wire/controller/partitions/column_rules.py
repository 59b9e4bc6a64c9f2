"""Decide for many partitions at once, in columns, what ``partition_change`` decides for one.

The columns don't hold everything: partitions that are being reassigned or have an ELR are decided one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from kraft_wire.columnar.change_records import MOST_MEMBERS
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.directory_owners import DirectoryOwners
from kraft_wire.metadata.features.metadata_version import partition_change_record_version
from kraft_wire.metadata.partitions.column_changes import PartitionChanges
from kraft_wire.metadata.partitions.columns import PAD, Changes
from kraft_wire.metadata.partitions.partition import NO_LEADER, NO_LEADER_CHANGE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kraft_wire.metadata.partitions.columns import Int32s
    from kraft_wire.metadata.partitions.partitions import Rows

    Mask = NDArray[np.bool_]

_HIGHEST_EPOCH: Final = 2**31 - 2
NO_RECOVERY_CHANGE: Final = -1


def fit_columns(view: ClusterView, rows: Rows) -> Mask:
    """Return which rows columns can decide: they have no rare lists, few members, and room in their
    epochs."""
    columns = view.state.metadata.partitions.columns
    members = np.count_nonzero(columns.isr[rows] != PAD, axis=1)
    highest = np.maximum(columns.leader_epoch[rows], columns.partition_epoch[rows])
    fit: Mask = ~columns.rare[rows] & (members <= MOST_MEMBERS) & (highest < _HIGHEST_EPOCH)
    return fit


def changes_of(view: ClusterView, rows: Rows, changes: Changes) -> PartitionChanges:
    """Return those of the changes that change something."""
    changing = changes.isr_given | (changes.leader != NO_LEADER_CHANGE)
    places = view.state.metadata.partitions.places(rows[changing])
    return PartitionChanges(
        places, changes.part(changing), partition_change_record_version(view.metadata_version)
    )


def elected_leaders(
    replicas: Int32s, leader: Int32s, isr: Int32s, online: Mask, *, preferred: bool = False
) -> Int32s:
    """Return the leaders: the present one if it can lead, else the first replica that can, else none. If
    ``preferred``, the first replica comes before the present leader.

    A replica can lead if it is in the ISR and its broker and its directory are online.
    """
    in_sync = (replicas[:, :, None] == isr[:, None, :]).any(axis=2)
    can_lead = in_sync & online
    stays = (can_lead & (replicas == leader[:, None])).any(axis=1)
    if preferred:
        stays &= ~can_lead[:, 0]
    first = replicas[np.arange(len(replicas)), can_lead.argmax(axis=1)]
    elected: Int32s = np.where(stays, leader, np.where(can_lead.any(axis=1), first, np.int32(NO_LEADER)))
    return elected


def online_replicas(view: ClusterView, rows: Rows) -> tuple[Mask, Mask]:
    """Return which replicas are on active brokers and in online directories, and for which rows this is
    known."""
    columns = view.state.metadata.partitions.columns
    replicas, directories = columns.replicas[rows], columns.directories[rows]
    owners = DirectoryOwners.of(view.state.metadata.brokers.values(), columns.directory_numbers)
    active = np.isin(replicas, np.array(sorted(view.active), np.int32))
    can_work: Mask = active & owners.online(replicas, directories)
    is_known: Mask = owners.is_known(directories)
    return can_work, is_known


def may_be_unclean(view: ClusterView, rows: Rows, online: Mask) -> Mask:
    """Return for which rows an unclean election is possible: it is allowed, and any replica is online."""
    places = view.state.metadata.partitions.places(rows)
    allowed = [view.allows_unclean_election(topic.id) for topic in places.topics]
    return np.repeat(np.array(allowed, np.bool_), places.counts) & online.any(axis=1)
