"""CreatePartitions (37), versions 0-3.

Kafka requires ALTER on each TOPIC. A topic that fails costs only itself; what succeeds is one atomic
decision.
"""

from __future__ import annotations

from collections import Counter

from kraft_wire.controller.cluster_view import ClusterView
from kraft_wire.controller.context import Context, ControllerState, Result, VersionedRecord
from kraft_wire.controller.new_partitions import check_assignment, check_partition_total, partition_records
from kraft_wire.controller.placement import Assignment, ReplicaPlacer
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.protocol.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


def handle(
    state: ControllerState, request: CreatePartitionsRequest, version: int, context: Context
) -> Result:
    """Add what can be added. Raises ApiError(POLICY_VIOLATION) for more than 10,000 new partitions."""
    occurrences = Counter(topic.name for topic in request.topics)
    topics = [topic for topic in request.topics if occurrences[topic.name] == 1]
    check_partition_total(sum(max(_additional(state, topic), 0) for topic in topics))
    view = ClusterView(state)
    placer = ReplicaPlacer(view.usable_brokers(), context.entropy)
    results = [
        _failure(name, ErrorCode.INVALID_REQUEST, "the topic is in the request more than once")
        for name, count in occurrences.items()
        if count > 1
    ]
    records: list[VersionedRecord] = []
    for topic in topics:
        try:
            records += _new_partitions(view, placer, topic)
        except ApiError as error:
            results.append(_failure(topic.name, error.code, error.message))
        else:
            results.append(CreatePartitionsTopicResult(name=topic.name))
    return Result(CreatePartitionsResponse(results=results), () if request.validate_only else records)


def error_response(
    request: CreatePartitionsRequest, version: int, code: ErrorCode, message: str
) -> CreatePartitionsResponse:
    """Every topic fails with ``code``."""
    return CreatePartitionsResponse(results=[_failure(topic.name, code, message) for topic in request.topics])


def _failure(name: str, code: ErrorCode, message: str) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)


def _additional(state: ControllerState, topic: CreatePartitionsTopic) -> int:
    existing = state.metadata.topics.by_name(topic.name)
    return 0 if existing is None else topic.count - existing.partition_count


def _new_partitions(
    view: ClusterView, placer: ReplicaPlacer, topic: CreatePartitionsTopic
) -> list[VersionedRecord]:
    existing = view.state.metadata.topics.by_name(topic.name)
    if existing is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic.name}")
    additional = topic.count - existing.partition_count
    if additional <= 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {topic.name} has {existing.partition_count} partitions; {topic.count} is not an increase",
        )
    first = view.state.metadata.partitions.get(existing.id, 0)
    if first is None:
        raise LookupError(f"topic {topic.name} has {existing.partition_count} partitions, but no partition 0")
    assignments = _assignments(view, placer, topic, existing.partition_count, additional, len(first.replicas))
    return partition_records(view, existing.id, existing.partition_count, assignments)


def _assignments(
    view: ClusterView,
    placer: ReplicaPlacer,
    topic: CreatePartitionsTopic,
    first_index: int,
    additional: int,
    replication_factor: int,
) -> list[Assignment]:
    if topic.assignments is None:
        return placer.place(additional, replication_factor)
    if len(topic.assignments) != additional:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{additional} partitions are to be added, {len(topic.assignments)} assignments are given",
        )
    return [
        check_assignment(view, index, assignment.broker_ids, replication_factor)
        for index, assignment in enumerate(topic.assignments, first_index)
    ]
