"""Serve IncrementalAlterConfigs (44): set, delete, append to or subtract from configuration keys. KIP-339.

Each resource succeeds or fails as a whole and by itself. A broker's values are written even if they don't
change, so that brokers read again the files that a value names (KAFKA-14136). With eligible leader replicas
(KIP-966) min.insync.replicas is a setting of the cluster: no broker overrides it, and a change clears ELRs.

Kafka requires ALTER_CONFIGS on the topic or group, ALTER_CONFIGS on the cluster for brokers and client
metrics, and CLUSTER_ACTION on the cluster for loggers. Rules: ControllerApis.handleIncrementalAlterConfigs,
ConfigurationControlManager; and ConfigAdminManager, with which brokers reject duplicate keys and missing
values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from kraft_wire.configs.java_text import parse_int32, split
from kraft_wire.configs.schema import ALL_BROKERS, MIN_INSYNC_REPLICAS, keys_of
from kraft_wire.configs.validation import validate_configs, validate_resource
from kraft_wire.controller.config_apis.broker_key_rules import check_broker_key
from kraft_wire.controller.config_apis.broker_loggers import check_loggers
from kraft_wire.controller.config_apis.operation import Operation
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.item_work import CHARS_PER_PIECE, LimitedWork, pieces_of
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.work import WorkKind
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kraft_wire.security.authorization import CLUSTER, AclOperation, group_resource, topic_resource

MAX_VALUE_BYTES: Final = 32767
"""The protocol's limit for strings. Only an append can exceed it."""

RESOURCES_PER_PIECE: Final = 500
"""The resources that are changed in one step. They take some 15 ms, also to write and apply their records."""

# On Python 3.11 a member of an enumeration takes as long to look up as all else that is done with it.
_TOPIC: Final = ResourceType.TOPIC
_BROKER: Final = ResourceType.BROKER
_BROKER_LOGGER: Final = ResourceType.BROKER_LOGGER
_CLIENT_METRICS: Final = ResourceType.CLIENT_METRICS
_SET: Final = Operation.SET
_DELETE: Final = Operation.DELETE
_OPERATIONS: Final = frozenset(map(int, Operation))
_STORED: Final = frozenset(
    {ResourceType.TOPIC, ResourceType.BROKER, ResourceType.CLIENT_METRICS, ResourceType.GROUP}
)
"""The types of resources whose configuration is in the log."""


def handle(
    state: ControllerState, request: IncrementalAlterConfigsRequest, version: int, context: Context
) -> Result:
    """Change the resources that can be changed. The response has the errors of the others.

    A resource that is named twice is refused once. Loggers come last, and each mention of one is answered.
    """
    mentions = Counter(map(_identity, request.resources))
    validation = _Validation(state.settings.static_configs)

    def alter(
        state: ControllerState, resources: Sequence[AlterConfigsResource]
    ) -> tuple[list[AlterConfigsResourceResponse], list[VersionedRecord]]:
        records: list[VersionedRecord] = []
        responses: list[AlterConfigsResourceResponse] = []
        done = ErrorCode.NONE
        for resource in resources:
            try:
                if resource.resource_type in _STORED and mentions[_identity(resource)] > 1:
                    raise ApiError(
                        ErrorCode.INVALID_REQUEST, "the request names this resource more than once"
                    )
                records += _alter(state, resource, context, validation)
                responses.append(_response(resource, done, None))
            except ApiError as error:
                responses.append(_response(resource, error.code, error.message))
        return responses, [*records, *_cleared_elrs(state, records)]

    def respond(responses: list[AlterConfigsResourceResponse]) -> IncrementalAlterConfigsResponse:
        return IncrementalAlterConfigsResponse(responses=responses)

    def chars(resource: AlterConfigsResource) -> int:
        present = state.metadata.configs.get(*_identity(resource))
        return _value_chars(present.values()) + _value_chars(config.value for config in resource.configs)

    pieces = pieces_of(_to_answer(request.resources), RESOURCES_PER_PIECE, chars, CHARS_PER_PIECE)
    work = LimitedWork(WorkKind.ALTER_CONFIGS, pieces, alter, respond, validate_only=request.validate_only)
    return work.begin(state, context)


def _to_answer(resources: Iterable[AlterConfigsResource]) -> Iterator[AlterConfigsResource]:
    """Yield the resources in the order of their answers: loggers last, all others once."""
    seen: set[tuple[int, str]] = set()
    for resource in sorted(resources, key=_is_logger):
        identity = _identity(resource)
        if identity not in seen or resource.resource_type not in _STORED:
            seen.add(identity)
            yield resource


def _value_chars(values: Iterable[str | None]) -> int:
    return sum(len(value or "") for value in values)


def _identity(resource: AlterConfigsResource) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def _is_logger(resource: AlterConfigsResource) -> bool:
    return resource.resource_type == _BROKER_LOGGER


def _response(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=int(code),
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


class _Validation:
    """Validates configurations, and equal ones of many resources only once."""

    def __init__(self, static_configs: Mapping[str, str]) -> None:
        self._static_configs = static_configs
        self._valid: set[Hashable] = set()

    def check(self, resource_type: int, values: Mapping[str, str], existing: Mapping[str, str]) -> None:
        """Raise ApiError if a resource can't have these values after ``existing`` ones."""
        case = resource_type, tuple(values.items()), tuple(existing.items())
        if case not in self._valid:
            validate_configs(resource_type, values, existing, self._static_configs)
            self._valid.add(case)


def _alter(
    state: ControllerState, resource: AlterConfigsResource, context: Context, validation: _Validation
) -> list[VersionedRecord]:
    """Return the records that change one resource. Of several faults it raises the one that Java names."""
    resource_type, name = resource.resource_type, resource.resource_name
    is_logger = resource_type == _BROKER_LOGGER
    if not is_logger and resource_type not in _STORED:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"there is no resource type {resource_type}")
    _check_permission(resource_type, name, context)
    if is_logger:
        check_loggers(state.node_id, resource)
        return []
    _check_operations(resource.configs)
    existing = _known(resource_type, state.metadata.configs.get(resource_type, name))
    is_broker = resource_type == _BROKER
    is_known_topic = resource_type == _TOPIC and state.metadata.topics.is_name(name)
    changes: dict[str, str | None] = {}
    for config in resource.configs:
        key, current = config.name, existing.get(config.name)
        value = _new_value(resource_type, config, current)
        if is_broker or value != current:
            changes[key] = value
    for key, value in changes.items():
        _check_size(key, value)
        if is_broker:
            check_broker_key(state, context, name, key, existing.get(key), value)
    if not is_known_topic:
        validate_resource(resource_type, name)
    if is_broker:
        _check_existence(state, _BROKER, name)  # before the values, which Java's controller doesn't check
    merged: Mapping[str, str | None] = {**existing, **changes} if existing else changes
    values = {key: value for key, value in merged.items() if value is not None}
    validation.check(resource_type, values, existing)
    if not is_known_topic:
        _check_existence(state, resource_type, name)
    return [(_record(resource_type, name, key, value), 0) for key, value in changes.items()]


def _known(resource_type: int, values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the values whose keys Kafka still has.

    The log of an upgraded cluster may hold others. Java's controller drops them when it replays, but those of
    brokers, where any key may be set.
    """
    if resource_type == _BROKER or not values:
        return values
    keys = keys_of(resource_type)
    return {key: value for key, value in values.items() if key in keys}


def _check_permission(resource_type: int, name: str, context: Context) -> None:
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


def _check_operations(configs: Sequence[AlterableConfig]) -> None:
    if len(configs) > 1 and len({config.name for config in configs}) < len(configs):
        twice = sorted(name for name, count in Counter(c.name for c in configs).items() if count > 1)
        raise ApiError(ErrorCode.INVALID_REQUEST, f"changed more than once: {', '.join(twice)}")
    for config in configs:
        if config.config_operation not in _OPERATIONS:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no operation {config.config_operation}")
        if config.value is None and config.config_operation != _DELETE:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"{config.name} has no value; use DELETE to remove the key"
            )


def _new_value(resource_type: int, config: AlterableConfig, current: str | None) -> str | None:
    if config.config_operation == _SET:
        return config.value
    if config.config_operation == _DELETE:
        return None
    key = keys_of(resource_type).get(config.name)
    if key is None or key.type != "LIST" or resource_type == _CLIENT_METRICS:
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"{config.name} is not a list, so APPEND and SUBTRACT are not allowed"
        )
    items = _items(key.default if current is None else current)
    given = split(config.value or "")
    if config.config_operation == Operation.APPEND:
        return ",".join(_appended(items, given))
    return ",".join(_subtracted(items, given))


def _items(value: str | None) -> list[str]:
    return [item for item in (value or "").split(",") if item]


def _appended(items: list[str], given: list[str]) -> list[str]:
    """Return the items with those given ones that aren't there yet; an empty one too, as in Java."""
    present = set(items)
    return items + [item for item in dict.fromkeys(given) if item not in present]


def _subtracted(items: list[str], given: list[str]) -> list[str]:
    """Return the items without the given ones: as in Java, each mention takes the first that is left."""
    to_take = Counter(given)
    left: list[str] = []
    for item in items:
        if mentions := to_take.get(item):
            to_take[item] = mentions - 1
        else:
            left.append(item)
    return left


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
