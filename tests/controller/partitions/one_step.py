"""Decide about a broker's partitions in one step, one partition after the other.

The slices of columns must come to the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.partition_change import Election, Goal
from kraft_wire.metadata.partitions.partition import NO_LEADER, Partition, PartitionRef
from kraft_wire.protocol.uuid import Uuid
from tests.support.partition_queries import partitions_where


def departure(
    state: ControllerState,
    broker_id: int,
    *,
    directories: Collection[Uuid] | None = None,
    forgets: bool = False,
) -> list[VersionedRecord]:
    """Remove the broker from ISRs, and from ELRs if it ``forgets``."""
    partitions = state.metadata.partitions
    refs: Iterable[PartitionRef] = partitions.with_isr_member(broker_id)
    if directories is not None:
        lost = set(directories)
        inside = set(partitions_where(state.metadata, lambda one: one.directory_of(broker_id) in lost))
        refs = [ref for ref in refs if ref in inside]
    if forgets:
        refs = [*refs, *partitions_where(state.metadata, lambda one: broker_id in one.elr)]
    view = ClusterView(state, unavailable=(broker_id,))
    records = []
    for ref in refs:
        partition = view.partition(ref)
        goal = Goal(
            election=view.online_election(ref.topic_id),
            isr=tuple(member for member in partition.isr if member != broker_id),
            unclean_shutdown=(broker_id,) if forgets else (),
        )
        record = view.change(ref, partition, goal)
        if record is not None:
            records.append(record)
    return records


def elections(
    state: ControllerState, election: Election, *, arriving: Collection[int] = (), everywhere: bool = False
) -> list[VersionedRecord]:
    """Hold elections of one kind for all partitions that need one."""
    view = ClusterView(state, arriving=arriving)
    needs_one = _without_preferred_leader if election is Election.PREFERRED else _without_leader
    records = []
    for ref in partitions_where(state.metadata, needs_one):
        kind = view.online_election(ref.topic_id) if election is Election.ONLINE else election
        if election is Election.UNCLEAN and not everywhere and not view.allows_unclean_election(ref.topic_id):
            continue
        record = view.change(ref, view.partition(ref), Goal(election=kind))
        if record is not None:
            records.append(record)
    return records


def _without_preferred_leader(partition: Partition) -> bool:
    return partition.leader != partition.preferred_leader


def _without_leader(partition: Partition) -> bool:
    return partition.leader == NO_LEADER
