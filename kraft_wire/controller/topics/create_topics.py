"""Serve CreateTopics (19), versions 2-7: create topics.

Each topic succeeds or fails by itself. The records of all that succeed are one atomic decision, unless the
request has so many topics that they are created in pieces. For each topic they are its TopicRecord, its
ConfigRecords, then its PartitionRecords. A ClearElrRecord follows the ConfigRecords, as in Kafka, if one of
them is min.insync.replicas and eligible leader replicas are enabled. Versions: 5 adds the number of
partitions and the effective configs to the response, 7 the topic's id. From 6 on the client's quota of
changed partitions is strict (KIP-599).

Kafka requires CREATE on the cluster or on each topic. A client without DESCRIBE_CONFIGS on a new topic gets
TOPIC_AUTHORIZATION_FAILED as topicConfigErrorCode instead of the partitions and the configs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from kraft_wire.configs.schema import (
    MIN_INSYNC_REPLICAS,
    EffectiveConfig,
    TopicFallbacks,
    effective_topic_configs,
    fallback_topic_configs,
    refuse_nulls,
    topic_fallbacks,
    validate_topic_configs,
)
from kraft_wire.controller.decision.context import Context, ControllerState, Result, refused
from kraft_wire.controller.decision.item_work import CHARS_PER_PIECE, LimitedWork, pieces_of
from kraft_wire.controller.decision.records import Columns, Records, TooLargeForBatch, VersionedRecord
from kraft_wire.controller.decision.work import WorkKind
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.policies import ConfigChange, NewTopic
from kraft_wire.controller.quotas.mutations import MutationQuota
from kraft_wire.controller.topics.new_partitions import (
    REPLICAS_PER_PIECE,
    check_assignment,
    check_batch,
    check_partition_total,
    new_partition_records,
)
from kraft_wire.controller.topics.placement import Assignment, Assignments, ReplicaPlacer
from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.topic_names import why_invalid
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.security.authorization import CLUSTER, AclOperation, topic_resource

_FIRST_VERSION_WITH_CONFIGS = 5
_FIRST_VERSION_WITH_STRICT_QUOTA = 6
_USE_DEFAULT = -1
CHARS_OF_A_REPLICA: Final = CHARS_PER_PIECE // REPLICAS_PER_PIECE
"""A new replica takes as long as so many characters of configuration values."""
TOPICS_PER_PIECE: Final = 200
"""The topics that are created in one step. They take some 15 ms, also to write and apply their records."""


def handle(state: ControllerState, request: CreateTopicsRequest, version: int, context: Context) -> Result:
    """Create the topics that can be created.

    Raises ApiError(POLICY_VIOLATION) for more than 10,000 partitions.
    """
    occurrences = Counter(topic.name for topic in request.topics)
    permitted = _permitted(occurrences, context)
    creatable = [
        topic for topic in request.topics if occurrences[topic.name] == 1 and topic.name in permitted
    ]
    check_partition_total(sum(_partition_count(state, topic) for topic in creatable))
    failures = list(_refusals(occurrences, permitted))

    def weight(topic: CreatableTopic) -> int:
        return _config_chars(topic) + CHARS_OF_A_REPLICA * _replica_count(state, topic)

    pieces = pieces_of(creatable, TOPICS_PER_PIECE, weight, CHARS_PER_PIECE)
    quota = state.mutation_quota(context, is_strict=version >= _FIRST_VERSION_WITH_STRICT_QUOTA)

    def create(
        state: ControllerState, topics: Sequence[CreatableTopic]
    ) -> tuple[list[CreatableTopicResult], Records]:
        creation = _Creation(state, version, context, quota)
        return [creation.create(topic) for topic in topics], creation.records

    def respond(results: list[CreatableTopicResult]) -> CreateTopicsResponse:
        return CreateTopicsResponse(quota.throttle_time_ms, results + failures)

    work = LimitedWork(
        WorkKind.CREATE_TOPICS, pieces, create, respond, validate_only=request.validate_only, quota=quota
    )
    return work.begin(state, context)


def _permitted(names: Iterable[str], context: Context) -> set[str]:
    """Return the names of the topics that the client may create."""
    creatable = {name for name in names if name != CLUSTER_METADATA}
    if context.may(AclOperation.CREATE, CLUSTER):
        return creatable
    return {name for name in creatable if context.may(AclOperation.CREATE, topic_resource(name))}


def _refusals(occurrences: Counter[str], permitted: set[str]) -> Iterator[CreatableTopicResult]:
    """Return the results of topics that can't be created whatever the state is."""
    for name, count in occurrences.items():
        if count > 1:
            yield _failure(name, ErrorCode.INVALID_REQUEST, "the topic is in the request more than once")
        elif name == CLUSTER_METADATA:
            yield _failure(name, ErrorCode.INVALID_REQUEST, f"{name} is an internal topic")
        elif name not in permitted:
            error = refused(AclOperation.CREATE, topic_resource(name))
            yield _failure(name, error.code, error.message)


def _config_chars(topic: CreatableTopic) -> int:
    return sum(len(config.value or "") for config in topic.configs)


def _failure(name: str, code: ErrorCode, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


def _partition_count(state: ControllerState, topic: CreatableTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions == _USE_DEFAULT:
        return state.settings.num_partitions
    return max(topic.num_partitions, 0)


def _replica_count(state: ControllerState, topic: CreatableTopic) -> int:
    if topic.assignments:
        return sum(len(assignment.broker_ids) for assignment in topic.assignments)
    replication_factor = topic.replication_factor
    if replication_factor == _USE_DEFAULT:
        replication_factor = state.settings.default_replication_factor
    return _partition_count(state, topic) * max(replication_factor, 0)


class _Creation:
    """The creation of topics in one step, one after the other."""

    def __init__(self, state: ControllerState, version: int, context: Context, quota: MutationQuota) -> None:
        self._quota = quota
        self._parts: list[Sequence[VersionedRecord] | Columns] = []
        self._state = state
        self._version = version
        self._context = context
        self._view = ClusterView(state)
        self._placer = ReplicaPlacer(self._view.usable_brokers(), context.entropy)
        self._echoes: dict[tuple[tuple[str, str], ...], list[CreatableTopicConfigs]] = {}

    @property
    def records(self) -> Records:
        """The records of all topics that succeeded."""
        return Records(self._parts)

    def create(self, topic: CreatableTopic) -> CreatableTopicResult:
        """Create a topic, or say why that fails. Raises TooLargeForBatch if that refuses the request."""
        try:
            self._check_name(topic.name)
            configs = _checked_configs(self._state, topic)
            assignments = self._assignments(topic)
            self._state.policies.check_topic(lambda: _new_topic(topic, configs, assignments))
            self._quota.spend(len(assignments))
            topic_id = self._context.entropy.uuid()
            partitions = new_partition_records(self._view, topic_id, 0, assignments)
        except TooLargeForBatch:
            raise
        except ApiError as error:
            return _failure(topic.name, error.code, error.message)
        self._parts += [self._topic_records(topic.name, topic_id, configs), partitions]
        result = CreatableTopicResult(name=topic.name, topic_id=topic_id, error_message=None)
        if self._version < _FIRST_VERSION_WITH_CONFIGS:
            return result
        if self._context.may(AclOperation.DESCRIBE_CONFIGS, topic_resource(topic.name)):
            result.num_partitions = len(assignments)
            result.replication_factor = len(assignments[0])
            result.configs = self._echo(configs)
        else:
            result.topic_config_error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return result

    def _topic_records(self, name: str, topic_id: Uuid, configs: Mapping[str, str]) -> list[VersionedRecord]:
        records: list[VersionedRecord] = [(TopicRecord(name=name, topic_id=topic_id), 0)]
        records += [
            (ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=name, name=key, value=value), 0)
            for key, value in configs.items()
        ]
        if MIN_INSYNC_REPLICAS in configs and self._state.metadata.features.elr_enabled:
            records.append((ClearElrRecord(topic_name=name), 0))
        return records

    def _check_name(self, name: str) -> None:
        if self._state.metadata.topics.by_name(name) is not None:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} already exists")
        problem = why_invalid(name)
        if problem:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        other = self._state.metadata.topics.colliding(name)
        if other is not None:
            raise ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"topic {name} collides with topic {other}: their metrics would have the same names, "
                "where '.' becomes '_'",
            )

    def _assignments(self, topic: CreatableTopic) -> Assignments:
        if topic.assignments:
            return self._manual_assignments(topic)
        settings = self._state.settings
        replication_factor, count = topic.replication_factor, topic.num_partitions
        if replication_factor == _USE_DEFAULT:
            replication_factor = settings.default_replication_factor
        elif replication_factor <= 0:
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"replication factor {replication_factor}: use a positive number, or -1 for the default",
            )
        if count == _USE_DEFAULT:
            count = settings.num_partitions
        elif count <= 0:
            raise ApiError(
                ErrorCode.INVALID_PARTITIONS,
                f"{count} partitions: use a positive number, or -1 for the default",
            )
        self._placer.check(replication_factor)
        check_batch(self._view, count, replication_factor, others=1)
        return self._placer.place(count, replication_factor)

    def _manual_assignments(self, topic: CreatableTopic) -> list[Assignment]:
        if topic.replication_factor != _USE_DEFAULT or topic.num_partitions != _USE_DEFAULT:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "with assignments, the replication factor and the number of partitions must both be -1",
            )
        chosen: dict[int, Assignment] = {}
        replication_factor = None
        for assignment in topic.assignments:
            index = assignment.partition_index
            if index in chosen:
                raise ApiError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {index} is assigned more than once"
                )
            chosen[index] = check_assignment(self._view, index, assignment.broker_ids, replication_factor)
            replication_factor = len(chosen[index])
        if chosen.keys() != set(range(len(chosen))):
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"the {len(chosen)} assigned partitions do not have the numbers 0 to {len(chosen) - 1}",
            )
        return [chosen[index] for index in range(len(chosen))]

    def _echo(self, configs: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        """Return the new topic's effective configs. Topics with the same overrides share one list."""
        key = tuple(configs.items())
        echo = self._echoes.get(key)
        if echo is None:
            layers = self._state.config_layers
            if configs:
                echo = _echo(effective_topic_configs(layers, configs))
            else:
                echo = _echo_of_fallbacks(topic_fallbacks(layers))
            self._echoes[key] = echo
        return echo


@lru_cache(maxsize=2)
def _echo_of_fallbacks(fallbacks: TopicFallbacks) -> list[CreatableTopicConfigs]:
    """Return the configs of a topic without overrides. From one request to the next they rarely change."""
    return _echo(fallback_topic_configs(fallbacks))


def _echo(configs: Iterable[EffectiveConfig]) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=config.name,
            value=None if config.sensitive else config.value,
            read_only=config.read_only,
            config_source=config.source,
            is_sensitive=config.sensitive,
        )
        for config in configs
    ]


def _checked_configs(state: ControllerState, topic: CreatableTopic) -> dict[str, str]:
    configs = refuse_nulls({config.name: config.value for config in topic.configs}, "topic")
    if configs:
        validate_topic_configs(configs, static_configs=state.settings.static_configs)
        state.policies.check_configs(lambda: ConfigChange(ResourceType.TOPIC, topic.name, configs))
    return configs


def _new_topic(topic: CreatableTopic, configs: Mapping[str, str], assignments: Assignments) -> NewTopic:
    if topic.assignments:
        return NewTopic(topic.name, None, None, dict(enumerate(assignments)), configs)
    return NewTopic(topic.name, len(assignments), len(assignments[0]), None, configs)
