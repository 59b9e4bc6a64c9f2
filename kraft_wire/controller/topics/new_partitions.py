"""Check the assignments that a client chose for new partitions, and make the partitions' records.

Many partitions whose brokers are all active are made in columns, others one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kraft_wire.controller.decision.records import (
    MAX_BATCH_BYTES,
    MAX_RECORDS_PER_BATCH,
    TooLargeForBatch,
    VersionedRecord,
)
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.manual_assignment import shown, why_not_assignable
from kraft_wire.controller.topics.placement import Assignment, Assignments
from kraft_wire.metadata.features.metadata_version import partition_record_version
from kraft_wire.metadata.partitions.lazy_numpy import np
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.column_creations import NewPartitions

MAX_PARTITIONS_PER_REQUEST = 10_000
"""A request with more new partitions is rejected before it takes any memory (KAFKA-14204)."""

REPLICAS_PER_PIECE: Final = 20_000
"""The new replicas of one step. They take up to 20 ms, also to write and apply their records."""

_LEAST_REPLICA_BYTES: Final = 4
"""A PartitionRecord has a replica's broker, and from some version on its directory."""
_DIRECTORY_BYTES: Final = 16

FEWEST_IN_COLUMNS: Final = 3
"""So many new partitions of a topic are made faster in columns than one by one."""


def check_partition_total(partition_count: int) -> None:
    """Raise ApiError(POLICY_VIOLATION) if a request asks for too many new partitions at once."""
    if partition_count > MAX_PARTITIONS_PER_REQUEST:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"the request asks for {partition_count} new partitions; split it into requests of at most "
            f"{MAX_PARTITIONS_PER_REQUEST}",
        )


def check_batch(view: ClusterView, partition_count: int, replication_factor: int, others: int) -> None:
    """Raise TooLargeForBatch if these partitions of one topic can't be in a batch, with ``others`` records.

    Only those that pass are worth placing; that takes long for many replicas. Not all that pass fit.
    """
    replica_bytes = _LEAST_REPLICA_BYTES + (_DIRECTORY_BYTES if view.directories_supported else 0)
    records = partition_count + others
    if records > MAX_RECORDS_PER_BATCH or (
        partition_count * replication_factor * replica_bytes > MAX_BATCH_BYTES
    ):
        raise TooLargeForBatch(records)


def check_assignment(
    view: ClusterView, index: int, broker_ids: Sequence[int], replication_factor: int | None
) -> Assignment:
    """Return the assignment that a client chose for partition ``index``.

    The brokers must be registered and distinct, and have a log directory that is not cordoned (since 4.4); at
    least one of them must be active. Raises ApiError(INVALID_REPLICA_ASSIGNMENT).
    """
    problem = _assignment_problem(view, broker_ids, replication_factor)
    if problem:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"the assignment {shown(broker_ids)} of partition {index} {problem}",
        )
    return tuple(broker_ids)


def _assignment_problem(
    view: ClusterView, broker_ids: Sequence[int], replication_factor: int | None
) -> str | None:
    problem = why_not_assignable(view.state, broker_ids)
    if problem is not None:
        return problem
    if replication_factor is not None and len(broker_ids) != replication_factor:
        return f"has {len(broker_ids)} replicas; other partitions of the topic have {replication_factor}"
    if view.active.isdisjoint(broker_ids):
        return "names only brokers that are fenced or shutting down"
    return None


def new_partition_records(
    view: ClusterView, topic_id: Uuid, first_index: int, assignments: Assignments
) -> Sequence[VersionedRecord] | NewPartitions:
    """Return one PartitionRecord for each assignment, in columns where that is faster.

    Raises the errors of ``partition_records``.
    """
    version = partition_record_version(view.metadata_version)
    if len(assignments) >= FEWEST_IN_COLUMNS and view.directories_supported:
        broker_ids = _broker_ids(assignments)
        if view.active.issuperset(broker_ids):
            from kraft_wire.metadata.partitions.column_creations import NewPartitions

            directories = tuple(map(view.default_directory, broker_ids))
            replicas = np.array(assignments, np.int32)
            return NewPartitions(topic_id, first_index, replicas, np.array(broker_ids), directories, version)
    one_by_one = assignments if isinstance(assignments, Sequence) else map(tuple, assignments.tolist())
    return partition_records(view, topic_id, first_index, list(one_by_one))


def _broker_ids(assignments: Assignments) -> list[int]:
    """Return the brokers of the assignments in ascending order."""
    if isinstance(assignments, Sequence):
        return sorted({broker_id for replicas in assignments for broker_id in replicas})
    found: list[int] = np.unique(assignments).tolist()
    return found


def partition_records(
    view: ClusterView, topic_id: Uuid, first_index: int, assignments: Sequence[Assignment]
) -> list[VersionedRecord]:
    """Return one PartitionRecord for each assignment, one by one.

    The active brokers of an assignment form the ISR, and the first of them leads. Raises
    ApiError(INVALID_REPLICATION_FACTOR) if none is active.
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
                f"partition {index}: all brokers of the assignment are fenced or shutting down",
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
