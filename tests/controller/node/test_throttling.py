"""A client that has used too much of the controller's time is told to wait, directly or by its broker."""

from __future__ import annotations

from itertools import count

import pytest

from kraft_wire.controller.forwarding import envelope
from kraft_wire.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_cluster_response import DescribeClusterResponse
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.messages.envelope_response import EnvelopeResponse
from kraft_wire.security.principal import Principal
from kraft_wire.wire.headers import decode_response, encode_request
from tests.controller.lone_controller import LoneController, active_controller

_numbers = count()
CONTROLLERS = DescribeClusterRequest(endpoint_type=2)


@pytest.fixture
def controller() -> LoneController:
    """Everybody may use one percent of the time; all are ANONYMOUS."""
    made = active_controller()
    set_quota(made, 1.0)
    return made


def set_quota(controller: LoneController, percentage: float | None) -> None:
    operation = OpData("request_percentage", percentage or 0.0, remove=percentage is None)
    entry = EntryData([EntityData("user", None)], [operation])
    controller.ask(("quota", next(_numbers)), AlterClientQuotasRequest([entry]), 1)
    controller.flush()


def throttle_ms(controller: LoneController) -> int:
    token = "look", next(_numbers)
    controller.ask(token, CONTROLLERS, 2)
    controller.flush()
    return controller.answer(token, DescribeClusterResponse).throttle_time_ms


def test_the_time_of_a_request_counts_for_the_next_one(controller: LoneController) -> None:
    assert throttle_ms(controller) == 0
    controller.ask("long", CONTROLLERS, 2)
    controller.node.note_time(101)
    assert controller.answer("long", DescribeClusterResponse).throttle_time_ms == 0
    assert throttle_ms(controller) == 100, "1 ms too much, at one percent of the time"
    controller.ask("longer", CONTROLLERS, 2)
    controller.node.note_time(50)
    assert throttle_ms(controller) == 1_000
    controller.now_ms += 11_000
    assert throttle_ms(controller) == 0


def test_without_a_quota_nobody_has_to_wait(controller: LoneController) -> None:
    set_quota(controller, None)
    controller.ask("long", CONTROLLERS, 2)
    controller.node.note_time(60_000)
    assert throttle_ms(controller) == 0


def test_steps_that_are_for_no_client_count_for_none(controller: LoneController) -> None:
    controller.tick(5)
    controller.node.note_time(60_000)
    controller.flush()
    controller.node.note_time(60_000)
    assert throttle_ms(controller) == 0


def test_the_first_request_of_a_connection_does_not_have_to_wait(controller: LoneController) -> None:
    """Brokers and other controllers send it, too."""
    controller.ask("long", CONTROLLERS, 2)
    controller.node.note_time(60_000)
    controller.ask("versions", ApiVersionsRequest("voter", "1"), 4)
    assert controller.answer("versions", ApiVersionsResponse).throttle_time_ms == 0


def test_brokers_do_not_have_to_wait(controller: LoneController) -> None:
    controller.ask("long", CONTROLLERS, 2)
    controller.node.note_time(60_000)
    heartbeat = BrokerHeartbeatRequest(broker_id=7)
    controller.ask("beat", heartbeat, 1)
    controller.node.note_time(60_000)
    assert controller.answer("beat", BrokerHeartbeatResponse).throttle_time_ms == 0
    assert throttle_ms(controller) == 1_000


def test_the_pieces_of_a_work_count_for_its_client(controller: LoneController) -> None:
    topics = [CreatableTopic(f"t{number}", 1, 1) for number in range(500)]
    controller.ask("create", CreateTopicsRequest(topics=topics), 7)
    controller.node.note_time(50)
    controller.tick()
    controller.node.note_time(60)
    assert throttle_ms(controller) == 1_000


def test_a_forwarded_clients_wait_is_in_the_answer_that_its_broker_gets(controller: LoneController) -> None:
    controller.ask("long", CONTROLLERS, 2)
    controller.node.note_time(60_000)
    create = CreateTopicsRequest(topics=[CreatableTopic("t", 1, 1)])
    request = EnvelopeRequest(
        request_data=encode_request(create.API_KEY, 7, 1, "client", create),
        request_principal=envelope.encode_principal(Principal()),
        client_host_address=bytes(4),
    )
    controller.ask("envelope", request, 0)
    controller.flush()
    data = controller.answer("envelope", EnvelopeResponse).response_data
    assert data is not None
    _, response = decode_response(create.API_KEY, 7, data)
    assert isinstance(response, CreateTopicsResponse)
    assert response.throttle_time_ms == 1_000
