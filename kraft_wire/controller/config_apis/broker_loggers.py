"""Check the changes of log levels. The log levels of this process can't be changed while it runs.

Rules: RuntimeLoggerManager. For Kafka this process has no logger at all.
"""

from __future__ import annotations

from kraft_wire.configs.java_text import parse_int32
from kraft_wire.controller.config_apis.operation import Operation
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
)


def check_loggers(node_id: int, resource: AlterConfigsResource) -> None:
    """Check the changes in their order.

    Raises ApiError: INVALID_REQUEST for another node or an operation that loggers don't have, INVALID_CONFIG
    for a logger that is unknown, which is each of them.
    """
    name = resource.resource_name
    if parse_int32(name) != node_id:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"the request is for node {name!r}, but this is node {node_id}"
        )
    for config in resource.configs:
        _check_change(config)


def _check_change(config: AlterableConfig) -> None:
    if config.config_operation not in (Operation.SET, Operation.DELETE):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"loggers only know SET and DELETE, not operation {config.config_operation}",
        )
    raise ApiError(ErrorCode.INVALID_CONFIG, f"this controller has no logger {config.name}")
