"""Serve AlterConfigs (33): give resources exactly these configurations. Keys that a request doesn't name are
removed. KIP-133; old clients use it, newer ones IncrementalAlterConfigs.

Kafka requires ALTER_CONFIGS on the topic or group, and on the cluster for brokers and client metrics. Rules:
ControllerApis.handleLegacyAlterConfigs, ConfigurationControlManager; and ConfigAdminManager, with which
brokers reject duplicate keys and missing values.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.controller.config_apis.config_changes import (
    STORED,
    Answer,
    ConfigChanges,
    change_configs,
    check_keys,
    check_permission,
)
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.alter_configs_request import AlterConfigsRequest, AlterConfigsResource
from kraft_wire.protocol.messages.alter_configs_response import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

_BROKER_LOGGER: Final = ResourceType.BROKER_LOGGER


def handle(state: ControllerState, request: AlterConfigsRequest, version: int, context: Context) -> Result:
    """Change the resources that can be changed. The response has the errors of the others.

    A resource that is named twice is refused once.
    """

    def change(
        state: ControllerState, resource: AlterConfigsResource, changes: ConfigChanges
    ) -> list[VersionedRecord]:
        return _change(state, resource, context, changes)

    def respond(answers: list[Answer]) -> AlterConfigsResponse:
        return AlterConfigsResponse(responses=[AlterConfigsResourceResponse(*answer) for answer in answers])

    work = change_configs(
        state, context, request.resources, change, respond, validate_only=request.validate_only
    )
    return work.begin(state, context)


def _change(
    state: ControllerState, resource: AlterConfigsResource, context: Context, changes: ConfigChanges
) -> list[VersionedRecord]:
    """Return the records that replace the configuration of one resource."""
    resource_type, name = resource.resource_type, resource.resource_name
    if resource_type == _BROKER_LOGGER:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "AlterConfigs can't change loggers; use IncrementalAlterConfigs"
        )
    if resource_type not in STORED:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"there is no resource type {resource_type}")
    check_permission(resource_type, name, context)
    check_keys(resource.configs)
    for config in resource.configs:
        if config.value is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"{config.name} has no value; leave it out to remove it"
            )
    present = changes.present(state, resource_type, name)
    wanted: dict[str, str | None] = {config.name: config.value for config in resource.configs}
    for key in present:
        wanted.setdefault(key, None)
    return changes.records(state, resource, present, wanted)
