"""ControllerRegistration, and DescribeCluster of registered controllers (KIP-919)."""

from __future__ import annotations

import pytest

from kraft_wire.controller.cluster import controller_registration, describe_cluster
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages import controller_registration_request as requests
from kraft_wire.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from kraft_wire.protocol.messages.controller_registration_response import ControllerRegistrationResponse
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from tests.controller.controller_harness import CLUSTER_ID, NODE_ID, Harness, failure, uuid

CONTROLLERS = 2


def registration(controller_id: int, *names: str) -> ControllerRegistrationRequest:
    return ControllerRegistrationRequest(
        controller_id=controller_id,
        incarnation_id=uuid(controller_id),
        listeners=[requests.Listener(name, f"c{controller_id}", 9093 + i, 0) for i, name in enumerate(names)],
        features=[requests.Feature("metadata.version", 7, 33)],
    )


def register(harness: Harness, controller_id: int, *names: str) -> None:
    request = registration(controller_id, *names)
    response = harness.run(controller_registration, request, 0, ControllerRegistrationResponse)
    assert response.error_code == 0


def describe(harness: Harness, version: int = 2, **fields: object) -> DescribeClusterResponse:
    request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
    for name, value in fields.items():
        setattr(request, name, value)
    return harness.run(describe_cluster, request, version, DescribeClusterResponse)


def test_a_controller_registers_its_listeners_and_features() -> None:
    harness = Harness()
    register(harness, NODE_ID, "CONTROLLER")
    controller = harness.metadata.controllers[NODE_ID]
    assert controller.incarnation_id == uuid(NODE_ID)
    assert [(x.name, x.host, x.port) for x in controller.listeners] == [("CONTROLLER", "c3000", 9093)]
    assert controller.features == {"metadata.version": (7, 33)}


def test_registering_again_replaces_what_was_known() -> None:
    harness = Harness()
    register(harness, NODE_ID, "CONTROLLER", "SECURE")
    register(harness, NODE_ID, "OTHER")
    assert [x.name for x in harness.metadata.controllers[NODE_ID].listeners] == ["OTHER"]


def test_controllers_do_not_register_before_3_7() -> None:
    harness = Harness(14)
    with pytest.raises(ApiError) as refused:
        harness.decide(controller_registration, registration(NODE_ID, "CONTROLLER"), 0)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_an_impossible_listener_is_refused() -> None:
    harness = Harness()
    with pytest.raises(ApiError) as refused:
        harness.decide(controller_registration, registration(NODE_ID, ""), 0)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    response = failure(ControllerRegistrationResponse, registration(1), 0, refused.value.code, "why")
    assert (response.error_code, response.error_message) == (42, "why")


def test_the_controllers_of_the_listener_are_described() -> None:
    harness = Harness()
    register(harness, NODE_ID + 1, "CONTROLLER")
    register(harness, NODE_ID, "OTHER", "CONTROLLER")
    register(harness, NODE_ID + 2, "OTHER")
    response = describe(harness)
    assert response.cluster_id == CLUSTER_ID
    assert response.endpoint_type == CONTROLLERS
    assert response.controller_id == NODE_ID
    assert response.brokers == [
        DescribeClusterBroker(broker_id=NODE_ID, host="c3000", port=9094),
        DescribeClusterBroker(broker_id=NODE_ID + 1, host="c3001", port=9093),
    ]
    assert response.cluster_authorized_operations == -(2**31)


def test_a_leader_that_is_not_registered_is_not_named() -> None:
    harness = Harness()
    register(harness, NODE_ID + 1, "CONTROLLER")
    assert describe(harness).controller_id == -1


def test_the_operations_of_a_cluster_without_authorizer() -> None:
    response = describe(Harness(), include_cluster_authorized_operations=True)
    assert response.cluster_authorized_operations == 0b1111110100000


@pytest.mark.parametrize(
    ("endpoint_type", "version", "code"),
    [
        (1, 2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (1, 1, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (7, 1, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (1, 0, ErrorCode.INVALID_REQUEST),
    ],
)
def test_only_controllers_are_described(endpoint_type: int, version: int, code: ErrorCode) -> None:
    request = DescribeClusterRequest(endpoint_type=endpoint_type)
    with pytest.raises(ApiError) as refused:
        Harness().decide(describe_cluster, request, version)
    assert refused.value.code is code
    assert failure(DescribeClusterResponse, request, version, code, "why").error_message == "why"


def test_admin_clients_can_not_use_controllers_before_3_7() -> None:
    with pytest.raises(ApiError) as refused:
        Harness(14).decide(describe_cluster, DescribeClusterRequest(endpoint_type=CONTROLLERS), 1)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
