"""What becomes of a broker's partitions when its state changes.

Each function returns PartitionChangeRecords only; the caller adds the record of the broker itself, behind
them when the broker goes (fenced, unregistered, directories lost) and before them when it comes or is about
to go (unfenced, controlled shutdown), as Kafka's ReplicationControlManager does. The rows concerned are found
by vector queries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kraft_wire.controller.cluster_view import ClusterView
from kraft_wire.controller.context import ControllerState, VersionedRecord
from kraft_wire.controller.partition_change import Goal
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from kraft_wire.metadata.partition import PartitionRef


def records_for_fenced(state: ControllerState, broker_id: int) -> list[VersionedRecord]:
    """The broker leaves every ISR, and others lead what it led."""
    return _records_without(state, broker_id, state.metadata.partitions.with_isr_member(broker_id))


def records_for_controlled_shutdown(state: ControllerState, broker_id: int) -> list[VersionedRecord]:
    """Controlled shutdown: the broker leaves every ISR while it is still up to hand its leaderships over."""
    return _records_without(state, broker_id, state.metadata.partitions.with_isr_member(broker_id))


def records_for_unfenced(state: ControllerState, broker_id: int) -> list[VersionedRecord]:
    """Partitions without a leader get one, where this broker may be it."""
    view = ClusterView(state, arriving=(broker_id,))
    return _records(view, state.metadata.partitions.without_leader())


def records_for_unregistered(state: ControllerState, broker_id: int) -> list[VersionedRecord]:
    """The broker leaves every ISR and every ELR: should it register again, it counts as new.

    (Kafka's records leave it in the ELR until then, when its registration without a previous epoch removes
    it.)
    """
    return _records_forgetting(state, broker_id)


def records_for_unclean_restart(state: ControllerState, broker_id: int) -> list[VersionedRecord]:
    """A new incarnation registers that may have lost what the last one acknowledged (KIP-966).

    Where ELRs are in use the broker leaves those as well as the ISRs. A clean restart is like being fenced.
    """
    return _records_forgetting(state, broker_id)


def records_for_offline_directories(
    state: ControllerState, broker_id: int, directories: Collection[Uuid]
) -> list[VersionedRecord]:
    """Log directories of the broker went offline: it leaves the ISR of the partitions in them (KIP-858)."""
    refs = state.metadata.partitions.in_directories(broker_id, directories)
    return _records_without(state, broker_id, refs)


def records_for_offline_replicas(
    state: ControllerState, broker_id: int, refs: Iterable[PartitionRef]
) -> list[VersionedRecord]:
    """The broker's replicas of these partitions are offline: it leaves their ISRs."""
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
