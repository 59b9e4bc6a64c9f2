"""Make the records that change a broker's partitions when the state of the broker changes.

Each function returns PartitionChangeRecords only. The caller adds the record of the broker itself, in the
order of Kafka's ReplicationControlManager: after them when the broker is fenced or unregistered or loses
directories, before them when it is unfenced or enters controlled shutdown. The partitions are found by vector
queries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kraft_wire.controller.decision.context import ControllerState, VersionedRecord
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.partition_change import Goal
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.partition import PartitionRef


def records_for_fenced(state: ControllerState, broker_id: int) -> list[VersionedRecord]:
    """Remove the broker from every ISR, and elect other leaders for the partitions that it led."""
    return _records_without(state, broker_id, state.metadata.partitions.with_isr_member(broker_id))


def records_for_controlled_shutdown(state: ControllerState, broker_id: int) -> list[VersionedRecord]:
    """Remove the broker from every ISR while it still runs, so that others take over its leaderships."""
    return _records_without(state, broker_id, state.metadata.partitions.with_isr_member(broker_id))


def records_for_unfenced(state: ControllerState, broker_id: int) -> list[VersionedRecord]:
    """Elect leaders for partitions without one, now that this broker may lead."""
    view = ClusterView(state, arriving=(broker_id,))
    return _records(view, state.metadata.partitions.without_leader())


def records_for_unregistered(state: ControllerState, broker_id: int) -> list[VersionedRecord]:
    """Remove the broker from every ISR and every ELR. If it registers again, it counts as a new broker.

    Kafka leaves the broker in the ELR until it registers again without a previous epoch.
    """
    return _records_forgetting(state, broker_id)


def records_for_unclean_restart(state: ControllerState, broker_id: int) -> list[VersionedRecord]:
    """Remove a broker that restarted after an unclean stop from every ISR and every ELR (KIP-966).

    It may have lost records that it acknowledged. After a clean stop use ``records_for_fenced``.
    """
    return _records_forgetting(state, broker_id)


def records_for_offline_directories(
    state: ControllerState, broker_id: int, directories: Collection[Uuid]
) -> list[VersionedRecord]:
    """Remove the broker from the ISRs of its replicas in log directories that failed (KIP-858)."""
    refs = state.metadata.partitions.in_directories(broker_id, directories)
    return _records_without(state, broker_id, refs)


def records_for_offline_replicas(
    state: ControllerState, broker_id: int, refs: Iterable[PartitionRef]
) -> list[VersionedRecord]:
    """Remove the broker from the ISRs of these partitions, because its replicas of them are offline."""
    return _records_without(state, broker_id, refs)


def _records_without(
    state: ControllerState, broker_id: int, refs: Iterable[PartitionRef]
) -> list[VersionedRecord]:
    return _records(ClusterView(state, unavailable=(broker_id,)), refs, leaving=(broker_id,))


def _records_forgetting(state: ControllerState, broker_id: int) -> list[VersionedRecord]:
    view = ClusterView(state, unavailable=(broker_id,))
    partitions = state.metadata.partitions
    refs = [*partitions.with_isr_member(broker_id), *partitions.in_elr(broker_id)]
    return _records(view, refs, leaving=(broker_id,), unclean_shutdown=(broker_id,))


def _records(
    view: ClusterView,
    refs: Iterable[PartitionRef],
    leaving: Collection[int] = (),
    unclean_shutdown: Collection[int] = (),
) -> list[VersionedRecord]:
    records = []
    for ref in refs:
        partition = view.partition(ref)
        goal = Goal(
            election=view.online_election(ref.topic_id),
            isr=tuple(member for member in partition.isr if member not in leaving),
            unclean_shutdown=unclean_shutdown,
        )
        record = view.change(ref, partition, goal)
        if record is not None:
            records.append(record)
    return records
