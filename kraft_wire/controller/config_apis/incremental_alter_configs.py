"""Serve IncrementalAlterConfigs (44): set, delete, append to or subtract from configuration keys. KIP-339.

Kafka requires ALTER_CONFIGS on the topic or group, ALTER_CONFIGS on the cluster for brokers and client
metrics, and CLUSTER_ACTION on the cluster for loggers. Rules: ControllerApis.handleIncrementalAlterConfigs,
ConfigurationControlManager; and ConfigAdminManager, with which brokers reject duplicate keys and missing
values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from kraft_wire.configs.java_text import split
from kraft_wire.configs.schema import keys_of
from kraft_wire.controller.config_apis.broker_loggers import LevelChanges
from kraft_wire.controller.config_apis.config_changes import (
    STORED,
    Answer,
    ConfigChanges,
    change_configs,
    check_keys,
    check_permission,
)
from kraft_wire.controller.config_apis.operation import Operation
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

# On Python 3.11 a member of an enumeration takes as long to look up as all else that is done with it.
_BROKER_LOGGER: Final = ResourceType.BROKER_LOGGER
_WITH_LISTS: Final = frozenset({ResourceType.TOPIC, ResourceType.BROKER})
"""The types whose lists may be appended to: Java's KafkaConfigSchema knows the keys of no others."""
_SET: Final = Operation.SET
_DELETE: Final = Operation.DELETE
_OPERATIONS: Final = frozenset(map(int, Operation))

NOTHING_SHOWN: Final = 0
"""The answer shows nothing of the log: it doesn't wait for a majority, as levels are changed in need, too."""


def handle(
    state: ControllerState, request: IncrementalAlterConfigsRequest, version: int, context: Context
) -> Result:
    """Change the resources that can be changed. The response has the errors of the others.

    A resource that is named twice is refused once. Loggers come last, and each mention of one is answered.
    """

    def change(
        state: ControllerState, resource: AlterConfigsResource, changes: ConfigChanges
    ) -> list[VersionedRecord]:
        return _change(state, resource, context, changes)

    changes = LevelChanges(state)
    of_loggers = [
        _answer_of_loggers(changes, resource, context)
        for resource in request.resources
        if resource.resource_type == _BROKER_LOGGER
    ]

    def respond(answers: list[Answer]) -> IncrementalAlterConfigsResponse:
        return IncrementalAlterConfigsResponse(
            responses=[AlterConfigsResourceResponse(*answer) for answer in (*answers, *of_loggers)]
        )

    stored = [resource for resource in request.resources if resource.resource_type != _BROKER_LOGGER]
    work = change_configs(state, context, stored, change, respond, validate_only=request.validate_only)
    result = work.begin(state, context)
    if not request.validate_only:
        result.log_levels = changes.levels
    if not stored:
        result.shown_end = NOTHING_SHOWN
    return result


def _answer_of_loggers(changes: LevelChanges, resource: AlterConfigsResource, context: Context) -> Answer:
    identity = resource.resource_type, resource.resource_name
    try:
        check_permission(*identity, context)
        changes.take(resource)
    except ApiError as error:
        return Answer(int(error.code), error.message, *identity)
    return Answer(int(ErrorCode.NONE), None, *identity)


def _change(
    state: ControllerState, resource: AlterConfigsResource, context: Context, changes: ConfigChanges
) -> list[VersionedRecord]:
    """Return the records that change one resource. Of several faults it raises the one that Java names."""
    resource_type, name = resource.resource_type, resource.resource_name
    if resource_type not in STORED:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"there is no resource type {resource_type}")
    check_permission(resource_type, name, context)
    _check_operations(resource.configs)
    present = changes.present(state, resource_type, name)
    wanted = {
        config.name: _new_value(resource_type, config, present.get(config.name))
        for config in resource.configs
    }
    return changes.records(state, resource, present, wanted)


def _check_operations(configs: Sequence[AlterableConfig]) -> None:
    check_keys(configs)
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
    if key is None or key.type != "LIST" or resource_type not in _WITH_LISTS:
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
