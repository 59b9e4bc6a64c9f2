"""Requests raise the epoch a few times at once, then now and then."""

from __future__ import annotations

import pytest

from kraft_wire.raft.door.raises import OF_OTHERS, OF_VOTERS, RaiseLimit, Raises

LIMITS = pytest.mark.parametrize("limit", [OF_VOTERS, OF_OTHERS], ids=["of voters", "of others"])


@LIMITS
def test_a_few_raises_are_taken_at_once(limit: RaiseLimit) -> None:
    raises, most = Raises(limit), limit.most_at_once
    assert [raises.take(1000) for _ in range(most + 2)] == [True] * most + [False] * 2


@LIMITS
def test_then_one_in_each_interval(limit: RaiseLimit) -> None:
    raises = Raises(limit)
    taken = sum(raises.take(now_ms) for now_ms in range(1000, 11_000))
    assert taken == limit.most_at_once + 9_999 // limit.every_ms
