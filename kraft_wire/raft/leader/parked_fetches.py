"""Keep the fetches that wait, until their deadline, for new or committed records (Kafka's purgatory)."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Final

import msgspec

from kraft_wire.protocol.messages.fetch_request import FetchPartition
from kraft_wire.raft.membership.voters import ReplicaKey

_SPARE_DEADLINES: Final = 100


class FetchCall(msgspec.Struct, frozen=True):
    """The fields of a replica's Fetch that are needed to answer it now or later."""

    token: Hashable
    version: int
    listener: str
    replica: ReplicaKey
    asked: FetchPartition
    max_bytes: int

    @property
    def question(self) -> Hashable:
        """All that the answer depends on: calls with the same question get the same answer."""
        asked = self.asked
        return (
            asked.fetch_offset,
            asked.last_fetched_epoch,
            asked.current_leader_epoch,
            self.version,
            self.listener,
            self.max_bytes,
        )


class ParkedFetches:
    """Waiting fetches by token, and their deadlines in order.

    All of them wait for the log to grow, so all of them are answered together.
    """

    __slots__ = ("_calls", "_deadlines", "_sequence")

    def __init__(self) -> None:
        self._calls: dict[Hashable, tuple[int, FetchCall]] = {}
        self._deadlines: list[tuple[int, int, Hashable]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._calls)

    def park(self, call: FetchCall, deadline_ms: int) -> None:
        """Let a fetch wait until the monotonic time ``deadline_ms`` at most."""
        self._sequence += 1
        self._calls[call.token] = self._sequence, call
        heappush(self._deadlines, (deadline_ms, self._sequence, call.token))
        if len(self._deadlines) > 2 * len(self._calls) + _SPARE_DEADLINES:
            self._forget_old_deadlines()

    def _forget_old_deadlines(self) -> None:
        """Drop the deadlines of fetches that don't wait any more: a client chooses how far away they are."""
        waiting = {sequence for sequence, _ in self._calls.values()}
        self._deadlines = [deadline for deadline in self._deadlines if deadline[1] in waiting]
        heapify(self._deadlines)

    def abandon(self, token: Hashable) -> None:
        """Drop a fetch whose client has disconnected."""
        self._calls.pop(token, None)

    def take_all(self) -> list[FetchCall]:
        """Remove and return every waiting fetch, in order of arrival."""
        calls = [call for _, call in self._calls.values()]
        self._calls.clear()
        self._deadlines.clear()
        return calls

    def take_expired(self, now_ms: int) -> list[FetchCall]:
        """Remove and return the fetches whose deadline has passed."""
        expired = []
        while (deadline_ms := self.next_deadline_ms()) is not None and deadline_ms <= now_ms:
            _, _, token = heappop(self._deadlines)
            expired.append(self._calls.pop(token)[1])
        return expired

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline of the waiting fetches, None if there are none."""
        while self._deadlines:
            deadline_ms, sequence, token = self._deadlines[0]
            waiting = self._calls.get(token)
            if waiting is not None and waiting[0] == sequence:
                return deadline_ms
            heappop(self._deadlines)
        return None
