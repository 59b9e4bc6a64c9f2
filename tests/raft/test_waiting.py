"""What waits is found by its token, when it is due, or all at once."""

from __future__ import annotations

from random import Random

from kraft_wire.raft.waiting import Waiting


def waiting_for(**due: int) -> Waiting[str]:
    waiting: Waiting[str] = Waiting()
    for token, each in due.items():
        waiting.add(token, token, each)
    return waiting


def test_items_are_taken_in_the_order_in_which_they_are_due() -> None:
    waiting = waiting_for(c=30, a=10, b=20, a_too=10)
    assert waiting.take_due(9) == []
    assert waiting.take_due(20) == ["a", "a_too", "b"]
    assert waiting.next_due() == 30
    assert len(waiting) == 1


def test_of_many_that_are_due_so_many_are_taken() -> None:
    waiting = waiting_for(c=30, a=10, b=20, a_too=10)
    assert waiting.take_due(30, 0) == []
    assert waiting.take_due(30, 3) == ["a", "a_too", "b"]
    assert waiting.next_due() == 30
    assert waiting.take_due(30, 3) == ["c"]


def test_all_items_are_taken_in_the_order_in_which_they_came() -> None:
    waiting = waiting_for(c=30, a=10, b=20)
    waiting.drop("a")
    waiting.drop("never added")
    assert waiting.next_due() == 20
    assert waiting.take_all() == ["c", "b"]
    assert waiting.next_due() is None
    assert waiting.take_due(99) == []


def test_a_token_that_is_used_again_is_due_when_its_last_item_is() -> None:
    waiting = waiting_for(a=10)
    waiting.add("a", "again", 30)
    assert waiting.next_due() == 30 and waiting.take_due(29) == []
    assert waiting.take_due(30) == ["again"] and len(waiting) == 0


def test_what_has_gone_takes_no_memory() -> None:
    """A client that waits for a long time, and is always answered at once, leaves no trace."""
    waiting = waiting_for(waits=5)
    for number in range(2_000):
        waiting.add("far", "far", 1_000_000 + number)
        waiting.drop("far")
    assert len(waiting._due) < 200
    assert waiting.next_due() == 5


def test_items_are_found_whatever_came_and_went() -> None:
    random = Random(1)
    waiting: Waiting[int] = Waiting()
    expected: dict[int, int] = {}
    for number in range(5_000):
        expected[number] = now = random.randrange(1_000)
        waiting.add(number, number, now)
        if random.random() < 0.6:
            gone = random.choice(list(expected))
            del expected[gone]
            waiting.drop(gone)
        if random.random() < 0.1:
            limit = random.randrange(50)
            due = sorted((due, each) for each, due in expected.items() if due <= limit)
            assert waiting.take_due(limit) == [each for _, each in due]
            for _, each in due:
                del expected[each]
        assert waiting.next_due() == min(expected.values(), default=None)
        assert len(waiting) == len(expected)
