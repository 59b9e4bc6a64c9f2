"""Hold the works of a node, which take turns."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
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
        return Piece((), self._begun is None, response=result.response, shown_end=result.shown_end)


class WorkQueue:
    """The works in progress. ``state.in_work`` always counts the keys of those that write.

    Works of the cluster, such as fencing a broker, have most turns, however many clients' works there are.
    Those that only read go on one after the other: each holds its response, which may be large, until it
    ends.
    """

    def __init__(self, state: ControllerState) -> None:
        self._queues: dict[WorkFor, OrderedDict[InWork, None]] = {each: OrderedDict() for each in WorkFor}
        self._by_token: dict[Hashable, InWork] = {}
        """The works of clients, by the token of the answer that they wait for."""
        self._keys: Counter[WorkKey] = Counter()
        state.in_work = self._keys
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
        for work in works:
            in_work = InWork(work, request, is_for, has_written)
            self._queues[is_for][in_work] = None
            if is_for is not WorkFor.READERS:
                self._keys[work.key] += 1
            if request is not None and is_for is not WorkFor.CLUSTER:
                self._by_token[_token_of(request)] = in_work

    def next(self, *, may_write: bool) -> InWork | None:
        """Return the work whose turn it is, of those that may go on."""
        waiting = [
            queue for each, queue in self._queues.items() if queue and (may_write or each is WorkFor.READERS)
        ]
        if not waiting:
            return None
        others = [queue for queue in waiting if queue is not self._queues[WorkFor.CLUSTER]]
        if others and (len(others) == len(waiting) or self._turns % _OTHERS_TURN == 0):
            return next(iter(others[self._turns_of_others % len(others)]))
        return next(iter(waiting[0]))

    def had_turn(self, in_work: InWork, *, has_ended: bool) -> None:
        """Let others have their turn. Drops a work that has ended."""
        self._turns += 1
        self._turns_of_others += in_work.is_for is not WorkFor.CLUSTER
        if has_ended:
            self._drop(in_work)
        elif in_work.is_for is not WorkFor.READERS:
            self._queues[in_work.is_for].move_to_end(in_work)

    def abandon(self, token: Hashable) -> None:
        """Drop the client's work that would answer this request, unless it has written records."""
        in_work = self._by_token.get(token)
        if in_work is not None and not in_work.has_written:
            self._drop(in_work)

    def clear(self) -> list[ApiRequest]:
        """Drop all works. Returns the requests that they would have answered."""
        dropped = [in_work.request for queue in self._queues.values() for in_work in queue]
        for queue in self._queues.values():
            queue.clear()
        self._by_token.clear()
        self._keys.clear()
        return [request for request in dropped if request is not None]

    def _drop(self, in_work: InWork) -> None:
        del self._queues[in_work.is_for][in_work]
        if in_work.request is not None:
            self._by_token.pop(_token_of(in_work.request), None)
        if in_work.is_for is not WorkFor.READERS:
            key = in_work.work.key
            self._keys[key] -= 1
            if not self._keys[key]:
                del self._keys[key]


def _token_of(request: ApiRequest) -> Hashable:
    """Return the token of the answer to a request, or to the envelope that it came in."""
    own = request.token
    return own.envelope if isinstance(own, Forwarded) else own


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
