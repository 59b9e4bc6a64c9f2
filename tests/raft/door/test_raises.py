"""Requests raise the epoch a few times at once, then now and then."""

from __future__ import annotations

from kraft_wire.raft.door.raises import EVERY_MS, MOST_AT_ONCE, REPORT_EVERY_MS, Raises


def test_a_few_raises_are_taken_at_once() -> None:
    raises = Raises()
    assert [raises.take(1000) for _ in range(MOST_AT_ONCE + 2)] == [True] * MOST_AT_ONCE + [False] * 2


def test_then_one_in_each_interval() -> None:
    raises = Raises()
    taken = sum(raises.take(now_ms) for now_ms in range(1000, 11_000))
    assert taken == MOST_AT_ONCE + 9_999 // EVERY_MS


def test_a_refusal_is_reported_once_a_second() -> None:
    raises = Raises()
    assert raises.may_report(0)
    assert not raises.may_report(REPORT_EVERY_MS - 1)
    assert raises.may_report(REPORT_EVERY_MS)
