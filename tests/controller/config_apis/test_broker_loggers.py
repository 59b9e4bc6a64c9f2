"""Changes of log levels, by the rules of RuntimeLoggerManager."""

from __future__ import annotations

import pytest

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.controller.config_apis import incremental_alter_configs
from kraft_wire.controller.config_apis.operation import Operation
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from tests.controller.config_apis.test_incremental_alter_configs_api import Change, alter, change, resource
from tests.controller.controller_harness import NODE_ID, Harness

LOGGER, OWN = ResourceType.BROKER_LOGGER, str(NODE_ID)
SET, DELETE, APPEND, SUBTRACT = Operation


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    harness.state.log_levels = lambda: {"root": "INFO", "a": "INFO", "a.b": "WARN"}
    return harness


@pytest.mark.parametrize(
    ("name", "changes", "code"),
    [
        (OWN, [("root", SET, "INFO")], ErrorCode.NONE),
        (OWN, [("a.b", DELETE, None)], ErrorCode.NONE),
        (OWN, [("root", DELETE, None)], ErrorCode.INVALID_REQUEST),
        (OWN, [("a.b", SET, "info")], ErrorCode.INVALID_CONFIG),
        (OWN, [("a.b", SET, None)], ErrorCode.INVALID_CONFIG),
        (OWN, [("a.c", SET, "INFO")], ErrorCode.INVALID_CONFIG),
        (OWN, [("a.c", DELETE, None)], ErrorCode.INVALID_CONFIG),
        (OWN, [("root", SUBTRACT, "INFO")], ErrorCode.INVALID_REQUEST),
        (OWN, [("root", APPEND, "INFO")], ErrorCode.INVALID_REQUEST),
        (OWN, [("root", 9, "INFO")], ErrorCode.INVALID_REQUEST),
        (OWN, [("a.c", SET, "INFO"), ("root", APPEND, "INFO")], ErrorCode.INVALID_CONFIG),
        (OWN, [("root", SUBTRACT, "INFO"), ("a.c", SET, "INFO")], ErrorCode.INVALID_REQUEST),
        (OWN, [], ErrorCode.NONE),
        ("+" + OWN, [("root", SET, "INFO")], ErrorCode.NONE),
        ("0", [("root", SET, "INFO")], ErrorCode.INVALID_REQUEST),
        ("x", [], ErrorCode.INVALID_REQUEST),
        ("", [], ErrorCode.INVALID_REQUEST),
    ],
)
def test_the_first_fault_of_a_change(
    harness: Harness, name: str, changes: list[Change], code: ErrorCode
) -> None:
    assert change(harness, LOGGER, name, *changes) == code


def levels(harness: Harness, *changes: Change, validate_only: bool = False) -> dict[str, str | None]:
    """Return the levels that a request gives to loggers."""
    request = IncrementalAlterConfigsRequest(
        resources=[resource(LOGGER, OWN, *changes)], validate_only=validate_only
    )
    result = harness.decide(incremental_alter_configs, request, 1)
    assert (result.records, result.shown_end) == ([], 0)
    return dict(result.log_levels)


def test_the_changes_of_a_resource_are_made_together_or_not_at_all(harness: Harness) -> None:
    made = [("a", SET, "DEBUG"), ("a", SET, "TRACE"), ("a.b", DELETE, None)]
    assert levels(harness, *made) == {"a": "TRACE", "a.b": None}
    assert levels(harness, *made, ("none", SET, "DEBUG")) == {}
    assert levels(harness, *made, validate_only=True) == {}


@pytest.mark.parametrize(
    ("types", "anywhere"),
    [([LOGGER], True), ([LOGGER, LOGGER], True), ([LOGGER, ResourceType.TOPIC], False), ([], False)],
)
def test_only_a_request_about_loggers_alone_is_answered_by_any_controller(
    types: list[ResourceType], anywhere: bool
) -> None:
    request = IncrementalAlterConfigsRequest(resources=[resource(each, OWN) for each in types])
    assert CONTROLLER_APIS[request.API_KEY].is_about_this_node(request) == anywhere


def test_each_mention_of_a_logger_is_answered_after_all_else(harness: Harness) -> None:
    loggers = resource(LOGGER, OWN, ("none", SET, "INFO"))
    threads = resource(ResourceType.BROKER, OWN, ("num.io.threads", SET, "9"))
    answers = alter(harness, loggers, threads, loggers)
    assert [code for code, _ in answers] == [0, ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_CONFIG]
