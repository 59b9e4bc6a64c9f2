"""Observers are answered at a bounded pace, in the order in which they came."""

from __future__ import annotations

from kraft_wire.protocol.messages.fetch_request import FetchPartition
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.effects import ReplyRecords
from kraft_wire.raft.events import Now, RequestAbandoned, Tick
from kraft_wire.raft.leader.parked_fetches import FetchCall
from kraft_wire.raft.leader.waiting_observers import (
    ANSWERS_PER_MS,
    ANSWERS_PER_TURN,
    AT_ONCE,
    WaitingObservers,
)
from kraft_wire.raft.membership.voters import ReplicaKey
from tests.raft.lone_node import LoneNode, fetch, of_type

NOW_MS = 1_000
MANY = 4 * AT_ONCE


def call(token: object) -> FetchCall:
    return FetchCall(token, 18, "CONTROLLER", ReplicaKey(7, Uuid.ZERO), FetchPartition(), 0)


def waiting(count: int, deadline_ms: int = NOW_MS + 500) -> WaitingObservers:
    observers = WaitingObservers()
    for number in range(count):
        observers.park(call(number), deadline_ms)
    return observers


def taken(calls: list[FetchCall]) -> list[object]:
    return [call.token for call in calls]


def test_without_news_they_wait_until_their_deadline() -> None:
    observers = waiting(3)
    assert observers.take_first(NOW_MS) == []
    assert observers.next_deadline_ms() == NOW_MS + 500
    assert taken(observers.take_expired(NOW_MS + 500)) == [0, 1, 2]
    assert observers.next_deadline_ms() is None


def test_few_are_answered_at_once() -> None:
    observers = waiting(AT_ONCE)
    observers.have_news()
    assert taken(observers.take_first(NOW_MS)) == list(range(AT_ONCE))
    assert observers.next_turn_ms() is None


def test_many_are_answered_in_turns_in_the_order_in_which_they_came() -> None:
    observers = waiting(MANY)
    observers.have_news()
    tokens = taken(observers.take_first(NOW_MS))
    assert len(tokens) == AT_ONCE
    assert observers.take_turn(NOW_MS) == []
    while (turn_ms := observers.next_turn_ms()) is not None:
        turn = taken(observers.take_turn(turn_ms))
        assert 0 < len(turn) <= ANSWERS_PER_TURN
        tokens += turn
        last_ms = turn_ms
    assert tokens == list(range(MANY))
    assert last_ms - NOW_MS <= (MANY - AT_ONCE) // ANSWERS_PER_MS + 3


def test_a_late_turn_does_not_make_up_for_others() -> None:
    observers = waiting(MANY)
    observers.have_news()
    observers.take_first(NOW_MS)
    late_ms = NOW_MS + 10_000
    assert len(observers.take_turn(late_ms)) == ANSWERS_PER_TURN
    assert observers.next_turn_ms() == late_ms + 1


def test_nobody_overtakes_those_that_wait_for_their_turn() -> None:
    observers = waiting(MANY)
    observers.have_news()
    observers.take_first(NOW_MS)
    assert not observers.may_go(NOW_MS + 3)
    observers.line_up(call("late"))
    tokens = []
    while (turn_ms := observers.next_turn_ms()) is not None:
        tokens += taken(observers.take_turn(turn_ms))
    assert tokens[-1] == "late"


def test_one_with_news_goes_at_once_if_few_went_before() -> None:
    observers = WaitingObservers()
    assert all(observers.may_go(NOW_MS) for _ in range(AT_ONCE))
    assert not observers.may_go(NOW_MS)
    assert observers.may_go(NOW_MS + 1)


def test_one_that_has_gone_away_has_no_turn() -> None:
    observers = waiting(2)
    observers.abandon(0)
    observers.have_news()
    observers.abandon(1)
    observers.abandon("never came")
    assert observers.take_first(NOW_MS) == []
    assert observers.take_all() == []


def test_all_are_taken_with_those_that_wait_for_their_turn_first() -> None:
    observers = waiting(1)
    observers.line_up(call("due"))
    assert taken(observers.take_all()) == ["due", 0]
    assert observers.next_turn_ms() is None
    assert observers.next_deadline_ms() is None


# In the core.


def leader_with_observers(count: int) -> LoneNode:
    node = LoneNode()
    node.propose(b"one", b"two")
    node.flush()
    for replica in range(10, 10 + count):
        node.ask(fetch(3, 1, epoch=1, replica=replica), 18, token=replica)
    return node


def test_a_commit_is_with_a_thousand_observers_after_some_ticks() -> None:
    node = leader_with_observers(1_000)
    node.propose(b"three")
    node.flush()
    assert len(node.answers) == AT_ONCE
    began_ms = node.now.monotonic_ms
    while len(node.answers) < 1_000:
        deadline_ms = node.core.next_deadline_ms()
        assert deadline_ms is not None
        node.pass_ms(deadline_ms - node.now.monotonic_ms)
    assert node.now.monotonic_ms - began_ms <= 80


def test_those_that_waited_get_what_was_committed_meanwhile() -> None:
    node = leader_with_observers(AT_ONCE + 1)
    for value in (b"three", b"four"):
        node.propose(value)
        node.flush()
    (reply,) = of_type(node.pass_ms(3), ReplyRecords)
    assert (len(reply.tokens), reply.end_offset) == (1, 5)


def test_an_observer_that_lags_is_answered_at_once() -> None:
    node = leader_with_observers(0)
    (reply,) = node.ask(fetch(1, 1, epoch=1), 18)
    assert isinstance(reply, ReplyRecords)


def test_a_turn_comes_with_a_tick_only() -> None:
    """Otherwise each heartbeat that comes late would bring a turn, and what is late would be later still."""
    node = leader_with_observers(AT_ONCE + 1)
    node.propose(b"three")
    node.flush()
    node.now = Now(node.now.monotonic_ms + 100, node.now.wall_ms)
    node.step(RequestAbandoned("somebody else's"))
    assert len(node.answers) == AT_ONCE
    timer_ms, deadline_ms = node.core.next_timer_ms(), node.core.next_deadline_ms()
    assert timer_ms is not None and deadline_ms is not None
    assert deadline_ms < node.now.monotonic_ms < timer_ms
    node.step(Tick())
    assert len(node.answers) == AT_ONCE + 1
