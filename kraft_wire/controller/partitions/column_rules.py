"""Tell facts about many partitions at once, in columns, on which decisions about them depend.

The columns don't hold everything: partitions that are being reassigned are decided one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from kraft_wire.columnar.change_records import MOST_MEMBERS
from kraft_wire.configs.schema import MIN_INSYNC_REPLICAS
from kraft_wire.controller.partitions.cluster_view import UNCLEAN_ELECTION, ClusterView
from kraft_wire.controller.partitions.partition_change import Election
from kraft_wire.metadata.features.metadata_version import partition_change_record_version
from kraft_wire.metadata.partitions.cells import count_members
from kraft_wire.metadata.partitions.column_changes import PartitionChanges
from kraft_wire.metadata.partitions.columns import Changes
from kraft_wire.metadata.partitions.partition import NO_LEADER_CHANGE

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.cells import Int32s, Mask, Rows

_HIGHEST_EPOCH: Final = 2**31 - 2


def fit_columns(view: ClusterView, rows: Rows, elr: Int32s) -> Mask:
    """Return which rows columns can decide: they have no rare lists, few members, and room in their epochs.

    ``elr`` are the ELRs of the rows. Without the feature of ELRs, a row must not have one.
    """
    columns = view.state.metadata.partitions.columns
    eligible = count_members(elr)
    few = count_members(columns.isr[rows]) + eligible <= MOST_MEMBERS
    highest = np.maximum(columns.leader_epoch[rows], columns.partition_epoch[rows])
    fit: Mask = ~columns.rare[rows] & few & (highest < _HIGHEST_EPOCH)
    if not view.elr_enabled:
        fit &= eligible == 0
    return fit


def changes_of(view: ClusterView, rows: Rows, changes: Changes) -> PartitionChanges:
    """Return those of the changes that change something."""
    changing = changes.isr_given | (changes.leader != NO_LEADER_CHANGE)
    if changes.elr is not None:
        changing |= changes.elr.changing
    places = view.state.metadata.partitions.places(rows[changing])
    return PartitionChanges(
        places, changes.part(changing), partition_change_record_version(view.metadata_version)
    )


def online_replicas(view: ClusterView, rows: Rows) -> tuple[Mask, Mask]:
    """Return which replicas are on active brokers and in online directories, and for which rows this is
    known."""
    columns = view.state.metadata.partitions.columns
    replicas, directories = columns.replicas[rows], columns.directories[rows]
    owners = view.directory_owners
    active = np.isin(replicas, np.array(sorted(view.active), np.int32))
    can_work: Mask = active & owners.online(replicas, directories)
    is_known: Mask = owners.is_known(directories)
    return can_work, is_known


def may_be_unclean(view: ClusterView, rows: Rows, election: Election) -> Mask:
    """Return for which rows an unclean election is allowed. An ONLINE one is unclean where the topic allows
    it."""
    if election is not Election.ONLINE:
        return np.full(len(rows), election is Election.UNCLEAN)
    places = view.state.metadata.partitions.places(rows)
    values = view.topic_values([topic.name for topic in places.topics], UNCLEAN_ELECTION)
    allowed = [value.lower() == "true" for value in values]
    return np.repeat(np.array(allowed, np.bool_), places.counts)


def min_isrs(view: ClusterView, rows: Rows) -> Int32s:
    """Return the min.insync.replicas of rows, at most the replication factor of the topic's partition 0."""
    partitions = view.state.metadata.partitions
    places = partitions.places(rows)
    values = view.topic_values([topic.name for topic in places.topics], MIN_INSYNC_REPLICAS)
    configured = np.array(list(map(int, values)), np.int32)
    firsts = np.array([topic.start for topic in places.topics], np.intp)
    factors = partitions.replication_factors(firsts)
    at_most = np.where(factors == 0, configured, factors)  # without a partition 0 there is no limit
    return np.repeat(np.minimum(configured, at_most), places.counts)
