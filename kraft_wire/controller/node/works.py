"""Hold the works of an active controller, which take turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.work import Work
from kraft_wire.controller.node.events import ApiRequest


class InWork(msgspec.Struct):
    """A work, and the request that its last piece answers. ``has_written`` says whether it has written any
    records."""

    work: Work
    request: ApiRequest | None
    has_written: bool


class WorkQueue:
    """The works in progress, in the order of their next pieces. ``state.in_work`` always has their keys."""

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._queue: deque[InWork] = deque()

    def __bool__(self) -> bool:
        return bool(self._queue)

    def add(self, works: Iterable[Work], request: ApiRequest | None, *, has_written: bool = False) -> None:
        """Put works at the end of the queue."""
        self._queue.extend([InWork(work, request, has_written) for work in works])
        self._note_keys()

    @property
    def next(self) -> InWork:
        """The work whose turn it is."""
        return self._queue[0]

    def rotate(self) -> None:
        """Let the next work have its turn."""
        self._queue.rotate(-1)

    def end(self) -> None:
        """Drop the work whose turn it is."""
        self._queue.popleft()
        self._note_keys()

    def clear(self) -> list[ApiRequest]:
        """Drop all works. Returns the requests that they would have answered."""
        requests = [each.request for each in self._queue if each.request is not None]
        self._queue.clear()
        self._note_keys()
        return requests

    def _note_keys(self) -> None:
        self._state.in_work = [each.work.key for each in self._queue]
