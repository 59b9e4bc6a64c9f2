"""Let votes wait that would be refused for a reason that may pass in a moment.

To refuse them would cost an election. The answer waits for news instead:

- A leader's end reaches all followers at about the same time, so a pre-vote for its successor may come first.
- The epoch of a vote may be higher than ours, and its candidate not be believed (``door/claims.py``). A known
  voter is asked for its epoch meanwhile. Java's candidates ignore the refusal and ask again without a pause,
  until the election times out: the wait is their pause.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.membership.voters import ReplicaKey

DOUBT_MS: Final = 5
RAISE_DOUBT_MS: Final = 100
MOST_WAITING: Final = 16
"""Anybody can ask under any name, and each step looks at all that wait. Further votes are decided at once,
except those of known voters."""


class Doubt(NamedTuple):
    """A vote request that isn't answered yet, and the monotonic time at which it is in any case."""

    rpc: RpcRequest
    deadline_ms: int


class Doubts:
    """The votes that wait: one of each known voter at most, and ``MOST_WAITING`` of others.

    A voter has its place by its id: static voters are known by nothing else, and whoever uses the id of one
    can give any directory id.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[ReplicaKey | int, Doubt] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(
        self, candidate: ReplicaKey, rpc: RpcRequest, now_ms: int, wait_ms: int, *, is_known: bool
    ) -> bool:
        """Let a vote wait for ``wait_ms``. Returns False if that is 0, if one of this candidate is waiting
        already, or if too many are: there is always room for one of each known voter."""
        place = candidate.id if is_known else candidate
        if not wait_ms or place in self._waiting:
            return False
        if not is_known and len(self._waiting) >= MOST_WAITING:
            return False
        self._waiting[place] = Doubt(rpc, now_ms + wait_ms)
        return True

    def abandon(self, token: Hashable) -> None:
        """Drop a vote whose candidate has disconnected."""
        self._waiting = {place: doubt for place, doubt in self._waiting.items() if doubt.rpc.token != token}

    def take(self, is_settled: Callable[[Doubt], bool]) -> list[RpcRequest]:
        """Remove and return the votes that need not wait any longer."""
        taken = {place: doubt for place, doubt in self._waiting.items() if is_settled(doubt)}
        for place in taken:
            del self._waiting[place]
        return [doubt.rpc for doubt in taken.values()]

    def next_deadline_ms(self) -> int | None:
        """Return the time at which the next vote is answered in any case; None if none waits."""
        return min((doubt.deadline_ms for doubt in self._waiting.values()), default=None)
