"""Track the requests in flight, and when a peer may be asked again (Kafka's RequestManager).

Each peer has two lanes with at most one request in flight each: one lane for Fetch and FetchSnapshot, which a
peer may answer late, and one for all other requests. After a failure the peer is not asked again at that
address for a backoff, which grows with each failure in a row.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.raft.membership.voters import Peer

FIRST_CLAIMED_ID: Final = -1_000_000
"""The ids of nodes that are asked because somebody said that they lead: this one minus the node's id."""

FIRST_QUESTIONED_ID: Final = -(1 << 40)
"""The ids from here downwards are of voters that are asked where they are (``leader/voter_questions``)."""

MAX_BACKOFF_DOUBLINGS: Final = 4
"""The backoff grows from 20 ms to 320 ms at most. Asking a dead peer costs little, and one that comes back is
noticed soon."""

MOST_PEERS: Final = 1000
"""The most peers that are remembered. There are as many if clients name nodes that don't answer."""


class Lane(enum.Enum):
    """One of the two lanes of a peer. A sender uses a connection for each."""

    CONTROL = "control"
    FETCH = "fetch"


def lane_of(request_type: type[Message]) -> Lane:
    """Return the lane of a kind of request: Fetch and FetchSnapshot have their own."""
    return Lane.FETCH if request_type in (FetchRequest, FetchSnapshotRequest) else Lane.CONTROL


def _slot(peer: Peer, request_type: type[Message]) -> tuple[int, Lane]:
    return peer.id, lane_of(request_type)


def _put_last(numbers: dict[Peer, int], peer: Peer, number: int) -> None:
    """Set a peer's number, and forget the peer that was set longest ago if there are too many."""
    numbers.pop(peer, None)
    numbers[peer] = number
    if len(numbers) > MOST_PEERS:
        del numbers[next(iter(numbers))]


class Call(msgspec.Struct, frozen=True):
    """A request in flight, and the epoch in which it was sent. ``is_search``: it is a Fetch that looks for
    the leader, from before the peer was known to lead. The peer may have answered before it led."""

    peer: Peer
    request: Message
    epoch: int
    deadline_ms: int
    is_search: bool = False


class Outgoing:
    """The requests in flight, by request id. All times are monotonic milliseconds."""

    __slots__ = ("_backoff_until_ms", "_calls", "_failures", "_in_flight", "_last_fetches", "_last_id")

    def __init__(self) -> None:
        self._last_id = 0
        self._calls: dict[int, Call] = {}
        self._in_flight: dict[tuple[int, Lane], int] = {}
        self._last_fetches: dict[Peer, int] = {}
        self._failures: dict[Peer, int] = {}
        self._backoff_until_ms: dict[Peer, int] = {}

    def is_ready(self, peer: Peer, request_type: type[Message], now_ms: int) -> bool:
        """Whether a request of this type can be sent to the peer now."""
        return _slot(peer, request_type) not in self._in_flight and not self.is_backing_off(peer, now_ms)

    def is_backing_off(self, peer: Peer, now_ms: int) -> bool:
        """Whether the peer failed recently and must not be asked yet."""
        until_ms = self._backoff_until_ms.get(peer)
        return until_ms is not None and now_ms < until_ms

    def is_fetching(self) -> bool:
        """Whether a Fetch or FetchSnapshot is in flight to any peer, except one because of a hint."""
        return any(lane is Lane.FETCH and id > FIRST_CLAIMED_ID for id, lane in self._in_flight)

    def begin(
        self, peer: Peer, request: Message, epoch: int, deadline_ms: int, *, is_search: bool = False
    ) -> int:
        """Register a request that is sent now and return its id."""
        self._last_id += 1
        self._calls[self._last_id] = Call(peer, request, epoch, deadline_ms, is_search)
        slot = _slot(peer, type(request))
        self._in_flight[slot] = self._last_id
        if slot[1] is Lane.FETCH and peer.id > FIRST_CLAIMED_ID:
            _put_last(self._last_fetches, peer, self._last_id)
        return self._last_id

    def longest_unasked(self, peers: Sequence[Peer]) -> list[Peer]:
        """Return those of the peers to which a Fetch was sent longest ago, or never. A node at another
        address is another peer: being asked at a wrong one doesn't keep it from being asked at the right
        one."""
        first = min((self._last_fetches.get(peer, 0) for peer in peers), default=0)
        return [peer for peer in peers if self._last_fetches.get(peer, 0) == first]

    def finish(self, request_id: int) -> Call | None:
        """Remove a call that has ended and return it; None if it was forgotten before."""
        call = self._calls.pop(request_id, None)
        if call is not None:
            slot = _slot(call.peer, type(call.request))
            if self._in_flight.get(slot) == request_id:
                del self._in_flight[slot]
        return call

    def forget_all(self, *, leader_id: int | None = None, keep_search_at: Peer | None = None) -> list[int]:
        """Forget all calls and backoffs, because the role that they belong to is over. A Fetch to the leader
        ``keep_search_at``, which was sent to this address to search for it, is kept.

        Returns the id of the fetch to ``leader_id``, the leader until now: it may answer late, and its
        connection is blocked until then. Other nodes answer at once that they don't lead.
        """
        fetches = {slot: id for slot, id in self._in_flight.items() if slot[1] is Lane.FETCH}
        kept = {slot: id for slot, id in fetches.items() if self._calls[id].peer == keep_search_at}
        self._calls = {id: msgspec.structs.replace(self._calls[id], is_search=True) for id in kept.values()}
        self._in_flight = kept
        self._failures.clear()
        self._backoff_until_ms.clear()
        return [id for slot, id in fetches.items() if slot[0] == leader_id]

    def take_expired(self, now_ms: int) -> Iterator[tuple[int, Call]]:
        """Remove the calls that are overdue, and yield them with their ids."""
        for request_id in [id for id, call in self._calls.items() if call.deadline_ms <= now_ms]:
            call = self.finish(request_id)
            if call is not None:
                yield request_id, call

    def failed(self, peer: Peer, now_ms: int, backoff_ms: int) -> None:
        """Back off from the peer for ``backoff_ms``, doubled with each failure in a row."""
        doublings = min(self._failures.get(peer, 0), MAX_BACKOFF_DOUBLINGS)
        _put_last(self._failures, peer, doublings + 1)
        self._backoff_until_ms[peer] = now_ms + (backoff_ms << doublings)

    def succeeded(self, peer: Peer) -> None:
        """End the peer's backoff, because it answers."""
        if self._failures:
            self._failures.pop(peer, None)
            self._backoff_until_ms.pop(peer, None)

    def next_deadline_ms(self, now_ms: int) -> int | None:
        """Return the time at which the next call is overdue or the next backoff ends; None if there is
        none."""
        if self._backoff_until_ms:
            self._backoff_until_ms = {
                peer: until_ms for peer, until_ms in self._backoff_until_ms.items() if until_ms > now_ms
            }
        deadlines = [call.deadline_ms for call in self._calls.values()]
        deadlines.extend(self._backoff_until_ms.values())
        return min(deadlines, default=None)
