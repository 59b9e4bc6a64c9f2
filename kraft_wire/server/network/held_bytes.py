"""Bound the memory of all connections together: requests, and responses that aren't sent."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Collection
from typing import Final, Protocol

from kraft_wire.configs.own_keys import HELD_BYTES_KEY
from kraft_wire.wire.shared_bytes import SharedBytes

COUNTED_FROM: Final = 4096
"""A connection that holds less doesn't count."""
IN_WORK_RANK: Final = 16
"""A request in work counts with up to eight times its size, and ranks with half of it: below those that
wait."""


class Holder(Protocol):
    """A connection."""

    @property
    def held_bytes(self) -> int:
        """The bytes that only it holds now."""

    @property
    def in_work_bytes(self) -> int:
        """The part of these that is of requests in work."""

    @property
    def shared(self) -> Collection[SharedBytes]:
        """What it and others may hold."""

    def drop(self, reason: str) -> None:
        """Close it, and hold nothing from now on."""


class HeldBytes:
    """The bytes that all connections hold. Above the limit those that hold most are dropped.

    So clients that send unfinished requests, or don't read, cost themselves and not others. What several
    hold counts once, until the last of them has sent it. Requests in work are dropped last: they end by
    themselves, and so the others can.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._own: dict[Holder, int] = {}
        self._rank: dict[Holder, int] = {}
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
        self._total += own - self._own.get(holder, 0)
        self._own[holder] = own
        self._rank[holder] = (
            own
            - holder.in_work_bytes
            + holder.in_work_bytes // IN_WORK_RANK
            + sum(map(self._note_shared, set(holder.shared)))
        )
        if self._total > self._max_bytes:
            self._drop_largest()

    def forget(self, holder: Holder) -> None:
        """Take note that a connection is over, and holds nothing any more."""
        self._total -= self._own.pop(holder, 0)
        self._rank.pop(holder, None)

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
        while excess > 0 and self._rank:
            largest = max(self._rank, key=self._rank.__getitem__)
            reason = (
                f"all connections together hold {self._max_bytes + excess} bytes, more than {HELD_BYTES_KEY} "
                f"allows ({self._max_bytes}); of those without requests in work this one holds most"
            )
            excess -= self._own[largest] + _bytes_only_of(largest)
            self.forget(largest)
            largest.drop(reason)


def _bytes_only_of(holder: Holder) -> int:
    """Return the size of the shared parts that are freed when this connection is dropped."""
    return sum(len(part.data) for part, uses in Counter(holder.shared).items() if part.uses == uses)
