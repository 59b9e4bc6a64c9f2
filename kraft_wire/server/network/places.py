"""Begin only so much of clients' large requests at a time.

A decoded request takes several times the memory of its frame until it is answered, and each garbage
collection passes over all of it. So a large request waits in its frame until those before it leave room.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec
import trio

SMALL_BYTES: Final = 16 * 1024
"""The size below which a request never waits."""
MOST_BYTES: Final = 512 * 1024
"""The size of the requests that may be in work at a time. One that is larger is in work alone."""


class _Waiting(msgspec.Struct, eq=False):
    size_bytes: int
    may_enter: trio.Event


class Places:
    """The room for large requests, of all connections."""

    def __init__(self) -> None:
        self._in_work_bytes = 0
        self._waiting: deque[_Waiting] = deque()

    async def enter(self, size_bytes: int) -> None:
        """Wait for room, in the order of arrival, and take it. It has to be given back by ``leave``."""
        if not self._waiting and self._has_room(size_bytes):
            self._in_work_bytes += size_bytes
            return
        waiting = _Waiting(size_bytes, trio.Event())
        self._waiting.append(waiting)
        try:
            await waiting.may_enter.wait()
        except trio.Cancelled:
            if waiting.may_enter.is_set():
                self.leave(size_bytes)
            else:
                self._waiting.remove(waiting)
                self._let_in()
            raise

    def leave(self, size_bytes: int) -> None:
        """Give room back: the request is answered, or its client is gone."""
        self._in_work_bytes -= size_bytes
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self._has_room(self._waiting[0].size_bytes):
            first = self._waiting.popleft()
            self._in_work_bytes += first.size_bytes
            first.may_enter.set()

    def _has_room(self, size_bytes: int) -> bool:
        return not self._in_work_bytes or self._in_work_bytes + size_bytes <= MOST_BYTES
