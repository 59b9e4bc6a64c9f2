"""Observers are answered at a bounded pace, in the order in which they came."""

from __future__ import annotations

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.fetch_request import FetchPartition
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.effects import ReplyRecords
from kraft_wire.raft.events import Now, RequestAbandoned, ShutDown, Tick
from kraft_wire.raft.leader.parked_fetches import FetchCall
from kraft_wire.raft.leader.waiting_observers import (
    ANSWERS_PER_MS,
    ANSWERS_PER_TURN,
    AT_ONCE,
    WaitingObservers,
)
from kraft_wire.raft.membership.voters import ReplicaKey
from tests.raft.lone_node import LoneNode, fetch, of_type, only

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
    assert observers.next_turn_ms() == NOW_MS + 500
    assert observers.take_turn(NOW_MS + 499) == []
    assert taken(observers.take_turn(NOW_MS + 500)) == [0, 1, 2]
    assert observers.next_turn_ms() is None


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
    others, last_ms = in_turns(observers, NOW_MS, ANSWERS_PER_TURN)
    assert tokens + others == list(range(MANY))
    assert last_ms - NOW_MS <= (MANY - AT_ONCE) // ANSWERS_PER_MS + 3


def in_turns(observers: WaitingObservers, now_ms: int, most: int) -> tuple[list[object], int]:
    """Return the tokens of all turns, and the time of the last one."""
    tokens: list[object] = []
    while (turn_ms := observers.next_turn_ms()) is not None:
        assert turn_ms > now_ms, "turns are never overdue, unless nobody takes them"
        now_ms = turn_ms
        turn = taken(observers.take_turn(now_ms))
        assert 0 < len(turn) <= most
        tokens += turn
    return tokens, now_ms


def test_many_whose_deadlines_are_equal_are_answered_in_turns() -> None:
    deadline_ms = NOW_MS + 500
    tokens, last_ms = in_turns(waiting(MANY), NOW_MS, ANSWERS_PER_TURN)
    assert tokens == list(range(MANY))
    assert deadline_ms < last_ms <= deadline_ms + MANY // ANSWERS_PER_MS


def test_those_with_news_have_their_turn_before_those_at_their_deadline() -> None:
    observers = waiting(2)
    observers.line_up(call("news"))
    assert taken(observers.take_turn(NOW_MS + 500)) == ["news", 0, 1]


def test_those_that_are_dismissed_go_faster() -> None:
    """They don't come back. Nobody else is answered slower afterwards."""
    observers = waiting(MANY)
    observers.line_up(call("due"))
    observers.dismiss()
    tokens = taken(observers.take_first(NOW_MS))
    assert len(tokens) == AT_ONCE
    others, last_ms = in_turns(observers, NOW_MS, AT_ONCE)
    assert tokens + others == ["due", *range(MANY)]
    assert last_ms - NOW_MS == MANY // AT_ONCE
    for number in range(MANY):
        observers.line_up(call(number))
    assert len(observers.take_turn(last_ms + 10)) == ANSWERS_PER_TURN


def test_a_node_that_leads_again_at_once_keeps_the_pace() -> None:
    observers = waiting(AT_ONCE + 1, NOW_MS + 50)
    while observers.may_go(NOW_MS):
        pass
    observers.dismiss()
    observers.take_first(NOW_MS)
    for number in range(MANY):
        observers.park(call(number), NOW_MS + 1)
    assert len(observers.take_turn(NOW_MS + 2)) == AT_ONCE
    tokens, _ = in_turns(observers, NOW_MS + 2, ANSWERS_PER_TURN)
    assert len(tokens) == MANY + 1 - AT_ONCE


def test_nobody_is_dismissed_later() -> None:
    observers = waiting(0)
    observers.dismiss()
    for number in range(MANY):
        observers.line_up(call(number))
    assert len(observers.take_turn(NOW_MS)) == ANSWERS_PER_TURN


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
    assert observers.next_turn_ms() is None


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


def test_observers_whose_deadlines_are_equal_are_answered_some_in_each_step() -> None:
    """Anybody can send Fetches under any number of ids."""
    node = leader_with_observers(1_000)
    node.pass_ms(500)
    answered = 0
    while answered < 1_000:
        assert answered < len(node.answers) <= answered + ANSWERS_PER_TURN
        answered = len(node.answers)
        deadline_ms = node.core.next_deadline_ms()
        assert deadline_ms is not None and deadline_ms > node.now.monotonic_ms
        node.pass_ms(deadline_ms - node.now.monotonic_ms)
    assert list(node.answers) == list(range(10, 1_010))


def test_a_leader_that_is_one_no_more_answers_some_observers_in_each_step() -> None:
    node = leader_with_observers(1_000)
    node.step(ShutDown())
    assert node.core.leader_id is None
    steps = 1
    while len(node.answers) < 1_000:
        assert len(node.answers) == steps * AT_ONCE
        deadline_ms = node.core.next_deadline_ms()
        assert deadline_ms == node.now.monotonic_ms + 1
        node.pass_ms(1)
        steps += 1
    assert steps == 1_000 // AT_ONCE
    assert list(node.answers) == list(range(10, 1_010))
    errors = {only(answer.response).error_code for answer in node.answers.values()}
    assert errors == {ErrorCode.NOT_LEADER_OR_FOLLOWER}


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
