"""Answers to changes wait until all live brokers know the changes, for a limited time (KIP-1166's marks)."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.controller.node.events import ApiRequest, Caller
from kraft_wire.controller.node.known_waits import ANSWERS_PER_STEP, KnownWaits
from kraft_wire.controller.node.speculative_writes import Released
from kraft_wire.controller.settings import Settings
from kraft_wire.log.files import CLUSTER_METADATA_TOPIC_ID
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from tests.controller.controller_harness import CLUSTER_ID, directory
from tests.controller.lone_controller import NODE_ID, LoneController
from tests.controller.node.node_requests import controller_with_broker, create_topic, lose_leadership

WAIT_MS = 200
BROKER = 1
WITH_HIGH_WATERMARK = 18


@pytest.fixture
def controller() -> LoneController:
    """An active controller with an unfenced broker that has fetched everything."""
    made = controller_with_broker(Settings(node_id=NODE_ID, kraft_wire_answer_when_known_ms=WAIT_MS))
    fetch(made, "first", made.node.core.log_end_offset, made.node.core.log_end_offset)
    return made


def fetch(
    controller: LoneController,
    token: str,
    offset: int,
    high_watermark: int,
    version: int = WITH_HIGH_WATERMARK,
) -> None:
    core = controller.node.core
    partition = FetchPartition(
        partition=0,
        current_leader_epoch=core.epoch,
        fetch_offset=offset,
        last_fetched_epoch=core.epoch,
        replica_directory_id=directory(BROKER),
    )
    if version >= WITH_HIGH_WATERMARK:
        partition.high_watermark = high_watermark
    request = FetchRequest(
        cluster_id=CLUSTER_ID,
        replica_state=ReplicaState(replica_id=BROKER, replica_epoch=-1),
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic_id=CLUSTER_METADATA_TOPIC_ID, partitions=[partition])],
    )
    controller.ask(token, request, version)


def create(controller: LoneController, name: str) -> int:
    """Create a topic and commit it; return the end of the log."""
    controller.ask(name, create_topic(name), 7)
    controller.flush()
    return controller.node.core.log_end_offset


def is_created(controller: LoneController, name: str) -> bool:
    if name not in controller.replies:
        return False
    (topic,) = controller.answer(name, CreateTopicsResponse).topics
    assert topic.error_code == ErrorCode.NONE
    return True


def test_the_answer_comes_when_the_broker_has_fetched_the_commit(controller: LoneController) -> None:
    end = create(controller, "t")
    assert not is_created(controller, "t")
    fetch(controller, "has it", end, end - 1)
    assert not is_created(controller, "t")
    fetch(controller, "knows it", end, end)
    assert is_created(controller, "t")


def test_an_older_broker_knows_what_it_was_told(controller: LoneController) -> None:
    core = controller.node.core
    fetch(controller, "waits for records", core.log_end_offset, 0, version=17)
    controller.ask("t", create_topic("t"), 7)
    assert "waits for records" in controller.replies
    fetch(controller, "waits for the commit", core.log_end_offset, 0, version=17)
    controller.flush()
    assert "waits for the commit" in controller.replies
    assert not is_created(controller, "t")
    fetch(controller, "knows it", core.log_end_offset, 0, version=17)
    assert is_created(controller, "t")


def test_the_answer_waits_no_longer_than_allowed(controller: LoneController) -> None:
    create(controller, "t")
    controller.live(WAIT_MS - 50)
    assert not is_created(controller, "t")
    controller.live(100)
    assert is_created(controller, "t")


def test_a_fenced_broker_is_not_waited_for(controller: LoneController) -> None:
    end = create(controller, "t")
    fetch(controller, "knows it", end, end)
    controller.live(20_000)
    assert controller.state.metadata.brokers[BROKER].fenced
    controller.ask("delete", DeleteTopicsRequest(topics=[DeleteTopicState("t")], timeout_ms=1000), 6)
    controller.flush()
    (topic,) = controller.answer("delete", DeleteTopicsResponse).responses
    assert topic.error_code == ErrorCode.NONE


def test_an_answer_that_changes_nothing_does_not_wait(controller: LoneController) -> None:
    end = create(controller, "t")
    fetch(controller, "knows it", end, end)
    controller.ask("again", create_topic("t"), 7)
    (topic,) = controller.answer("again", CreateTopicsResponse).topics
    assert topic.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_committed_changes_are_answered_when_the_leadership_goes(controller: LoneController) -> None:
    create(controller, "t")
    lose_leadership(controller)
    assert is_created(controller, "t")


def test_many_answers_are_sent_some_in_each_step(controller: LoneController) -> None:
    names = [f"t-{number}" for number in range(2 * ANSWERS_PER_STEP + 1)]
    for name in names:
        controller.ask(name, create_topic(name), 7)
    controller.flush()
    end = controller.node.core.log_end_offset
    fetch(controller, "knows it", end, end)
    for steps in (1, 2):
        assert [name for name in names if is_created(controller, name)] == names[: steps * ANSWERS_PER_STEP]
        assert controller.node.next_deadline_ms() == controller.now_ms
        controller.tick()
    assert all(is_created(controller, name) for name in names)


def test_many_answers_are_sent_some_in_each_step_when_the_leadership_goes(controller: LoneController) -> None:
    names = [f"t-{number}" for number in range(2 * ANSWERS_PER_STEP + 1)]
    for name in names:
        controller.ask(name, create_topic(name), 7)
    controller.flush()
    lose_leadership(controller)
    for steps in (1, 2):
        assert [name for name in names if is_created(controller, name)] == names[: steps * ANSWERS_PER_STEP]
        assert controller.node.next_deadline_ms() == controller.now_ms
        controller.tick()
    assert all(is_created(controller, name) for name in names)


class CountedEnds(dict[int, int]):
    """Ends that count how often one is looked up."""

    looked_up = 0

    def get(self, key: int, default: Any = None) -> Any:
        self.looked_up += 1
        return super().get(key, default)


def test_however_many_answers_are_sent_brokers_are_looked_at_few_times(controller: LoneController) -> None:
    brokers = dict.fromkeys(range(50), controller.state.metadata.brokers[BROKER])
    waits = KnownWaits(WAIT_MS)
    request = ApiRequest("token", 19, 7, create_topic("t"), Caller(""))
    for end in range(1, 41):
        waits.hold(Released(request, CreateTopicsResponse(), end, changes=True), 0)
    ends = CountedEnds(dict.fromkeys(brokers, 30))
    assert [each.end_offset for each in waits.take_known(brokers, ends, 1)] == [*range(1, 31)]
    assert ends.looked_up <= 2 * len(brokers) + 1


def test_nothing_waits_by_default() -> None:
    controller = controller_with_broker()
    create(controller, "t")
    assert is_created(controller, "t")
