"""Bound how often requests may raise the epoch."""

from __future__ import annotations

from typing import Final

MOST_AT_ONCE: Final = 5
EVERY_MS: Final = 200


class Raises:
    """Up to ``MOST_AT_ONCE`` raises, then one each ``EVERY_MS``: elections need fewer."""

    __slots__ = ("_full_at_ms",)

    def __init__(self) -> None:
        self._full_at_ms = 0

    def has_room(self, now_ms: int) -> bool:
        """Whether another raise is allowed now."""
        return max(self._full_at_ms, now_ms) + EVERY_MS <= now_ms + MOST_AT_ONCE * EVERY_MS

    def take(self, now_ms: int) -> bool:
        """Note a raise. Returns False if there were too many."""
        if not self.has_room(now_ms):
            return False
        self._full_at_ms = max(self._full_at_ms, now_ms) + EVERY_MS
        return True
