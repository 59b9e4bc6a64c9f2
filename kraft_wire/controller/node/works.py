"""Hold the works of an active controller, which take turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from itertools import chain
from typing import Final

import msgspec

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.work import Work
from kraft_wire.controller.node.events import ApiRequest

_CLIENTS_TURN: Final = 4
"""Every so many turns is one of a client's work, if there are also works of the cluster."""


class InWork(msgspec.Struct):
    """A work, and the request that its last piece answers. ``has_written`` says whether it has written any
    records."""

    work: Work
    request: ApiRequest | None
    has_written: bool


class WorkQueue:
    """The works in progress. ``state.in_work`` always has their keys.

    Works of the cluster, such as fencing a broker, have most turns, however many clients' works there are.
    """

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._of_cluster: deque[InWork] = deque()
        self._of_clients: deque[InWork] = deque()
        self._turns = 0

    def __bool__(self) -> bool:
        return bool(self._of_cluster or self._of_clients)

    def add(
        self,
        works: Iterable[Work],
        request: ApiRequest | None,
        *,
        is_clients: bool = False,
        has_written: bool = False,
    ) -> None:
        """Let works take turns from now on."""
        queue = self._of_clients if is_clients else self._of_cluster
        queue.extend([InWork(work, request, has_written) for work in works])
        self._note_keys()

    @property
    def next(self) -> InWork:
        """The work whose turn it is."""
        return self._queue[0]

    def rotate(self) -> None:
        """Let the next work have its turn."""
        self._queue.rotate(-1)
        self._turns += 1

    def end(self) -> None:
        """Drop the work whose turn it is."""
        self._queue.popleft()
        self._turns += 1
        self._note_keys()

    def abandon(self, token: Hashable) -> None:
        """Drop the client's work that would answer this request, unless it has written records."""
        self._of_clients = deque(
            each
            for each in self._of_clients
            if each.has_written or each.request is None or each.request.token != token
        )
        self._note_keys()

    def clear(self) -> list[ApiRequest]:
        """Drop all works. Returns the requests that they would have answered."""
        works = chain(self._of_cluster, self._of_clients)
        requests = [each.request for each in works if each.request is not None]
        self._of_cluster.clear()
        self._of_clients.clear()
        self._note_keys()
        return requests

    @property
    def _queue(self) -> deque[InWork]:
        """The queue whose turn it is."""
        if not self._of_cluster:
            return self._of_clients
        is_clients_turn = self._of_clients and self._turns % _CLIENTS_TURN == 0
        return self._of_clients if is_clients_turn else self._of_cluster

    def _note_keys(self) -> None:
        self._state.in_work = [each.work.key for each in chain(self._of_cluster, self._of_clients)]


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
