"""The survey of controllers."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Barrier

import pytest

from kraft_wire.client import survey as survey_module
from kraft_wire.client.at_once import at_once
from kraft_wire.client.connection import Connector
from kraft_wire.client.survey import NodeAnswer, survey, with_named_leaders
from kraft_wire.wire.address import Address
from tests.support.live_quorum import settings

TOGETHER_WITHIN_S = 5.0


def test_controllers_are_asked_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one answers when all are asked. The answers are in the order of the addresses."""
    all_asked = Barrier(3)

    def ask(connector: Connector, address: Address, timeout_s: float) -> NodeAnswer:
        all_asked.wait(TOGETHER_WITHIN_S)
        return NodeAnswer(address)

    monkeypatch.setattr(survey_module, "_ask", ask)
    asked = settings("c1:9093", "c2:9093", "c3:9093")
    assert [answer.address for answer in survey(asked)] == list(asked.bootstrap)


@pytest.mark.parametrize("asked", [[0], [3, 0, 1]])
def test_a_call_that_fails_is_no_answer(asked: list[int]) -> None:
    with pytest.raises(ZeroDivisionError):
        at_once(lambda number: 1 / number, asked)
    assert at_once(lambda number: number, list[int]()) == []


def test_leaders_that_anybody_names_are_asked_too_until_no_new_one_is_named() -> None:
    follower, old_leader, leader = (Address("c", port) for port in (1, 2, 3))
    known = {
        follower: NodeAnswer(follower, leader_id=2, epoch=8, leader_address=old_leader),
        old_leader: NodeAnswer(old_leader, leader_id=3, epoch=9, leader_address=leader),
        leader: NodeAnswer(leader, leader_id=3, epoch=9, leader_address=leader),
    }
    asked: list[list[Address]] = []

    def ask(addresses: Sequence[Address]) -> list[NodeAnswer]:
        asked.append(list(addresses))
        return [known[address] for address in addresses]

    assert with_named_leaders(ask, [follower]) == list(known.values())
    assert asked == [[follower], [old_leader], [leader]]
