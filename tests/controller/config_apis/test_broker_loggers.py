"""Changes of log levels: RuntimeLoggerManager, for a process whose log levels don't change."""

from __future__ import annotations

import pytest

from kraft_wire.controller.config_apis.operation import Operation
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ErrorCode
from tests.controller.config_apis.test_incremental_alter_configs_api import Change, alter, change, resource
from tests.controller.controller_harness import NODE_ID, Harness

LOGGER, OWN = ResourceType.BROKER_LOGGER, str(NODE_ID)
SET, DELETE, APPEND, SUBTRACT = Operation


@pytest.mark.parametrize(
    ("name", "changes", "code"),
    [
        (OWN, [("root", SET, "INFO")], ErrorCode.INVALID_CONFIG),
        (OWN, [("root", DELETE, None)], ErrorCode.INVALID_CONFIG),
        (OWN, [("root", SUBTRACT, "INFO")], ErrorCode.INVALID_REQUEST),
        (OWN, [("root", APPEND, "INFO")], ErrorCode.INVALID_REQUEST),
        (OWN, [("root", 9, "INFO")], ErrorCode.INVALID_REQUEST),
        (OWN, [("root", SET, "INFO"), ("root", APPEND, "INFO")], ErrorCode.INVALID_CONFIG),
        (OWN, [("root", SUBTRACT, "INFO"), ("root", SET, "INFO")], ErrorCode.INVALID_REQUEST),
        (OWN, [], ErrorCode.NONE),
        ("+" + OWN, [("root", SET, "INFO")], ErrorCode.INVALID_CONFIG),
        ("0", [("root", SET, "INFO")], ErrorCode.INVALID_REQUEST),
        ("x", [], ErrorCode.INVALID_REQUEST),
        ("", [], ErrorCode.INVALID_REQUEST),
    ],
)
def test_the_first_fault_of_a_change(name: str, changes: list[Change], code: ErrorCode) -> None:
    assert change(Harness(), LOGGER, name, *changes) == code


def test_each_mention_of_a_logger_is_answered_after_all_else() -> None:
    harness = Harness()
    loggers = resource(LOGGER, OWN, ("root", SET, "INFO"))
    threads = resource(ResourceType.BROKER, OWN, ("num.io.threads", SET, "9"))
    answers = alter(harness, loggers, threads, loggers)
    assert [code for code, _ in answers] == [0, ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_CONFIG]
