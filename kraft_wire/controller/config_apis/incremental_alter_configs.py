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
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

from kraft_wire.configs.java_text import split
from kraft_wire.configs.schema import ALL_BROKERS, MIN_INSYNC_REPLICAS, keys_of
from kraft_wire.configs.validation import validate_configs, validate_resource
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.features import metadata_version
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
CORDONED_LOG_DIRS: Final = "cordoned.log.dirs"


class Operation(IntEnum):
    """An operation on a key (AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def handle(
    state: ControllerState, request: IncrementalAlterConfigsRequest, version: int, context: Context
) -> Result:
    """Change the resources that can be changed. The response has the errors of the others."""
    records: list[VersionedRecord] = []
    responses: list[AlterConfigsResourceResponse] = []
    seen = Counter((r.resource_type, r.resource_name) for r in request.resources)
    answered: set[tuple[int, str]] = set()
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        if key in answered:
            continue
        answered.add(key)
        try:
            if seen[key] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the request names this resource more than once")
            records += _alter(state, resource, context)
            responses.append(_response(resource, ErrorCode.NONE, None))
        except ApiError as error:
            responses.append(_response(resource, error.code, error.message))
    if request.validate_only:
        records = []
    return Result(
        IncrementalAlterConfigsResponse(responses=responses), [*records, *_cleared_elrs(state, records)]
    )


def _response(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=int(code),
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _alter(state: ControllerState, resource: AlterConfigsResource, context: Context) -> list[VersionedRecord]:
    """Return the records that change one resource."""
    resource_type, name = resource.resource_type, resource.resource_name
    if resource_type not in set(ResourceType) or resource_type == ResourceType.UNKNOWN:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"there is no resource type {resource_type}")
    _check_permission(resource_type, name, context)
    _check_operations(resource.configs)
    if resource_type == ResourceType.BROKER_LOGGER:
        raise _no_logger(state, resource)
    existing = _known(resource_type, state.metadata.configs.get(resource_type, name))
    changes = {c.name: _new_value(resource_type, c, existing.get(c.name)) for c in resource.configs}
    if resource_type != ResourceType.BROKER:
        changes = {key: value for key, value in changes.items() if value != existing.get(key)}
    for key, value in changes.items():
        _check_change(state, resource, key, value)
    merged: Mapping[str, str | None] = {**existing, **changes}
    validate_resource(resource_type, name)
    validate_configs(
        resource_type,
        {key: value for key, value in merged.items() if value is not None},
        existing,
        state.settings.static_configs,
    )
    _check_existence(state, resource_type, name)
    return [(_record(resource_type, name, key, value), 0) for key, value in changes.items()]


def _known(resource_type: int, values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the values whose keys Kafka still has.

    The log of an upgraded cluster may hold others. Java's controller drops them when it replays, but those of
    brokers, where any key may be set.
    """
    if resource_type == ResourceType.BROKER:
        return values
    keys = keys_of(resource_type)
    return {key: value for key, value in values.items() if key in keys}


def _check_permission(resource_type: int, name: str, context: Context) -> None:
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
    twice = sorted(name for name, count in Counter(c.name for c in configs).items() if count > 1)
    if twice:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"changed more than once: {', '.join(twice)}")
    for config in configs:
        if config.config_operation not in set(Operation):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no operation {config.config_operation}")
        if config.value is None and config.config_operation != Operation.DELETE:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"{config.name} has no value; use DELETE to remove the key"
            )


def _new_value(resource_type: int, config: AlterableConfig, current: str | None) -> str | None:
    match config.config_operation:
        case Operation.SET:
            return config.value
        case Operation.DELETE:
            return None
    key = keys_of(resource_type).get(config.name)
    if key is None or key.type != "LIST" or resource_type == ResourceType.CLIENT_METRICS:
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"{config.name} is not a list, so APPEND and SUBTRACT are not allowed"
        )
    items = _items(key.default if current is None else current)
    given = split(config.value or "")
    if config.config_operation == Operation.APPEND:
        items += [item for item in dict.fromkeys(given) if item not in items]  # an empty one too, as in Java
    else:
        items = [item for item in items if item not in given]
    return ",".join(items)


def _items(value: str | None) -> list[str]:
    return [item for item in (value or "").split(",") if item]


def _check_change(
    state: ControllerState, resource: AlterConfigsResource, key: str, value: str | None
) -> None:
    if value is not None and (size := len(value.encode())) > MAX_VALUE_BYTES:
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"{key} would have {size} bytes; the limit is {MAX_VALUE_BYTES}"
        )
    if resource.resource_type != ResourceType.BROKER:
        return
    if key == MIN_INSYNC_REPLICAS and state.metadata.features.elr_enabled:
        _check_min_isr(resource.resource_name, value)
    elif key == CORDONED_LOG_DIRS:
        _check_cordoned(state)


def _check_min_isr(broker: str, value: str | None) -> None:
    if broker != ALL_BROKERS:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"{MIN_INSYNC_REPLICAS} can't be set on one broker while eligible leader replicas are enabled",
        )
    if value is None:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"{MIN_INSYNC_REPLICAS} can't be removed while eligible leader replicas are enabled",
        )


def _check_cordoned(state: ControllerState) -> None:
    level = state.metadata.features.metadata_version
    if not metadata_version.cordoned_dirs_supported(level):
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"{CORDONED_LOG_DIRS} needs metadata.version 4.3-IV0 or higher"
        )


def _check_existence(state: ControllerState, resource_type: int, name: str) -> None:
    if resource_type == ResourceType.TOPIC and state.metadata.topics.by_name(name) is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    if resource_type == ResourceType.BROKER and name != ALL_BROKERS:
        metadata, node = state.metadata, int(name)
        if node not in metadata.brokers and node not in metadata.controllers and node not in state.voter_ids:
            raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"no node with id {node} is registered")


def _no_logger(state: ControllerState, resource: AlterConfigsResource) -> ApiError:
    """Return the error for a change of log levels, which this process does not support."""
    if resource.resource_name != str(state.node_id):
        return ApiError(
            ErrorCode.INVALID_REQUEST,
            f"the request is for node {resource.resource_name!r}, but this is node {state.node_id}",
        )
    names = ", ".join(config.name for config in resource.configs)
    return ApiError(ErrorCode.INVALID_CONFIG, f"this controller has no logger {names}")


def _record(resource_type: int, name: str, key: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)


def _cleared_elrs(state: ControllerState, records: Sequence[VersionedRecord]) -> list[VersionedRecord]:
    """Return the records that clear the ELRs of each topic whose min.insync.replicas changes, or of all."""
    if not state.metadata.features.elr_enabled:
        return []
    cleared: list[VersionedRecord] = []
    for record, _ in records:
        if isinstance(record, ConfigRecord) and record.name == MIN_INSYNC_REPLICAS:
            is_topic = record.resource_type == ResourceType.TOPIC
            cleared.append((ClearElrRecord(topic_name=record.resource_name if is_topic else ""), 0))
    return cleared
