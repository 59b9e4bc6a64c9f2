"""Decide on changes of this process's log levels (KIP-412).

A request changes them at once, and nothing is written to the log: a restart ends them. Rules:
RuntimeLoggerManager, LogLevelConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from kraft_wire.configs.java_text import parse_int32
from kraft_wire.controller.config_apis.operation import Operation
from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
)

LEVELS: Final = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
ROOT: Final = "root"
"""Kafka's name for the logger above all others."""


class LevelChanges:
    """Collects the changes of one request. ``levels`` are the new ones by logger, None for a logger that gets
    its level from the one above it again."""

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self.levels: dict[str, str | None] = {}

    @cached_property
    def _loggers(self) -> Mapping[str, str]:
        return self._state.log_levels()

    def take(self, resource: AlterConfigsResource) -> None:
        """Take the changes of one resource, or none of them.

        Raises ApiError for the first fault: INVALID_REQUEST for another node, an operation that loggers don't
        have, or unsetting the root's level; INVALID_CONFIG for an unknown logger or level.
        """
        name = resource.resource_name
        node_id = self._state.node_id
        if parse_int32(name) != node_id:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"the request is for node {name!r}, but this is node {node_id}"
            )
        for config in resource.configs:
            self._check(config)
        for config in resource.configs:
            is_unset = config.config_operation == Operation.DELETE
            self.levels[config.name] = None if is_unset else config.value

    def _check(self, config: AlterableConfig) -> None:
        name, operation = config.name, config.config_operation
        if operation not in (Operation.SET, Operation.DELETE):
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"loggers only know SET and DELETE, not operation {operation}"
            )
        if name not in self._loggers:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"this controller has no logger {name}")
        if operation == Operation.SET and config.value not in LEVELS:
            raise ApiError(
                ErrorCode.INVALID_CONFIG, f"{name}: there is no level {config.value}; use {', '.join(LEVELS)}"
            )
        if operation == Operation.DELETE and name == ROOT:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{ROOT} must have a level; set another one")
