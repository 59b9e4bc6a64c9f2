"""Change the configurations of resources: what IncrementalAlterConfigs and AlterConfigs share.

Each resource succeeds or fails as a whole and by itself. A broker's values are written even if they don't
change, so that brokers read again the files that a value names (KAFKA-14136). With eligible leader replicas
(KIP-966) min.insync.replicas is a setting of the cluster: no broker overrides it, and a change clears ELRs.
Rules: ConfigurationControlManager.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from kraft_wire.configs.java_text import parse_int32
from kraft_wire.configs.schema import ALL_BROKERS, MIN_INSYNC_REPLICAS, keys_of
from kraft_wire.configs.validation import validate_configs, validate_resource
from kraft_wire.controller.config_apis.broker_key_rules import check_broker_key
from kraft_wire.controller.decision.context import Context, ControllerState
from kraft_wire.controller.decision.item_work import CHARS_PER_PIECE, LimitedWork, pieces_of
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.work import WorkKind
from kraft_wire.controller.policies import ConfigChange
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.security.authorization import CLUSTER, AclOperation, group_resource, topic_resource

MAX_VALUE_BYTES: Final = 32767
"""The protocol's limit for strings. Only an append can exceed it."""

RESOURCES_PER_PIECE: Final = 500
"""The resources that are changed in one step. They take some 15 ms, also to write and apply their records."""

CHARS_OF_A_PATTERNS_CHAR: Final = 15
"""A subscription to client metrics has regular expressions, which take 2 µs a character to check."""

# On Python 3.11 a member of an enumeration takes as long to look up as all else that is done with it.
_TOPIC: Final = ResourceType.TOPIC
_BROKER: Final = ResourceType.BROKER
_BROKER_LOGGER: Final = ResourceType.BROKER_LOGGER
_CLIENT_METRICS: Final = ResourceType.CLIENT_METRICS
STORED: Final = frozenset(
    {ResourceType.TOPIC, ResourceType.BROKER, ResourceType.CLIENT_METRICS, ResourceType.GROUP}
)
"""The types of resources whose configuration is in the log."""


class NamedValue(Protocol):
    """A key of a request with its value."""

    name: str
    value: str | None


class Changed(Protocol):
    """A resource of a request, by type and name."""

    resource_type: int
    resource_name: str

    @property
    def configs(self) -> Sequence[NamedValue]: ...


Requested = TypeVar("Requested", bound=Changed)
Values = Mapping[str, str]


class Answer(NamedTuple):
    """The answer for one resource."""

    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str


def change_configs(
    state: ControllerState,
    context: Context,
    resources: Sequence[Requested],
    change: Callable[[ControllerState, Requested, ConfigChanges], list[VersionedRecord]],
    respond: Callable[[list[Answer]], Message],
    *,
    validate_only: bool,
) -> LimitedWork[Requested, Answer]:
    """Return the work that changes the resources that can be changed, and answers with the errors of others.

    ``change`` returns the records of one resource, or raises ApiError. A resource that is named twice is
    refused once. Loggers come last, and each mention of one is answered.
    """
    mentions = Counter(map(_identity, resources))
    changes = ConfigChanges(context, state.settings.static_configs)

    def alter(
        state: ControllerState, resources: Sequence[Requested]
    ) -> tuple[list[Answer], list[VersionedRecord]]:
        records: list[VersionedRecord] = []
        answers: list[Answer] = []
        done = int(ErrorCode.NONE)
        for resource in resources:
            identity = _identity(resource)
            try:
                if resource.resource_type in STORED and mentions[identity] > 1:
                    raise ApiError(
                        ErrorCode.INVALID_REQUEST, "the request names this resource more than once"
                    )
                records += change(state, resource, changes)
                answers.append(Answer(done, None, *identity))
            except ApiError as error:
                answers.append(Answer(int(error.code), error.message, *identity))
        return answers, [*records, *_cleared_elrs(state, records)]

    def chars(resource: Requested) -> int:
        present = state.metadata.configs.get(*_identity(resource))
        count = _value_chars(present.values()) + _value_chars(config.value for config in resource.configs)
        return count * CHARS_OF_A_PATTERNS_CHAR if resource.resource_type == _CLIENT_METRICS else count

    pieces = pieces_of(_to_answer(resources), RESOURCES_PER_PIECE, chars, CHARS_PER_PIECE)
    return LimitedWork(WorkKind.ALTER_CONFIGS, pieces, alter, respond, validate_only=validate_only)


class ConfigChanges:
    """Makes the records of one request's changes. Equal configurations of many resources are validated only
    once."""

    def __init__(self, context: Context, static_configs: Mapping[str, str]) -> None:
        self._context = context
        self._static_configs = static_configs
        self._valid: set[Hashable] = set()

    def present(self, state: ControllerState, resource_type: int, name: str) -> Values:
        """Return the values of a resource whose keys Kafka still has.

        The log of an upgraded cluster may hold others. Java's controller drops them when it replays, but
        those of brokers, where any key may be set.
        """
        values = state.metadata.configs.get(resource_type, name)
        if resource_type == _BROKER or not values:
            return values
        keys = keys_of(resource_type)
        return {key: value for key, value in values.items() if key in keys}

    def records(
        self, state: ControllerState, resource: Changed, present: Values, wanted: Mapping[str, str | None]
    ) -> list[VersionedRecord]:
        """Return the records that give a resource with ``present`` values the ``wanted`` ones; None removes a
        value. Of several faults it raises the one that Java names, as ApiError."""
        resource_type, name = _identity(resource)
        is_broker = resource_type == _BROKER
        is_known_topic = resource_type == _TOPIC and state.metadata.topics.is_name(name)
        changes = {key: value for key, value in wanted.items() if is_broker or value != present.get(key)}
        for key, value in changes.items():
            _check_size(key, value)
            if is_broker:
                check_broker_key(state, self._context, name, key, present.get(key), value)
        if not is_known_topic:
            validate_resource(resource_type, name)
        if is_broker:
            _check_existence(state, _BROKER, name)  # before the values, which Java's controller doesn't check
        merged: Mapping[str, str | None] = {**present, **changes} if present else changes
        values = {key: value for key, value in merged.items() if value is not None}
        self._validate(resource_type, values, present)
        if not is_known_topic:
            _check_existence(state, resource_type, name)
        state.policies.check_configs(lambda: _named_change(resource, changes))
        return [(_record(resource_type, name, key, value), 0) for key, value in changes.items()]

    def _validate(self, resource_type: int, values: Values, present: Values) -> None:
        case = resource_type, tuple(values.items()), tuple(present.items())
        if case not in self._valid:
            validate_configs(resource_type, values, present, self._static_configs)
            self._valid.add(case)


def check_permission(resource_type: int, name: str, context: Context) -> None:
    """Raise ApiError if the client may not change the configuration of a resource."""
    if context.may_do_everything:
        return
    match resource_type:
        case ResourceType.TOPIC:
            context.check_permission(AclOperation.ALTER_CONFIGS, topic_resource(name))
        case ResourceType.GROUP:
            context.check_permission(AclOperation.ALTER_CONFIGS, group_resource(name))
        case ResourceType.BROKER_LOGGER:
            context.check_permission(AclOperation.CLUSTER_ACTION, CLUSTER)
        case _:
            context.check_permission(AclOperation.ALTER_CONFIGS, CLUSTER)


def check_keys(configs: Sequence[NamedValue]) -> None:
    """Raise ApiError if a key is there more than once."""
    if len(configs) > 1 and len({config.name for config in configs}) < len(configs):
        twice = sorted(name for name, count in Counter(c.name for c in configs).items() if count > 1)
        raise ApiError(ErrorCode.INVALID_REQUEST, f"changed more than once: {', '.join(twice)}")


def _to_answer(resources: Iterable[Requested]) -> Iterator[Requested]:
    """Yield the resources in the order of their answers: loggers last, all others once."""
    seen: set[tuple[int, str]] = set()
    for resource in sorted(resources, key=_is_logger):
        identity = _identity(resource)
        if identity not in seen or resource.resource_type not in STORED:
            seen.add(identity)
            yield resource


def _value_chars(values: Iterable[str | None]) -> int:
    return sum(len(value or "") for value in values)


def _identity(resource: Changed) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def _is_logger(resource: Changed) -> bool:
    return resource.resource_type == _BROKER_LOGGER


def _check_size(key: str, value: str | None) -> None:
    if value is not None and (size := len(value.encode())) > MAX_VALUE_BYTES:
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"{key} would have {size} bytes; the limit is {MAX_VALUE_BYTES}"
        )


def _check_existence(state: ControllerState, resource_type: int, name: str) -> None:
    if resource_type == _TOPIC and not state.metadata.topics.is_name(name):
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    if resource_type == _BROKER and name != ALL_BROKERS:
        metadata, node = state.metadata, parse_int32(name)
        if node not in metadata.brokers and node not in metadata.controllers and node not in state.voter_ids:
            raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"no node with id {node} is registered")


def _record(resource_type: int, name: str, key: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)


def _named_change(resource: Changed, changes: Mapping[str, str | None]) -> ConfigChange:
    """Return the part of the changes that a request names."""
    named = {config.name for config in resource.configs}
    configs = {key: value for key, value in changes.items() if key in named}
    return ConfigChange(ResourceType(resource.resource_type), resource.resource_name, configs)


def _cleared_elrs(state: ControllerState, records: Sequence[VersionedRecord]) -> list[VersionedRecord]:
    """Return the records that clear the ELRs of each topic whose min.insync.replicas changes, or of all."""
    if not state.metadata.features.elr_enabled:
        return []
    cleared: list[VersionedRecord] = []
    for record, _ in records:
        if isinstance(record, ConfigRecord) and record.name == MIN_INSYNC_REPLICAS:
            is_topic = record.resource_type == _TOPIC
            cleared.append((ClearElrRecord(topic_name=record.resource_name if is_topic else ""), 0))
    return cleared
