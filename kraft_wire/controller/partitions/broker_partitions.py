"""Make the records for replicas of a broker that turn out to be offline."""

from __future__ import annotations

from collections.abc import Iterable

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.partition_change import Goal
from kraft_wire.metadata.partitions.partition import PartitionRef


def records_for_offline_replicas(
    state: ControllerState, broker_id: int, refs: Iterable[PartitionRef]
) -> list[VersionedRecord]:
    """Remove the broker from the ISRs of these partitions. ``departure`` takes it out of all ISRs."""
    view = ClusterView(state, unavailable=(broker_id,))
    records = []
    for ref in refs:
        partition = view.partition(ref)
        goal = Goal(
            election=view.online_election(ref.topic_id),
            isr=tuple(member for member in partition.isr if member != broker_id),
        )
        record = view.change(ref, partition, goal)
        if record is not None:
            records.append(record)
    return records
