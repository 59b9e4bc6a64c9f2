"""A request for which nothing is begun within its timeoutMs fails with REQUEST_TIMED_OUT."""

from __future__ import annotations

import pytest

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.controller.forwarding import envelope
from kraft_wire.controller.node import decisions
from kraft_wire.controller.node.works import Deadlines
from kraft_wire.controller.topics import create_topics
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kraft_wire.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest
from kraft_wire.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest
from kraft_wire.protocol.messages.elect_leaders_response import ElectLeadersResponse
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.messages.envelope_response import EnvelopeResponse
from kraft_wire.security.principal import Principal
from kraft_wire.wire.headers import decode_response, encode_request
from tests.controller.lone_controller import LoneController, active_controller
from tests.controller.node.node_requests import register_broker

TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT


@pytest.fixture
def controller() -> LoneController:
    """One broker, which may lead partitions."""
    made = active_controller()
    made.ask("register", register_broker(1), 4)
    made.flush()
    epoch = made.answer("register", BrokerRegistrationResponse).broker_epoch
    made.ask("beat", BrokerHeartbeatRequest(1, epoch, 2**40), 1)
    made.flush()
    return made


def ask_for_topics(controller: LoneController, token: str, count: int, timeout_ms: int) -> None:
    topics = [CreatableTopic(f"{token}-{number}", 1, 1) for number in range(count)]
    controller.ask(token, CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms), 7)


def codes(controller: LoneController, token: str) -> set[int]:
    return {topic.error_code for topic in controller.answer(token, CreateTopicsResponse).topics}


def has_topic(controller: LoneController, name: str) -> bool:
    return controller.state.metadata.topics.by_name(name) is not None


def test_the_apis_with_a_deadline_are_kafkas() -> None:
    assert {api.name for api in CONTROLLER_APIS if api.must_begin_in_time} == {
        "CreateTopics",
        "DeleteTopics",
        "CreatePartitions",
        "ElectLeaders",
        "AlterPartitionReassignments",
    }


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_nothing_is_done(controller: LoneController, timeout_ms: int) -> None:
    requests: dict[str, tuple[Message, int]] = {
        "create": (CreateTopicsRequest(topics=[CreatableTopic("t", 1, 1)], timeout_ms=timeout_ms), 7),
        "delete": (DeleteTopicsRequest(topic_names=("t",), timeout_ms=timeout_ms), 5),
        "grow": (
            CreatePartitionsRequest(topics=[CreatePartitionsTopic("t", 3, None)], timeout_ms=timeout_ms),
            3,
        ),
        "elect": (ElectLeadersRequest(topic_partitions=None, timeout_ms=timeout_ms), 2),
        "move": (
            AlterPartitionReassignmentsRequest(
                timeout_ms=timeout_ms, topics=[ReassignableTopic("t", [ReassignablePartition(0, (1,))])]
            ),
            0,
        ),
    }
    end_offset = controller.node.core.log_end_offset
    for token, (request, version) in requests.items():
        controller.ask(token, request, version)
    assert controller.node.core.log_end_offset == end_offset
    assert codes(controller, "create") == {TIMED_OUT}
    (deleted,) = controller.answer("delete", DeleteTopicsResponse).responses
    (grown,) = controller.answer("grow", CreatePartitionsResponse).results
    assert (deleted.error_code, grown.error_code) == (TIMED_OUT, TIMED_OUT)
    assert f"timeoutMs, {timeout_ms}: nothing was done" in (grown.error_message or "")
    assert controller.answer("elect", ElectLeadersResponse).error_code == TIMED_OUT
    assert controller.answer("move", AlterPartitionReassignmentsResponse).error_code == TIMED_OUT


def test_a_request_that_waits_for_too_long_is_not_begun(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "MOST_UNCOMMITTED_RECORDS", 5)
    ask_for_topics(controller, "large", 10, 60_000)
    ask_for_topics(controller, "patient", 1, 60_000)
    ask_for_topics(controller, "hasty", 1, 500)
    controller.tick(499)
    assert "hasty" not in controller.replies
    controller.tick(1)
    assert codes(controller, "hasty") == {TIMED_OUT}
    controller.flush()
    controller.tick()
    controller.flush()
    assert codes(controller, "large") == codes(controller, "patient") == {0}
    assert has_topic(controller, "patient-0") and not has_topic(controller, "hasty-0")


def test_the_node_wakes_at_the_deadline(controller: LoneController, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "MOST_UNCOMMITTED_RECORDS", 5)
    ask_for_topics(controller, "large", 10, 60_000)
    ask_for_topics(controller, "hasty", 1, 1)
    assert controller.node.next_deadline_ms() == controller.now_ms + 1


def test_what_is_written_in_part_is_completed_after_the_deadline(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(create_topics, "TOPICS_PER_PIECE", 2)
    ask_for_topics(controller, "begun", 6, 500)
    while not has_topic(controller, "begun-0"):
        controller.tick()
    controller.tick(500)
    while controller.state.in_work:
        controller.tick()
        controller.flush()
    assert codes(controller, "begun") == {0} and has_topic(controller, "begun-5")


def test_a_work_that_has_written_nothing_ends_at_its_deadline(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(create_topics, "TOPICS_PER_PIECE", 2)
    ask_for_topics(controller, "on trial", 6, 500)
    controller.tick(500)
    assert codes(controller, "on trial") == {TIMED_OUT}
    assert not controller.state.in_work and not has_topic(controller, "on trial-0")


def test_the_deadline_of_a_forwarded_request_is_in_the_envelope(controller: LoneController) -> None:
    create = CreateTopicsRequest(topics=[CreatableTopic("t", 1, 1)], timeout_ms=0)
    request = EnvelopeRequest(
        request_data=encode_request(create.API_KEY, 7, 1, "client", create),
        request_principal=envelope.encode_principal(Principal()),
        client_host_address=bytes(4),
    )
    controller.ask("envelope", request, 0)
    data = controller.answer("envelope", EnvelopeResponse).response_data
    assert data is not None
    _, response = decode_response(create.API_KEY, 7, data)
    assert isinstance(response, CreateTopicsResponse)
    (topic,) = response.topics
    assert topic.error_code == TIMED_OUT


def test_deadlines_come_in_their_order_and_can_be_forgotten() -> None:
    deadlines: Deadlines[str] = Deadlines()
    assert deadlines.next_ms() is None and deadlines.first_passed(2**60) is None
    for item, deadline_ms in {"c": 30, "a": 10, "b": 20, "b again": 20}.items():
        deadlines.add(item, deadline_ms)
    assert deadlines.first_passed(9) is None and deadlines.first_passed(10) == "a"
    deadlines.forget("never added")
    for item in ("a", "b"):
        deadlines.forget(item)
    assert deadlines.first_passed(30) == "b again" and deadlines.next_ms() == 20
    deadlines.clear()
    assert deadlines.next_ms() is None


def test_one_overdue_request_is_refused_in_a_step(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many may be overdue at once, and each answer names all topics of its request."""
    monkeypatch.setattr(decisions, "MOST_UNCOMMITTED_RECORDS", 5)
    ask_for_topics(controller, "large", 10, 60_000)
    for number in range(4):
        ask_for_topics(controller, f"hasty-{number}", 3, 500)
    controller.tick(500)
    refused = [1 for number in range(4) if f"hasty-{number}" in controller.replies]
    assert len(refused) == 1
    assert controller.node.next_deadline_ms() == controller.now_ms, "the next one is refused at once"
    for _ in range(3):
        controller.tick()
    assert all(codes(controller, f"hasty-{number}") == {TIMED_OUT} for number in range(4))


def test_many_overdue_requests_are_no_pause_of_the_process(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "MOST_UNCOMMITTED_RECORDS", 5)
    ask_for_topics(controller, "large", 10, 60_000)
    for number in range(9):
        ask_for_topics(controller, f"hasty-{number}", 1, 1)
    controller.tick(1)
    silent_ms = controller.state.sessions.silences_ms(controller.now_ms)[1]
    for _ in range(8):
        controller.tick(50)
    assert controller.state.sessions.silences_ms(controller.now_ms)[1] == silent_ms + 400


def test_an_overdue_request_is_not_begun_when_its_turn_comes(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "MOST_UNCOMMITTED_RECORDS", 5)
    ask_for_topics(controller, "large", 10, 60_000)
    for number in range(3):
        ask_for_topics(controller, f"hasty-{number}", 1, 500)
    controller.now_ms += 500
    controller.flush()
    for _ in range(3):
        controller.tick()
        controller.flush()
    assert all(codes(controller, f"hasty-{number}") == {TIMED_OUT} for number in range(3))


def test_a_request_for_nothing_needs_no_time(controller: LoneController) -> None:
    """Java answers it before it would wait."""
    controller.ask("create", CreateTopicsRequest(timeout_ms=0), 7)
    controller.ask("delete", DeleteTopicsRequest(), 5)
    controller.ask("elect", ElectLeadersRequest(topic_partitions=[], timeout_ms=0), 2)
    controller.ask("move", AlterPartitionReassignmentsRequest(timeout_ms=0), 0)
    assert controller.answer("create", CreateTopicsResponse).topics == []
    assert controller.answer("delete", DeleteTopicsResponse).responses == []
    assert controller.answer("elect", ElectLeadersResponse).error_code == 0
    assert controller.answer("move", AlterPartitionReassignmentsResponse).error_code == 0
