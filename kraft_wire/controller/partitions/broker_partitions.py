"""Make the records that change a broker's partitions: when it is unfenced, and when replicas of it fail.

``departure`` takes a broker out of all its ISRs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.partition_change import Goal

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.partition import PartitionRef


def records_for_unfenced(state: ControllerState, broker_id: int) -> list[VersionedRecord]:
    """Elect leaders for partitions without one, now that this broker may lead."""
    view = ClusterView(state, arriving=(broker_id,))
    return _records(view, state.metadata.partitions.without_leader())


def records_for_offline_replicas(
    state: ControllerState, broker_id: int, refs: Iterable[PartitionRef]
) -> list[VersionedRecord]:
    """Remove the broker from the ISRs of these partitions, because its replicas of them are offline."""
    return _records(ClusterView(state, unavailable=(broker_id,)), refs, leaving=(broker_id,))


def _records(
    view: ClusterView, refs: Iterable[PartitionRef], leaving: Collection[int] = ()
) -> list[VersionedRecord]:
    records = []
    for ref in refs:
        partition = view.partition(ref)
        goal = Goal(
            election=view.online_election(ref.topic_id),
            isr=tuple(member for member in partition.isr if member not in leaving),
        )
        record = view.change(ref, partition, goal)
        if record is not None:
            records.append(record)
    return records
