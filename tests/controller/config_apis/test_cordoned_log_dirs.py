"""cordoned.log.dirs (KIP-1066), set by a client of a broker and by one of the controller itself."""

from __future__ import annotations

import pytest

from kraft_wire.controller.config_apis.operation import Operation
from kraft_wire.controller.forwarding import envelope
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.messages.envelope_response import EnvelopeResponse
from kraft_wire.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from kraft_wire.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kraft_wire.security.principal import Principal
from kraft_wire.wire.headers import decode_response, encode_request
from tests.controller.config_apis.test_incremental_alter_configs_api import change, resource
from tests.controller.controller_harness import Harness
from tests.controller.lone_controller import NODE_ID, active_controller

BROKER, KEY = ResourceType.BROKER, "cordoned.log.dirs"
SET, DELETE, APPEND, SUBTRACT = Operation


def harness_with(value: str | None, level: int = 30) -> Harness:
    harness = Harness(level)
    harness.add_brokers(0)
    if value is not None:
        harness.replay([(ConfigRecord(BROKER.value, "0", KEY, value), 0)])
    return harness


@pytest.mark.parametrize(
    ("present", "operation", "given", "is_accepted"),
    [
        (None, SET, "/a", False),
        (None, SET, "", True),
        (None, SET, " \t", True),
        (None, SET, ",", False),
        (None, APPEND, "/a", False),
        (None, DELETE, None, True),
        ("", SET, "/a", False),
        ("", SET, ",", True),
        ("/a,/b", SET, "/b", True),
        ("/a,/b", SET, " /b , /a ", True),
        (" /a , /b", SET, "/a", True),
        ("/a,/b", SET, "/a,/a", True),
        ("/a,/b", SET, "/a,/c", False),
        ("/a,/b", SET, "/a,", False),
        ("/a,/b", SET, "*", False),
        ("*", SET, "/a", False),
        ("/a,/b", APPEND, "/b", True),
        ("/a,/b", APPEND, "/c", False),
        ("/a,/b", SUBTRACT, "/a", True),
        ("/a", DELETE, None, True),
    ],
)
def test_a_client_of_the_controller_may_only_narrow_the_value(
    present: str | None, operation: int, given: str | None, is_accepted: bool
) -> None:
    """Only the broker itself knows which log directories it has (ConfigurationControlManager)."""
    code = ErrorCode.NONE if is_accepted else ErrorCode.INVALID_CONFIG
    assert change(harness_with(present), BROKER, "0", (KEY, operation, given)) == code
    forwarded = harness_with(present)
    forwarded.is_forwarded = True
    assert change(forwarded, BROKER, "0", (KEY, operation, given)) == ErrorCode.NONE


def test_the_default_of_all_brokers_is_narrowed_too() -> None:
    assert change(harness_with(None), BROKER, "", (KEY, SET, "/a")) == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(("level", "code"), [(29, ErrorCode.INVALID_CONFIG), (30, 0)])
def test_cordoned_directories_need_4_3(level: int, code: int) -> None:
    forwarded = harness_with(None, level)
    forwarded.is_forwarded = True
    assert change(forwarded, BROKER, "0", (KEY, SET, "/data")) == code


def test_a_request_in_an_envelope_is_a_forwarded_one() -> None:
    controller = active_controller()
    request = IncrementalAlterConfigsRequest([resource(BROKER, str(NODE_ID), (KEY, SET, "/data"))])
    controller.ask("direct", request, 1)
    controller.ask(
        "forwarded",
        EnvelopeRequest(
            request_data=encode_request(request.API_KEY, 1, 42, "a client", request),
            request_principal=envelope.encode_principal(Principal("User", "alice")),
            client_host_address=bytes(4),
        ),
        0,
    )
    controller.flush()
    direct = controller.answer("direct", IncrementalAlterConfigsResponse)
    assert direct.responses[0].error_code == ErrorCode.INVALID_CONFIG
    data = controller.answer("forwarded", EnvelopeResponse).response_data
    assert data is not None
    inner = decode_response(request.API_KEY, 1, data)[1]
    assert isinstance(inner, IncrementalAlterConfigsResponse)
    assert inner.responses[0].error_code == ErrorCode.NONE
