"""Consumers that wait are found by what they wait for, however many there are."""

from __future__ import annotations

from collections.abc import Hashable
from random import Random
from typing import cast

from kraft_wire.controller.node.consumer_reads import ParkedConsumers, ParkedFetch
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
            ready = parked.take_ready(high_watermark, now_ms)
            tokens = [cast(int, each.token) for each in ready]
            assert sorted(tokens) == [
                token
                for token, each in sorted(waiting.items())
                if each.offset < high_watermark or each.deadline_ms <= now_ms
            ]
            for taken in tokens:
                del waiting[taken]


def tokens(parked: ParkedConsumers, high_watermark: int, now_ms: int) -> list[object]:
    return [fetch.token for fetch in parked.take_ready(high_watermark, now_ms)]


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


def test_an_abandoned_fetch_is_forgotten() -> None:
    parked = ParkedConsumers()
    parked.park(fetch("a", 10, 500))
    parked.abandon("a")
    parked.abandon("never parked")
    assert parked.next_deadline_ms() is None
