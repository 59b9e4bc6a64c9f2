"""Keep the pre-votes that this follower would reject only because it has not noticed yet that its leader is
gone.

A leader's end reaches all followers at about the same time, so a pre-vote for its successor may come first.
To reject that would cost an election. The answer waits a moment for the news instead.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from kraft_wire.raft.events import RpcRequest

DOUBT_MS: Final = 5


class Doubt(NamedTuple):
    """A pre-vote request that isn't answered yet, and the monotonic time at which it is in any case."""

    rpc: RpcRequest
    deadline_ms: int


class Doubts:
    """The pre-votes that wait, at most one of each candidate."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[int, Doubt] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, candidate_id: int, rpc: RpcRequest, now_ms: int) -> bool:
        """Let a pre-vote wait. Returns False if one of this candidate is waiting already."""
        if candidate_id in self._waiting:
            return False
        self._waiting[candidate_id] = Doubt(rpc, now_ms + DOUBT_MS)
        return True

    def abandon(self, token: Hashable) -> None:
        """Drop a pre-vote whose candidate has disconnected."""
        self._waiting = {id: doubt for id, doubt in self._waiting.items() if doubt.rpc.token != token}

    def take(self, is_settled: Callable[[Doubt], bool]) -> list[RpcRequest]:
        """Remove and return the pre-votes that need not wait any longer."""
        taken = {id: doubt for id, doubt in self._waiting.items() if is_settled(doubt)}
        for candidate_id in taken:
            del self._waiting[candidate_id]
        return [doubt.rpc for doubt in taken.values()]

    def next_deadline_ms(self) -> int | None:
        """Return the time at which the next pre-vote is answered in any case; None if none waits."""
        return min((doubt.deadline_ms for doubt in self._waiting.values()), default=None)
