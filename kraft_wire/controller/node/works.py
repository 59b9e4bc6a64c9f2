"""Hold the works of a node, which take turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from typing import Final

import msgspec

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.work import Piece, Work, WorkKey, WorkKind
from kraft_wire.controller.forwarding.envelope import Forwarded
from kraft_wire.controller.node.events import ApiRequest

_OTHERS_TURN: Final = 4
"""Every so many turns isn't one of the cluster's works, if there are others."""


class WorkFor(Enum):
    """Whom a work is for."""

    CLUSTER = "brokers, or the controller itself"
    CLIENTS = "clients that change something"
    READERS = "clients that only read"


class InWork(msgspec.Struct, eq=False):
    """A work, and the request that its last piece answers. ``has_written`` says whether it has written any
    records."""

    work: Work
    request: ApiRequest | None
    is_for: WorkFor = WorkFor.CLUSTER
    has_written: bool = False


class LaterWork:
    """The work of a read that is begun when it is its turn."""

    key: Final = WorkKey(WorkKind.READ)

    def __init__(self, begin: Callable[[], Result]) -> None:
        self._begin = begin
        self._begun: Work | None = None

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """Decide the next piece."""
        if self._begun is not None:
            return self._begun.decide(state, context)
        result = self._begin()
        if result.response is None:
            (self._begun,) = result.works
        return Piece((), is_last=self._begun is None, response=result.response)


class WorkQueue:
    """The works in progress. ``state.in_work`` always has the keys of those that write.

    Works of the cluster, such as fencing a broker, have most turns, however many clients' works there are.
    Those that only read go on one after the other: each holds its response, which may be large, until it
    ends.
    """

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._queues: dict[WorkFor, deque[InWork]] = {each: deque() for each in WorkFor}
        self._turns = 0
        self._turns_of_others = 0

    def __bool__(self) -> bool:
        return any(self._queues.values())

    def add(
        self,
        works: Iterable[Work],
        request: ApiRequest | None,
        is_for: WorkFor = WorkFor.CLUSTER,
        *,
        has_written: bool = False,
    ) -> None:
        """Let works take turns from now on."""
        self._queues[is_for].extend([InWork(work, request, is_for, has_written) for work in works])
        self._note_keys()

    def next(self, *, may_write: bool) -> InWork | None:
        """Return the work whose turn it is, of those that may go on."""
        waiting = [
            queue for each, queue in self._queues.items() if queue and (may_write or each is WorkFor.READERS)
        ]
        if not waiting:
            return None
        others = [queue for queue in waiting if queue is not self._queues[WorkFor.CLUSTER]]
        if others and (len(others) == len(waiting) or self._turns % _OTHERS_TURN == 0):
            return others[self._turns_of_others % len(others)][0]
        return waiting[0][0]

    def had_turn(self, in_work: InWork, *, has_ended: bool) -> None:
        """Let others have their turn. Drops a work that has ended."""
        queue = self._queues[in_work.is_for]
        self._turns += 1
        self._turns_of_others += in_work.is_for is not WorkFor.CLUSTER
        if has_ended:
            queue.popleft()
            self._note_keys()
        elif in_work.is_for is not WorkFor.READERS:
            queue.rotate(-1)

    def abandon(self, token: Hashable) -> None:
        """Drop the client's work that would answer this request, unless it has written records."""
        for each in (WorkFor.CLIENTS, WorkFor.READERS):
            self._queues[each] = deque(
                work
                for work in self._queues[each]
                if work.has_written or work.request is None or not _is_of(work.request, token)
            )
        self._note_keys()

    def clear(self) -> list[ApiRequest]:
        """Drop all works. Returns the requests that they would have answered."""
        dropped = [work for queue in self._queues.values() for work in queue]
        for queue in self._queues.values():
            queue.clear()
        self._note_keys()
        return [each.request for each in dropped if each.request is not None]

    def _note_keys(self) -> None:
        writing = (WorkFor.CLUSTER, WorkFor.CLIENTS)
        self._state.in_work = [each.work.key for is_for in writing for each in self._queues[is_for]]


def _is_of(request: ApiRequest, token: Hashable) -> bool:
    """Whether the answer to a request, or to the envelope that it came in, has this token."""
    own = request.token
    return (own.envelope if isinstance(own, Forwarded) else own) == token


class Uncommitted:
    """The records that works have written and that aren't committed yet."""

    def __init__(self) -> None:
        self._pieces: deque[tuple[int, int]] = deque()
        self.records = 0

    def add(self, start_offset: int, end_offset: int) -> None:
        """Note the records of a piece."""
        if end_offset > start_offset:
            self._pieces.append((end_offset, end_offset - start_offset))
            self.records += end_offset - start_offset

    def committed(self, high_watermark: int) -> None:
        """Forget the pieces that are committed."""
        while self._pieces and self._pieces[0][0] <= high_watermark:
            self.records -= self._pieces.popleft()[1]

    def clear(self) -> None:
        """Forget all."""
        self._pieces.clear()
        self.records = 0
