"""Timestamps are looked up for all who wait, by one search at a time, and for nobody who has gone."""

from __future__ import annotations

import pytest

from kraft_wire.controller.node import timestamp_searches
from kraft_wire.controller.node.effects import FindTimestamps
from kraft_wire.controller.node.events import TimestampsFound
from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.protocol.messages.list_offsets_response import ListOffsetsResponse
from kraft_wire.raft.events import RequestAbandoned
from tests.controller import lone_ports
from tests.controller.lone_controller import LoneController, active_controller
from tests.controller.node.node_requests import lose_leadership


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> LoneController:
    """A controller whose searches end when the test says so."""
    monkeypatch.setattr(lone_ports.LoneLog, "find_timestamps", lambda log, timestamps, end_offset: None)
    made = active_controller()
    made.flush()
    return made


def ask(controller: LoneController, token: str, *timestamps: int) -> None:
    partitions = [ListOffsetsPartition(partition_index=0, timestamp=each) for each in timestamps]
    topic = ListOffsetsTopic(name=CLUSTER_METADATA, partitions=partitions)
    controller.ask(token, ListOffsetsRequest(replica_id=-1, topics=[topic]), 5)


def searches(controller: LoneController) -> list[tuple[int, ...]]:
    return [effect.timestamps for effect in controller.effects if isinstance(effect, FindTimestamps)]


def found(controller: LoneController, *timestamps: int) -> None:
    """The search ends, and finds nothing."""
    controller.step(TimestampsFound(dict.fromkeys(timestamps)))


def code(controller: LoneController, token: str) -> int:
    return controller.answer(token, ListOffsetsResponse).topics[0].partitions[0].error_code


def test_there_is_one_search_at_a_time_and_the_next_is_for_all_that_wait(controller: LoneController) -> None:
    ask(controller, "a", 5)
    ask(controller, "b", 7, 6)
    ask(controller, "c", 6)
    assert searches(controller) == [(5,)]
    found(controller, 5)
    assert code(controller, "a") == ErrorCode.NONE and "b" not in controller.replies
    assert searches(controller) == [(5,), (6, 7)]
    found(controller, 6, 7)
    assert [code(controller, token) for token in "bc"] == [ErrorCode.NONE] * 2
    assert len(searches(controller)) == 2


def test_nothing_is_looked_up_for_a_client_that_has_gone(controller: LoneController) -> None:
    for token in ("a", "gone", "here"):
        ask(controller, token, ord(token[0]))
    controller.step(RequestAbandoned("gone"))
    controller.step(RequestAbandoned("a"))
    found(controller, ord("a"))
    assert searches(controller) == [(ord("a"),), (ord("h"),)]
    found(controller, ord("h"))
    assert set(controller.replies) >= {"here"} and not controller.replies.keys() & {"a", "gone"}


def test_a_search_is_for_few_partitions_because_all_are_answered_in_one_step(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timestamp_searches, "MOST_PARTITIONS", 2)
    for number, token in enumerate("abcd"):
        ask(controller, token, number)
    found(controller, 0)
    found(controller, 1, 2)
    assert searches(controller) == [(0,), (1, 2), (3,)]


def test_who_resigned_during_the_search_tells_no_offset(controller: LoneController) -> None:
    ask(controller, "a", 5)
    lose_leadership(controller)
    found(controller, 5)
    assert code(controller, "a") == ErrorCode.OFFSET_NOT_AVAILABLE
