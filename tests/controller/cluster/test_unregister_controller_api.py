"""UnregisterController removes a registration (Kafka 4.4)."""

from __future__ import annotations

import pytest

from kraft_wire.controller.cluster import unregister_controller
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.unregister_controller_request import UnregisterControllerRequest
from kraft_wire.protocol.messages.unregister_controller_response import UnregisterControllerResponse
from tests.controller.cluster.test_controller_registration_api import register
from tests.controller.controller_harness import NODE_ID, Harness

GONE = NODE_ID + 1


def refusal(harness: Harness, controller_id: int) -> ApiError:
    with pytest.raises(ApiError) as refused:
        harness.decide(unregister_controller, UnregisterControllerRequest(controller_id), 0)
    return refused.value


def test_its_registration_is_gone() -> None:
    harness = Harness()
    register(harness, NODE_ID, "CONTROLLER")
    register(harness, GONE, "CONTROLLER")
    request = UnregisterControllerRequest(GONE)
    response = harness.run(unregister_controller, request, 0, UnregisterControllerResponse)
    assert (response.error_code, response.error_message) == (0, None)
    assert list(harness.metadata.controllers) == [NODE_ID]


def test_a_controller_that_is_not_registered() -> None:
    refused = refusal(Harness(), GONE)
    assert refused.code is ErrorCode.CONTROLLER_ID_NOT_REGISTERED
    assert refused.message == f"controller {GONE} is not registered"


def test_the_active_controller_stays() -> None:
    harness = Harness()
    register(harness, NODE_ID, "CONTROLLER")
    assert refusal(harness, NODE_ID).code is ErrorCode.INVALID_REQUEST


def test_earlier_releases_do_not_know_the_record() -> None:
    harness = Harness(32)
    register(harness, GONE, "CONTROLLER")
    refused = refusal(harness, GONE)
    assert refused.code is ErrorCode.UNSUPPORTED_VERSION
    assert "metadata.version 33" in refused.message
