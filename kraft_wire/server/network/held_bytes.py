"""Bound the memory of all connections together: unfinished requests, and responses that aren't sent."""

from __future__ import annotations

from typing import Protocol

from kraft_wire.wire.server_side import HELD_BYTES_KEY


class Holder(Protocol):
    """A connection."""

    @property
    def held_bytes(self) -> int:
        """The bytes that it holds now."""

    def drop(self, reason: str) -> None:
        """Close it, and hold nothing soon."""


class HeldBytes:
    """The bytes that all connections hold. Above the limit the one that holds most is dropped.

    So clients that send unfinished requests, or don't read, cost themselves and not others.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held: dict[Holder, int] = {}
        self._total = 0

    @property
    def total(self) -> int:
        """The bytes that all connections held when they were last noted."""
        return self._total

    def note(self, holder: Holder) -> None:
        """Take note that a connection holds more or less than before."""
        now, before = holder.held_bytes, self._held.get(holder, 0)
        if now == before:
            return
        self._total += now - before
        self._held[holder] = now
        if self._total > self._max_bytes:
            largest = max(self._held, key=self._held.__getitem__)
            total = self._total
            self.forget(largest)
            largest.drop(
                f"all connections together hold {total} bytes, this one most of them, and {HELD_BYTES_KEY} "
                f"allows {self._max_bytes}"
            )

    def forget(self, holder: Holder) -> None:
        """Take note that a connection is over."""
        self._total -= self._held.pop(holder, 0)
