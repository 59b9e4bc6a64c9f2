"""Consumers that wait are found by what they wait for, however many there are."""

from __future__ import annotations

from random import Random
from typing import cast

from kraft_wire.controller.node.consumer_reads import ParkedFetch, ParkedFetches
from kraft_wire.protocol.messages.fetch_request import FetchRequest


def fetch(token: int, offset: int, deadline_ms: int) -> ParkedFetch:
    return ParkedFetch(token, 12, FetchRequest(), offset, deadline_ms)


def test_those_with_a_record_or_at_their_deadline_are_taken_once() -> None:
    random = Random(1)
    parked = ParkedFetches()
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
