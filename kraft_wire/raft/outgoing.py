"""Requests of ours that are under way, and when a peer may be asked again (Kafka's RequestManager).

A peer has at most one request of a lane at a time: Fetch and FetchSnapshot, which it may answer late, are one
lane, all else is the other. A peer that failed is left alone for a while, longer each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.raft.voters import Peer

MAX_BACKOFF_DOUBLINGS: Final = 4
"""20 ms become 320 at most: asking one that is gone costs little, and one that comes back is noticed soon."""

Lane = tuple[int, bool]


def _lane(peer: Peer, request_type: type[Message]) -> Lane:
    return peer.id, request_type in (FetchRequest, FetchSnapshotRequest)


class Call(msgspec.Struct, frozen=True):
    """A request that was sent, and the epoch in which that was."""

    peer: Peer
    request: Message
    epoch: int
    deadline_ms: int


class Outgoing:
    """Calls by request id. Times are monotonic milliseconds."""

    __slots__ = ("_busy", "_calls", "_failures", "_last_id", "_resting")

    def __init__(self) -> None:
        self._last_id = 0
        self._calls: dict[int, Call] = {}
        self._busy: dict[Lane, int] = {}
        self._failures: dict[int, int] = {}
        self._resting: dict[int, int] = {}

    def is_ready(self, peer: Peer, request_type: type[Message], now_ms: int) -> bool:
        """Whether the peer can be asked now."""
        return _lane(peer, request_type) not in self._busy and not self.is_resting(peer, now_ms)

    def is_resting(self, peer: Peer, now_ms: int) -> bool:
        """Whether the peer failed a moment ago."""
        until_ms = self._resting.get(peer.id)
        return until_ms is not None and now_ms < until_ms

    def is_fetching(self) -> bool:
        """Whether a Fetch or FetchSnapshot is under way, to whomever."""
        return any(is_fetch for _, is_fetch in self._busy)

    def begin(self, peer: Peer, request: Message, epoch: int, deadline_ms: int) -> int:
        """Note a request that is sent now; returns its id."""
        self._last_id += 1
        self._calls[self._last_id] = Call(peer, request, epoch, deadline_ms)
        self._busy[_lane(peer, type(request))] = self._last_id
        return self._last_id

    def take(self, request_id: int) -> Call | None:
        """The call that this was the end of; None for one that nobody waits for any longer."""
        call = self._calls.pop(request_id, None)
        if call is not None:
            del self._busy[_lane(call.peer, type(call.request))]
        return call

    def forget_all(self) -> list[int]:
        """The role in which all of this was asked is over; what is asked in the next one is worth a try at
        once. Returns the ids of fetches, whose connections may be kept waiting."""
        fetches = [request_id for (_, is_fetch), request_id in self._busy.items() if is_fetch]
        self._calls.clear()
        self._busy.clear()
        self._failures.clear()
        self._resting.clear()
        return fetches

    def take_expired(self, now_ms: int) -> Iterator[tuple[int, Call]]:
        """The calls that have waited too long, with their ids."""
        for request_id in [id for id, call in self._calls.items() if call.deadline_ms <= now_ms]:
            call = self.take(request_id)
            if call is not None:
                yield request_id, call

    def failed(self, peer: Peer, now_ms: int, backoff_ms: int) -> None:
        """Leave the peer alone: for ``backoff_ms``, doubled with each failure in a row."""
        doublings = min(self._failures.get(peer.id, 0), MAX_BACKOFF_DOUBLINGS)
        self._failures[peer.id] = doublings + 1
        self._resting[peer.id] = now_ms + (backoff_ms << doublings)

    def succeeded(self, peer: Peer) -> None:
        """The peer answers."""
        if self._failures:
            self._failures.pop(peer.id, None)
            self._resting.pop(peer.id, None)

    def next_deadline_ms(self, now_ms: int) -> int | None:
        """When the next call has waited too long, or the next peer may be asked again."""
        if self._resting:
            self._resting = {id: until_ms for id, until_ms in self._resting.items() if until_ms > now_ms}
        deadlines = [call.deadline_ms for call in self._calls.values()]
        deadlines.extend(self._resting.values())
        return min(deadlines, default=None)
