"""Bound the memory of all connections together: requests, and responses that aren't sent."""

from __future__ import annotations

import weakref
from collections.abc import Collection
from typing import Final, Protocol

from kraft_wire.wire.server_side import HELD_BYTES_KEY
from kraft_wire.wire.shared_bytes import SharedBytes

COUNTED_FROM: Final = 4096
"""A connection that holds less doesn't count."""


class Holder(Protocol):
    """A connection."""

    @property
    def held_bytes(self) -> int:
        """The bytes that only it holds now."""

    @property
    def shared(self) -> Collection[SharedBytes]:
        """What it and others may hold."""

    def drop(self, reason: str) -> None:
        """Close it, and hold nothing from now on."""


class HeldBytes:
    """The bytes that all connections hold. Above the limit those that hold most are dropped.

    So clients that send unfinished requests, or don't read, cost themselves and not others. What several
    hold counts once, until the last of them has sent it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._own: dict[Holder, int] = {}
        self._all: dict[Holder, int] = {}
        self._shared: weakref.WeakSet[SharedBytes] = weakref.WeakSet()
        self._total = 0

    @property
    def total(self) -> int:
        """The bytes that all connections held when they were last noted."""
        return self._total

    def note(self, holder: Holder) -> None:
        """Take note that a connection holds more or less than before."""
        own = holder.held_bytes
        if own < COUNTED_FROM and not holder.shared:
            if holder in self._own:
                self.forget(holder)
            return
        held = own + sum(map(self._note_shared, holder.shared))
        own_before = self._own.get(holder, 0)
        if own == own_before and held == self._all.get(holder, 0):
            return
        self._total += own - own_before
        self._own[holder], self._all[holder] = own, held
        if self._total > self._max_bytes:
            self._drop_largest()

    def forget(self, holder: Holder) -> None:
        """Take note that a connection is over, and holds nothing any more."""
        self._total -= self._own.pop(holder, 0)
        self._all.pop(holder, None)

    def _note_shared(self, shared: SharedBytes) -> int:
        size_bytes = len(shared.data)
        if shared not in self._shared:
            self._shared.add(shared)
            self._total += size_bytes
            weakref.finalize(shared, self._freed, size_bytes).atexit = False
        return size_bytes

    def _freed(self, size_bytes: int) -> None:
        self._total -= size_bytes

    def _drop_largest(self) -> None:
        """Drop connections until enough is free, or will be when this answer is made: it holds its parts."""
        excess = self._total - self._max_bytes
        while excess > 0 and self._all:
            largest = max(self._all, key=self._all.__getitem__)
            reason = (
                f"all connections together hold {self._max_bytes + excess} bytes, this one most of them, and "
                f"{HELD_BYTES_KEY} allows {self._max_bytes}"
            )
            parts = tuple(largest.shared)
            excess -= self._own[largest]
            self.forget(largest)
            excess -= sum(len(part.data) for part in parts if not self._is_held(part))
            largest.drop(reason)

    def _is_held(self, shared: SharedBytes) -> bool:
        return any(shared in holder.shared for holder in self._all)
