"""Begin only so much of clients' large requests at a time.

A decoded request takes several times the memory of its frame until it is answered, and each garbage
collection passes over all of it. So a large request waits in its frame until those before it leave room.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import trio

SMALL_BYTES: Final = 16 * 1024
"""The size below which a request never waits."""
MOST_BYTES: Final = 512 * 1024
"""The size of the requests that may be in work at a time. One that is larger is in work alone."""


class Places:
    """The room for large requests, of all connections."""

    def __init__(self) -> None:
        self._in_work_bytes = 0
        self._waiting: deque[Place] = deque()

    def ask(self, size_bytes: int) -> Place:
        """Return a place for a request of this size, behind those that wait already. It must be left."""
        place = Place(self, size_bytes)
        self._waiting.append(place)
        self._let_in()
        return place

    def leave(self, place: Place) -> None:
        """Give a place back, or wait for it no longer. Called by the place, once."""
        if place.is_granted:
            self._in_work_bytes -= place.size_bytes
        else:
            self._waiting.remove(place)
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self._has_room(self._waiting[0].size_bytes):
            first = self._waiting.popleft()
            self._in_work_bytes += first.size_bytes
            first.grant()

    def _has_room(self, size_bytes: int) -> bool:
        return not self._in_work_bytes or self._in_work_bytes + size_bytes <= MOST_BYTES


class Place:
    """The place of one large request: waited for, taken, and left."""

    def __init__(self, places: Places, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._places = places
        self._granted = trio.Event()
        self._is_left = False

    @property
    def is_granted(self) -> bool:
        """Whether the request may be begun."""
        return self._granted.is_set()

    def grant(self) -> None:
        """Let the request begin."""
        self._granted.set()

    async def wait(self) -> None:
        """Wait until the request may be begun. If the place is left meanwhile, it never may."""
        await self._granted.wait()

    def leave(self) -> None:
        """Let others have the room: the request is answered, or its connection is over. Again is harmless."""
        if not self._is_left:
            self._is_left = True
            self._places.leave(self)
