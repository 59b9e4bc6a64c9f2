"""Consumers that wait are found by what they wait for, however many there are."""

from __future__ import annotations

from collections.abc import Hashable
from random import Random
from typing import cast

from kraft_wire.controller.node.consumer_reads import ANSWERS_PER_STEP, ParkedConsumers, ParkedFetch
from kraft_wire.protocol.messages.fetch_request import FetchRequest


def fetch(token: Hashable, offset: int, deadline_ms: int) -> ParkedFetch:
    return ParkedFetch(token, 12, FetchRequest(), offset, deadline_ms)


def test_those_with_a_record_or_at_their_deadline_are_taken_once() -> None:
    random = Random(1)
    parked = ParkedConsumers()
    waiting: dict[int, ParkedFetch] = {}
    high_watermark = now_ms = 0
    for token in range(5_000):
        each = fetch(token, high_watermark + random.randint(0, 3), now_ms + random.randint(1, 200))
        parked.park(each)
        waiting[token] = each
        if random.random() < 0.3:
            gone = random.choice(list(waiting))
            del waiting[gone]
            parked.abandon(gone)
        assert parked.next_deadline_ms() == min((each.deadline_ms for each in waiting.values()), default=None)
        if random.random() < 0.2:
            high_watermark += random.randint(0, 2)
            now_ms += random.randint(0, 20)
            ready = [cast(int, token) for token in all_tokens(parked, high_watermark, now_ms)]
            assert sorted(ready) == [
                token
                for token, each in sorted(waiting.items())
                if each.offset < high_watermark or each.deadline_ms <= now_ms
            ]
            for taken in ready:
                del waiting[taken]


def tokens(parked: ParkedConsumers, high_watermark: int, now_ms: int) -> list[object]:
    return [fetch.token for fetch in parked.take_ready(high_watermark, now_ms)]


def all_tokens(parked: ParkedConsumers, high_watermark: int, now_ms: int) -> list[object]:
    """Take some, and others while it is time for them."""
    taken = tokens(parked, high_watermark, now_ms)
    while (due_ms := parked.next_deadline_ms()) is not None and due_ms <= now_ms:
        assert due_ms == now_ms, "it isn't late"
        more = tokens(parked, high_watermark, now_ms)
        assert len(more) <= ANSWERS_PER_STEP
        taken += more
    return taken


def test_a_fetch_waits_until_something_past_its_offset_is_committed() -> None:
    parked = ParkedConsumers()
    parked.park(fetch("a", 10, 500))
    assert tokens(parked, high_watermark=10, now_ms=0) == []
    assert tokens(parked, high_watermark=11, now_ms=0) == ["a"]
    assert tokens(parked, high_watermark=11, now_ms=0) == []


def test_a_fetch_is_answered_at_its_deadline() -> None:
    parked = ParkedConsumers()
    parked.park(fetch("a", 10, 500))
    parked.park(fetch("b", 10, 300))
    assert parked.next_deadline_ms() == 300
    assert tokens(parked, high_watermark=0, now_ms=300) == ["b"]
    assert parked.next_deadline_ms() == 500


def test_of_many_that_have_a_record_some_are_taken_at_once_and_the_others_soon() -> None:
    parked = ParkedConsumers()
    many = 3 * ANSWERS_PER_STEP + 1
    for token in range(many):
        parked.park(fetch(token, 10, 500))
    assert tokens(parked, high_watermark=11, now_ms=100) == list(range(ANSWERS_PER_STEP))
    assert parked.next_deadline_ms() == 100
    parked.abandon(many - 2)
    assert all_tokens(parked, high_watermark=11, now_ms=101) == [
        *range(ANSWERS_PER_STEP, many - 2),
        many - 1,
    ]
    assert parked.next_deadline_ms() is None


def test_of_many_at_their_deadline_some_are_taken_at_once_and_the_others_soon() -> None:
    parked = ParkedConsumers()
    many = 3 * ANSWERS_PER_STEP + 1
    for token in range(many):
        parked.park(fetch(token, 10, 500))
    assert tokens(parked, high_watermark=10, now_ms=700) == list(range(ANSWERS_PER_STEP))
    assert parked.next_deadline_ms() == 700, "the others aren't overdue since 500: nothing has paused"
    assert all_tokens(parked, high_watermark=10, now_ms=701) == list(range(ANSWERS_PER_STEP, many))
    assert parked.next_deadline_ms() is None


def test_an_abandoned_fetch_is_forgotten() -> None:
    parked = ParkedConsumers()
    parked.park(fetch("a", 10, 500))
    parked.abandon("a")
    parked.abandon("never parked")
    assert parked.next_deadline_ms() is None
