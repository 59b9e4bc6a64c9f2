"""Serve CreatePartitions (37), versions 0-3: add partitions to topics.

Each topic succeeds or fails by itself. The records of all that succeed are one atomic decision, unless the
request has so many topics that they are changed in pieces. From version 3 on the client's quota of changed
partitions is strict (KIP-599). Kafka requires ALTER on each topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from kraft_wire.controller.decision.context import Context, ControllerState, Result, refused
from kraft_wire.controller.decision.item_work import LimitedWork, pieces_of
from kraft_wire.controller.decision.records import Columns, Records, TooLargeForBatch, VersionedRecord
from kraft_wire.controller.decision.work import WorkKind
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.quotas.mutations import MutationQuota
from kraft_wire.controller.topics.new_partitions import (
    REPLICAS_PER_PIECE,
    check_assignment,
    check_batch,
    check_partition_total,
    new_partition_records,
)
from kraft_wire.controller.topics.placement import Assignments, ReplicaPlacer
from kraft_wire.metadata.partitions.lazy_numpy import np
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.protocol.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kraft_wire.security.authorization import AclOperation, topic_resource

_FIRST_VERSION_WITH_STRICT_QUOTA = 3
TOPICS_PER_PIECE: Final = 500
"""The topics that get new partitions in one step."""


def handle(
    state: ControllerState, request: CreatePartitionsRequest, version: int, context: Context
) -> Result:
    """Add partitions to the topics that allow it.

    Raises ApiError(POLICY_VIOLATION) for more than 10,000 new partitions.
    """
    occurrences = Counter(topic.name for topic in request.topics)
    results = [
        _failure(name, ErrorCode.INVALID_REQUEST, "the topic is in the request more than once")
        for name, count in occurrences.items()
        if count > 1
    ]
    permitted: list[CreatePartitionsTopic] = []
    for topic in request.topics:
        if occurrences[topic.name] > 1:
            continue
        if context.may_do_everything or context.may(AclOperation.ALTER, topic_resource(topic.name)):
            permitted.append(topic)
        else:
            results.append(_refusal(topic.name))
    check_partition_total(sum(max(_additional(state, topic), 0) for topic in permitted))
    quota = state.mutation_quota(context, is_strict=version >= _FIRST_VERSION_WITH_STRICT_QUOTA)

    def add(
        state: ControllerState, topics: Sequence[CreatePartitionsTopic]
    ) -> tuple[list[CreatePartitionsTopicResult], Records]:
        return _add(state, topics, context, quota)

    def respond(added: list[CreatePartitionsTopicResult]) -> CreatePartitionsResponse:
        return CreatePartitionsResponse(quota.throttle_time_ms, results + added)

    factors = _replication_factors(state, permitted)

    def weight(topic: CreatePartitionsTopic) -> int:
        return max(_additional(state, topic), 0) * factors.get(topic.name, 0)

    pieces = pieces_of(permitted, TOPICS_PER_PIECE, weight, REPLICAS_PER_PIECE)
    work = LimitedWork(
        WorkKind.CREATE_PARTITIONS, pieces, add, respond, validate_only=request.validate_only, quota=quota
    )
    return work.begin(state, context)


def _add(
    state: ControllerState, topics: Iterable[CreatePartitionsTopic], context: Context, quota: MutationQuota
) -> tuple[list[CreatePartitionsTopicResult], Records]:
    """Return the results and the records of new partitions in some topics. Raises TooLargeForBatch."""
    view = ClusterView(state)
    placer = ReplicaPlacer(view.usable_brokers(), context.entropy)
    results: list[CreatePartitionsTopicResult] = []
    parts: list[Sequence[VersionedRecord] | Columns] = []
    for topic in topics:
        try:
            parts.append(_new_partitions(view, placer, topic, quota))
            results.append(CreatePartitionsTopicResult(name=topic.name))
        except TooLargeForBatch:
            raise
        except ApiError as error:
            results.append(_failure(topic.name, error.code, error.message))
    return results, Records(parts)


def _failure(name: str, code: ErrorCode, message: str) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)


def _refusal(name: str) -> CreatePartitionsTopicResult:
    error = refused(AclOperation.ALTER, topic_resource(name))
    return _failure(name, error.code, error.message)


def _additional(state: ControllerState, topic: CreatePartitionsTopic) -> int:
    existing = state.metadata.topics.by_name(topic.name)
    return 0 if existing is None else topic.count - existing.partition_count


def _replication_factors(state: ControllerState, topics: Iterable[CreatePartitionsTopic]) -> dict[str, int]:
    """Return the replication factors of those topics that there are: the first partition has it."""
    first_rows: dict[str, int] = {}
    for topic in topics:
        existing = state.metadata.topics.by_name(topic.name)
        rows = None if existing is None else state.metadata.topics.find_rows(existing.id)
        if rows is not None and rows.count:
            first_rows[topic.name] = rows.start
    if not first_rows:
        return {}
    factors = state.metadata.partitions.replication_factors(np.array(list(first_rows.values()), np.intp))
    return dict(zip(first_rows, factors.tolist(), strict=True))


def _new_partitions(
    view: ClusterView, placer: ReplicaPlacer, topic: CreatePartitionsTopic, quota: MutationQuota
) -> Sequence[VersionedRecord] | Columns:
    existing = view.state.metadata.topics.by_name(topic.name)
    if existing is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic.name}")
    additional = topic.count - existing.partition_count
    if additional <= 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {topic.name} has {existing.partition_count} partitions; {topic.count} is not an increase",
        )
    if topic.assignments is not None and len(topic.assignments) != additional:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"the request adds {additional} partitions, but has {len(topic.assignments)} assignments",
        )
    quota.spend(additional)
    first = view.state.metadata.partitions.get(existing.id, 0)
    if first is None:
        raise LookupError(f"topic {topic.name} has {existing.partition_count} partitions, but no partition 0")
    assignments = _assignments(view, placer, topic, existing.partition_count, additional, len(first.replicas))
    return new_partition_records(view, existing.id, existing.partition_count, assignments)


def _assignments(
    view: ClusterView,
    placer: ReplicaPlacer,
    topic: CreatePartitionsTopic,
    first_index: int,
    additional: int,
    replication_factor: int,
) -> Assignments:
    if topic.assignments is None:
        placer.check(replication_factor)
        check_batch(view, additional, replication_factor, others=0)
        return placer.place(additional, replication_factor)
    return [
        check_assignment(view, index, assignment.broker_ids, replication_factor)
        for index, assignment in enumerate(topic.assignments, first_index)
    ]
