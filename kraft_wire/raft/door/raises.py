"""Bound how often requests may raise the epoch."""

from __future__ import annotations

from typing import Final, NamedTuple


class RaiseLimit(NamedTuple):
    """Up to ``most_at_once`` raises, then one each ``every_ms``."""

    most_at_once: int
    every_ms: int


OF_VOTERS: Final = RaiseLimit(5, 200)
"""Elections need fewer."""
OF_OTHERS: Final = RaiseLimit(2, 1000)
"""A voter that this node doesn't know yet stands for election less often. Each raise ends an election of this
node."""


class Raises:
    """The raises of one kind of callers."""

    __slots__ = ("_full_at_ms", "_limit")

    def __init__(self, limit: RaiseLimit) -> None:
        self._limit = limit
        self._full_at_ms = 0

    def has_room(self, now_ms: int) -> bool:
        """Whether another raise is allowed now."""
        most_at_once, every_ms = self._limit
        return max(self._full_at_ms, now_ms) + every_ms <= now_ms + most_at_once * every_ms

    def take(self, now_ms: int) -> bool:
        """Note a raise. Returns False if there were too many."""
        if not self.has_room(now_ms):
            return False
        self._full_at_ms = max(self._full_at_ms, now_ms) + self._limit.every_ms
        return True
