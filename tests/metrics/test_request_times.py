"""The time from a request to its response."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from kraft_wire.controller.node.effects import NodeEffect
from kraft_wire.controller.node.events import ApiRequest, Caller
from kraft_wire.metrics.counts import ON_EFFECTS
from kraft_wire.metrics.request_times import RequestTimes
from kraft_wire.protocol.message import Message
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.events import RequestAbandoned
from tests.controller.node.node_requests import create_topic, register_broker
from tests.metrics.counted import active

ANSWERS = [kind for kind in get_args(NodeEffect) if {"token", "tokens"} & set(kind.__struct_fields__)]


@pytest.mark.parametrize("kind", ANSWERS, ids=lambda kind: kind.__name__)
def test_every_kind_of_answer_is_noted(kind: type[Any]) -> None:
    assert len(ANSWERS) > 3
    assert kind in ON_EFFECTS


def request(token: str) -> ApiRequest:
    return ApiRequest(token, 7, 0, Message(), Caller(""))


def test_a_request_that_is_answered_in_its_step() -> None:
    times = RequestTimes()
    assert times.began(request("a"), [Reply("a", Message())], 5)
    assert times.by_api[7].counts[0] == 1
    assert times.waiting == 0


def test_a_request_that_waits() -> None:
    times = RequestTimes()
    assert not times.began(request("a"), [], 5)
    assert not times.began(request("b"), [Reply("a", Message())], 20), "the answer is another's"
    times.answered(["a", "stranger"], 45)
    assert times.by_api[7].sum == 40
    assert times.waiting == 1
    times.abandoned("b")
    times.answered(["b"], 100)
    assert (times.waiting, sum(times.by_api[7].counts)) == (0, 1)


def test_the_requests_of_a_controller() -> None:
    controller = active()
    times = controller.counted.request_times
    controller.ask("broker", register_broker(), 4)
    controller.now_ms += 30
    assert times.waiting == 1
    controller.flush()
    assert times.waiting == 0
    assert times.by_api[register_broker().API_KEY].sum == 30
    controller.ask("gone", create_topic("t"), 7)
    controller.step(RequestAbandoned("gone"))
    assert times.waiting == 0
