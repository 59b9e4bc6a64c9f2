"""Hold the works of a node, which take turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.work import Work
from kraft_wire.controller.node.events import ApiRequest


class InWork(msgspec.Struct, eq=False):
    """A work, and the request that its last piece answers.

    ``has_written`` says whether it has written any records. A work that ``reads`` never writes any.
    """

    work: Work
    request: ApiRequest | None
    has_written: bool = False
    reads: bool = False


class WorkQueue:
    """The works in progress. Those that write take turns, and ``state.in_work`` always has their keys.

    Those that only read go on in turns with these, one after the other: each holds its response, which may be
    large, until it ends.
    """

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._writing: deque[InWork] = deque()
        self._reading: deque[InWork] = deque()
        self._is_readers_turn = False

    def __bool__(self) -> bool:
        return bool(self._writing or self._reading)

    def add(self, works: Iterable[Work], request: ApiRequest | None, *, has_written: bool = False) -> None:
        """Put works that write at the end of the queue."""
        self._writing.extend([InWork(work, request, has_written) for work in works])
        self._note_keys()

    def add_reading(self, works: Iterable[Work], request: ApiRequest) -> None:
        """Put works that only read at the end of theirs."""
        self._reading.extend([InWork(work, request, reads=True) for work in works])

    def next(self, *, may_write: bool) -> InWork | None:
        """Return the work whose turn it is, of those that may go on."""
        can_write = may_write and bool(self._writing)
        if self._reading and (self._is_readers_turn or not can_write):
            return self._reading[0]
        return self._writing[0] if can_write else None

    def had_turn(self, in_work: InWork, *, has_ended: bool) -> None:
        """Let others have their turn. Drops a work that has ended."""
        self._is_readers_turn = not in_work.reads
        if has_ended:
            (self._reading if in_work.reads else self._writing).popleft()
            self._note_keys()
        elif not in_work.reads:
            self._writing.rotate(-1)

    def clear(self) -> list[ApiRequest]:
        """Drop all works. Returns the requests that they would have answered."""
        dropped = [*self._writing, *self._reading]
        self._writing.clear()
        self._reading.clear()
        self._note_keys()
        return [each.request for each in dropped if each.request is not None]

    def _note_keys(self) -> None:
        self._state.in_work = [each.work.key for each in self._writing]
