"""A read about many resources takes several steps, on any node, and shows only what is committed."""

from __future__ import annotations

import pytest

from kraft_wire.controller.config_apis import describe_configs
from kraft_wire.controller.config_apis.describe_configs import _Description
from kraft_wire.controller.node import decisions
from kraft_wire.controller.node.effects import WorkFailed
from kraft_wire.controller.topics import create_topics
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.protocol.messages.describe_configs_response import DescribeConfigsResponse
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.controller.lone_controller import LoneController, active_controller
from tests.controller.node.node_requests import controller_with_broker, lose_leadership

GROUPS = ("a", "b", "c", "d")
KEY = "consumer.session.timeout.ms"
DEFAULT = "45000"


@pytest.fixture(autouse=True)
def one_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe_configs, "RESOURCES_PER_PIECE", 1)


def ask(controller: LoneController, token: str = "read") -> None:
    resources = [DescribeConfigsResource(ResourceType.GROUP, name, (KEY,)) for name in GROUPS]
    controller.ask(token, DescribeConfigsRequest(resources=resources), 4)


def change(controller: LoneController, name: str, value: str) -> None:
    config = AlterableConfig(name=KEY, config_operation=0, value=value)
    resource = AlterConfigsResource(int(ResourceType.GROUP), name, [config])
    controller.ask(("change", name), IncrementalAlterConfigsRequest(resources=[resource]), 1)


def values(controller: LoneController, token: str = "read") -> list[str | None]:
    results = controller.answer(token, DescribeConfigsResponse).results
    assert [result.resource_name for result in results] == list(GROUPS)
    return [config.value for result in results for config in result.configs]


def ticks_until(controller: LoneController, token: str) -> int:
    """Let the controller do what is due at once. Returns the number of steps until the answer."""
    count = 0
    while token not in controller.replies:
        assert controller.node.next_deadline_ms() == controller.now_ms
        controller.tick()
        count += 1
        assert count < 100
    return count


def test_a_node_that_is_not_active_reads_in_pieces() -> None:
    controller = LoneController()
    assert not controller.node.is_active
    ask(controller)
    assert ticks_until(controller, "read") == len(GROUPS) - 1
    assert not controller.node.is_active and values(controller) == [DEFAULT] * len(GROUPS)
    assert controller.node.next_deadline_ms() != controller.now_ms


def test_a_read_shows_each_resource_as_it_is_in_its_step_and_waits_for_the_commit() -> None:
    controller = active_controller()
    ask(controller)
    change(controller, "a", "46000")
    change(controller, "d", "47000")
    for _ in GROUPS:
        controller.tick()
    assert "read" not in controller.replies, "it shows an uncommitted value"
    controller.flush()
    assert values(controller) == [DEFAULT, DEFAULT, DEFAULT, "47000"]


def test_a_lost_leadership_lets_a_read_begin_again_with_what_is_committed() -> None:
    controller = active_controller()
    change(controller, "a", "46000")
    ask(controller)
    lose_leadership(controller)
    assert not controller.node.is_active and "read" not in controller.replies
    assert ticks_until(controller, "read") == len(GROUPS)
    assert values(controller) == [DEFAULT] * len(GROUPS)


def test_reads_that_begin_again_do_so_one_after_the_other() -> None:
    """A leadership may be lost while hundreds of them wait."""
    controller = active_controller()
    change(controller, "a", "46000")
    for number in range(5):
        ask(controller, f"read-{number}")
    lose_leadership(controller)
    assert not [token for token in controller.replies if str(token).startswith("read")]
    assert ticks_until(controller, "read-4") == 5 * len(GROUPS)


def test_reads_go_on_while_writes_wait_for_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = controller_with_broker()
    monkeypatch.setattr(create_topics, "TOPICS_PER_PIECE", 1)
    monkeypatch.setattr(decisions, "MOST_UNCOMMITTED_RECORDS", 0)
    topics = [CreatableTopic(name, 1, 1) for name in ("t", "u")]
    controller.ask("write", CreateTopicsRequest(topics=topics), 7)
    ask(controller)
    assert ticks_until(controller, "read") == len(GROUPS) - 1
    assert controller.state.metadata.topics.by_name("t") is None, "the topics wait"


def test_reads_and_writes_take_turns_and_reads_come_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller = controller_with_broker()
    monkeypatch.setattr(create_topics, "TOPICS_PER_PIECE", 1)
    ask(controller, "first")
    ask(controller, "second")
    topics = [CreatableTopic(f"t{number}", 1, 1) for number in range(6)]
    controller.ask("write", CreateTopicsRequest(topics=topics, validate_only=True), 7)
    ends = {token: ticks_until(controller, token) for token in ("first", "write", "second")}
    assert sum(ends.values()) == 2 * (len(GROUPS) - 1) + len(topics) - 1
    assert ends["first"] in (2 * len(GROUPS) - 3, 2 * len(GROUPS) - 2), "every second step"


def test_a_read_that_fails_ends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = active_controller()
    ask(controller)

    def fail(*given: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(_Description, "decide", fail)
    controller.tick()
    assert [type(each) for each in controller.effects if isinstance(each, WorkFailed)] == [WorkFailed]
    (code,) = {result.error_code for result in controller.answer("read", DescribeConfigsResponse).results}
    assert code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert controller.node.next_deadline_ms() != controller.now_ms
