"""New partitions: checking assignments that a client chose, and the records of any assignment."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.controller.cluster_view import ClusterView
from kraft_wire.controller.context import VersionedRecord
from kraft_wire.controller.placement import Assignment
from kraft_wire.metadata.version import partition_record_version
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.uuid import Uuid

MAX_PARTITIONS_PER_REQUEST = 10_000
"""More new partitions in one request are refused before memory is spent on them (KAFKA-14204)."""


def check_partition_total(partition_count: int) -> None:
    """Raises ApiError(POLICY_VIOLATION) where a request asks for too many new partitions at once."""
    if partition_count > MAX_PARTITIONS_PER_REQUEST:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"the request asks for {partition_count} new partitions; split it into ones of at most "
            f"{MAX_PARTITIONS_PER_REQUEST}",
        )


def check_assignment(
    view: ClusterView, index: int, broker_ids: Sequence[int], replication_factor: int | None
) -> Assignment:
    """The assignment that a client chose for partition ``index``, if it can be.

    Brokers must be registered, each at most once, with a directory that is not cordoned (since 4.4), and one
    of them active. Raises ApiError(INVALID_REPLICA_ASSIGNMENT).
    """
    problem = _assignment_problem(view, broker_ids, replication_factor)
    if problem:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"the assignment {list(broker_ids)} of partition {index} {problem}",
        )
    return tuple(broker_ids)


def _assignment_problem(
    view: ClusterView, broker_ids: Sequence[int], replication_factor: int | None
) -> str | None:
    if not broker_ids:
        return "names no broker"
    for broker_id in broker_ids:
        registration = view.state.metadata.brokers.get(broker_id)
        if registration is None:
            return f"names broker {broker_id}, which is not registered"
        if not registration.has_uncordoned_directory:
            return f"names broker {broker_id}, all of whose log directories are cordoned"
    if len(set(broker_ids)) != len(broker_ids):
        return "names a broker more than once"
    if replication_factor is not None and len(broker_ids) != replication_factor:
        return f"has {len(broker_ids)} replicas, other partitions of the topic have {replication_factor}"
    if view.active.isdisjoint(broker_ids):
        return "names only brokers that are fenced or shutting down"
    return None


def partition_records(
    view: ClusterView, topic_id: Uuid, first_index: int, assignments: Sequence[Assignment]
) -> list[VersionedRecord]:
    """One PartitionRecord an assignment: its active brokers are in sync, the first of those leads.

    Raises ApiError(INVALID_REPLICATION_FACTOR) where none is active.
    """
    version = partition_record_version(view.metadata_version)
    active = view.active
    directories = {
        broker_id: view.default_directory(broker_id)
        for broker_id in {broker_id for replicas in assignments for broker_id in replicas}
    }
    records: list[VersionedRecord] = []
    for index, replicas in enumerate(assignments, first_index):
        isr = replicas if active.issuperset(replicas) else tuple(filter(active.__contains__, replicas))
        if not isr:
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"partition {index}: every broker that could lead it is fenced or shutting down",
            )
        record = PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=replicas,
            isr=isr,
            leader=isr[0],
            leader_epoch=0,
            partition_epoch=0,
        )
        if view.directories_supported:
            record.directories = tuple([directories[broker_id] for broker_id in replicas])
        records.append((record, version))
    return records
