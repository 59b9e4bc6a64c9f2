"""Requests raise the epoch a few times at once, then now and then."""

from __future__ import annotations

from kraft_wire.raft.door.raises import EVERY_MS, MOST_AT_ONCE, Raises


def test_a_few_raises_are_taken_at_once() -> None:
    raises = Raises()
    assert [raises.take(1000) for _ in range(MOST_AT_ONCE + 2)] == [True] * MOST_AT_ONCE + [False] * 2


def test_then_one_in_each_interval() -> None:
    raises = Raises()
    taken = sum(raises.take(now_ms) for now_ms in range(1000, 11_000))
    assert taken == MOST_AT_ONCE + 9_999 // EVERY_MS
