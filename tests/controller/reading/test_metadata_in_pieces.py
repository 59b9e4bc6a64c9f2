"""A Metadata request about many topics takes several steps. The answer is that of one step."""

from __future__ import annotations

import pytest

from kraft_wire.controller.reading import consumer_metadata
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraft_wire.protocol.messages.metadata_response import MetadataResponse
from kraft_wire.protocol.uuid import Uuid
from tests.controller.lone_controller import NODE_ID, LoneController
from tests.controller.node.node_requests import controller_with_broker, create_topic, lose_leadership

LOG = "__cluster_metadata"
NAMES = ("a", LOG, "not a name", "a", LOG)
TOPICS = [
    *(MetadataRequestTopic(name=name) for name in NAMES),
    MetadataRequestTopic(name=None, topic_id=Uuid.ONE),
    MetadataRequestTopic(name=None, topic_id=Uuid(bytes(15) + b"\x09")),
]


@pytest.fixture(autouse=True)
def one_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_metadata, "TOPICS_PER_PIECE", 1)


def ask(controller: LoneController, token: str) -> None:
    controller.ask(token, MetadataRequest(topics=TOPICS), 13)


def ticks_until(controller: LoneController, token: str) -> int:
    """Let the controller do what is due at once. Returns the number of steps until the answer."""
    count = 0
    while token not in controller.replies:
        assert controller.node.next_deadline_ms() == controller.now_ms
        controller.tick()
        count += 1
    return count


def test_the_answer_in_pieces_is_that_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = controller_with_broker()
    ask(controller, "pieces")
    assert ticks_until(controller, "pieces") == len(TOPICS) - 1
    monkeypatch.setattr(consumer_metadata, "TOPICS_PER_PIECE", 100)
    ask(controller, "one piece")
    answers = [controller.answer(token, MetadataResponse) for token in ("pieces", "one piece")]
    assert answers[0].encode(13) == answers[1].encode(13)
    unknown, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION
    assert [(topic.name, topic.error_code) for topic in answers[0].topics] == [
        ("a", unknown),
        (LOG, 0),
        ("not a name", invalid),
        ("a", unknown),
        (LOG, 0),
        (LOG, 0),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_the_controllers_and_the_log_are_those_of_one_step() -> None:
    controller = LoneController()
    controller.state.leader_id = NODE_ID
    ask(controller, "read")
    controller.state.leader_id, controller.state.voter_ids = NODE_ID + 1, (NODE_ID + 1,)
    ticks_until(controller, "read")
    assert not controller.node.is_active
    answer = controller.answer("read", MetadataResponse)
    described = [topic.partitions[0] for topic in answer.topics if topic.partitions]
    assert [each.replica_nodes for each in described] == [(NODE_ID,)] * 3
    assert {each.leader_id for each in described} == {answer.controller_id}


def test_the_answer_does_not_wait_for_the_commit_of_what_it_does_not_show() -> None:
    controller = controller_with_broker()
    controller.ask("write", create_topic("a"), 7)
    ask(controller, "read")
    ticks_until(controller, "read")
    assert "write" not in controller.replies


def test_a_lost_leadership_lets_it_begin_again() -> None:
    controller = controller_with_broker()
    ask(controller, "read")
    lose_leadership(controller)
    for _ in TOPICS:
        controller.tick()
    assert controller.node.is_active and "read" not in controller.replies, "it shows a new registration"
    controller.flush()
    answer = controller.answer("read", MetadataResponse)
    assert len(answer.topics) == len(TOPICS) and answer.controller_id == NODE_ID
