"""Hold the works of a node, which take turns."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, OrderedDict, deque
from collections.abc import Container, Hashable, Iterable
from enum import Enum
from typing import Final, Generic, TypeVar

import msgspec

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.work import Work, WorkKey
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
    """A work, and the request that its last piece answers; None if nobody waits for it. ``has_written`` says
    whether it has written any records."""

    work: Work
    request: ApiRequest | None
    is_for: WorkFor = WorkFor.CLUSTER
    has_written: bool = False


class Postponed(msgspec.Struct, eq=False):
    """A request of which nothing is decided yet."""

    request: ApiRequest
    is_for: WorkFor
    has_written: bool = False


class WorkQueue:
    """The works in progress, and postponed requests. ``state.in_work`` always counts the keys of works that
    write.

    Works of the cluster, such as fencing a broker, have most turns, however many clients' works there are.
    Those that only read go on one after the other: each holds its response, which may be large, until it
    ends.
    """

    def __init__(self, state: ControllerState) -> None:
        self._queues: dict[WorkFor, OrderedDict[InWork | Postponed, None]] = {
            each: OrderedDict() for each in WorkFor
        }
        self._by_token: dict[Hashable, InWork | Postponed] = {}
        """The works of clients, by the token of the answer that they wait for."""
        self._deadlines: Deadlines[InWork | Postponed] = Deadlines()
        self._keys: Counter[WorkKey] = Counter()
        state.in_work = self._keys
        self._turns = 0
        self._turns_of_others = 0
        self._postponed = 0

    def __bool__(self) -> bool:
        return any(self._queues.values())

    def add(
        self,
        works: Iterable[Work],
        request: ApiRequest | None,
        is_for: WorkFor = WorkFor.CLUSTER,
        *,
        has_written: bool = False,
        is_next: bool = False,
    ) -> None:
        """Let works take turns from now on; of those that are for the same, this ``is_next``."""
        for work in works:
            in_work = InWork(work, request, is_for, has_written)
            self._queues[is_for][in_work] = None
            if is_next:
                self._queues[is_for].move_to_end(in_work, last=False)
            if is_for is not WorkFor.READERS:
                self._keys[work.key] += 1
            if request is not None and is_for is not WorkFor.CLUSTER:
                self._by_token[_token_of(request)] = in_work
                self._note_deadline(in_work, request)

    def postpone(self, request: ApiRequest, is_for: WorkFor) -> None:
        """Let a client's request take a turn, in which it is begun."""
        postponed = Postponed(request, is_for)
        self._queues[is_for][postponed] = None
        self._by_token[_token_of(request)] = postponed
        self._note_deadline(postponed, request)
        self._postponed += is_for is WorkFor.CLIENTS

    def _note_deadline(self, in_work: InWork | Postponed, request: ApiRequest) -> None:
        if request.deadline_ms is not None:
            self._deadlines.add(in_work, request.deadline_ms)

    def next_deadline_ms(self) -> int | None:
        """Return the first deadline of a request; None if there is none."""
        return self._deadlines.next_ms()

    def take_overdue(self, now_ms: int) -> ApiRequest | None:
        """Drop a work that has written nothing by its deadline, and return its request, if there is one."""
        while (in_work := self._deadlines.first_passed(now_ms)) is not None:
            self._deadlines.forget(in_work)
            if not in_work.has_written and in_work.request is not None:
                self._drop(in_work)
                return in_work.request
        return None

    @property
    def has_postponed_writes(self) -> bool:
        """Whether there are clients' writes that aren't begun."""
        return self._postponed > 0

    def next(self, may_go: Container[WorkFor]) -> InWork | Postponed | None:
        """Return what has its turn, of the works for those that may go on."""
        waiting = [queue for each, queue in self._queues.items() if queue and each in may_go]
        if not waiting:
            return None
        others = [queue for queue in waiting if queue is not self._queues[WorkFor.CLUSTER]]
        if others and (len(others) == len(waiting) or self._turns % _OTHERS_TURN == 0):
            return next(iter(others[self._turns_of_others % len(others)]))
        return next(iter(waiting[0]))

    def had_turn(self, in_work: InWork | Postponed, *, has_ended: bool) -> None:
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
        """Drop everything. Returns the requests that would have been answered."""
        dropped = [in_work.request for queue in self._queues.values() for in_work in queue]
        for queue in self._queues.values():
            queue.clear()
        self._by_token.clear()
        self._deadlines.clear()
        self._keys.clear()
        self._postponed = 0
        return [request for request in dropped if request is not None]

    def _drop(self, in_work: InWork | Postponed) -> None:
        del self._queues[in_work.is_for][in_work]
        self._deadlines.forget(in_work)
        if in_work.request is not None:
            self._by_token.pop(_token_of(in_work.request), None)
        if isinstance(in_work, Postponed):
            self._postponed -= in_work.is_for is WorkFor.CLIENTS
        elif in_work.is_for is not WorkFor.READERS:
            key = in_work.work.key
            self._keys[key] -= 1
            if not self._keys[key]:
                del self._keys[key]


def _token_of(request: ApiRequest) -> Hashable:
    """Return the token of the answer to a request, or to the envelope that it came in."""
    own = request.token
    return own.envelope if isinstance(own, Forwarded) else own


Item = TypeVar("Item", bound=Hashable)


class Deadlines(Generic[Item]):
    """The deadlines of items that wait."""

    def __init__(self) -> None:
        self._places: dict[Item, tuple[int, int]] = {}
        self._order: list[tuple[int, int, Item]] = []
        self._added = 0

    def add(self, item: Item, deadline_ms: int) -> None:
        """Note an item, which must be new."""
        self._added += 1
        self._places[item] = (deadline_ms, self._added)
        insort(self._order, (deadline_ms, self._added, item))

    def forget(self, item: Item) -> None:
        """Forget an item, if it is known."""
        place = self._places.pop(item, None)
        if place is not None:
            del self._order[bisect_left(self._order, place)]

    def next_ms(self) -> int | None:
        """Return the first deadline; None if there is none."""
        return self._order[0][0] if self._order else None

    def first_passed(self, now_ms: int) -> Item | None:
        """Return the item whose deadline has passed first; None if none has."""
        return self._order[0][2] if self._order and self._order[0][0] <= now_ms else None

    def clear(self) -> None:
        """Forget all."""
        self._places.clear()
        self._order.clear()


class Uncommitted:
    """Records that works, or clients, have written and that aren't committed yet.

    ``weight`` is their number, but single ones, which take longer to undo than those in columns, count more.
    """

    def __init__(self) -> None:
        self._pieces: deque[tuple[int, int]] = deque()
        self.weight = 0

    def add(self, end_offset: int, weight: int) -> None:
        """Note the records of a decision, which end at this offset."""
        if weight:
            self._pieces.append((end_offset, weight))
            self.weight += weight

    def committed(self, high_watermark: int) -> None:
        """Forget the pieces that are committed."""
        while self._pieces and self._pieces[0][0] <= high_watermark:
            self.weight -= self._pieces.popleft()[1]

    def clear(self) -> None:
        """Forget all."""
        self._pieces.clear()
        self.weight = 0
