"""Parked fetches: answered after a commit, at a deadline, or never."""

from __future__ import annotations

from kraft_wire.controller.node.consumer_reads import ParkedFetch, ParkedFetches
from kraft_wire.protocol.messages.fetch_request import FetchRequest


def _parked(token: str, *, offset: int = 10, deadline_ms: int = 500) -> ParkedFetch:
    return ParkedFetch(token, 11, FetchRequest(), offset, deadline_ms)


def _tokens(fetches: ParkedFetches, high_watermark: int, now_ms: int) -> list[object]:
    return [fetch.token for fetch in fetches.take_ready(high_watermark, now_ms)]


def test_a_fetch_waits_until_something_past_its_offset_is_committed() -> None:
    fetches = ParkedFetches()
    fetches.park(_parked("a", offset=10))
    assert _tokens(fetches, high_watermark=10, now_ms=0) == []
    assert _tokens(fetches, high_watermark=11, now_ms=0) == ["a"]
    assert _tokens(fetches, high_watermark=11, now_ms=0) == []


def test_a_fetch_is_answered_at_its_deadline() -> None:
    fetches = ParkedFetches()
    fetches.park(_parked("a", deadline_ms=500))
    fetches.park(_parked("b", deadline_ms=300))
    assert fetches.next_deadline_ms() == 300
    assert _tokens(fetches, high_watermark=0, now_ms=300) == ["b"]
    assert fetches.next_deadline_ms() == 500


def test_an_abandoned_fetch_is_forgotten() -> None:
    fetches = ParkedFetches()
    fetches.park(_parked("a"))
    fetches.abandon("a")
    fetches.abandon("never parked")
    assert fetches.next_deadline_ms() is None
