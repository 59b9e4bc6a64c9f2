"""Keep the votes that this node would refuse only because it doesn't know yet whether a leader is at work.

A leader's end reaches all followers at about the same time, so a pre-vote for its successor may come first.
A node that has just started asks a candidate for its epoch, and believes only the answer
(``door/claims.py``). To refuse a vote then would cost an election. The answer waits a moment for the news
instead.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from kraft_wire.raft.events import RpcRequest

DOUBT_MS: Final = 5
START_DOUBT_MS: Final = 100


class Doubt(NamedTuple):
    """A vote request that isn't answered yet, and the monotonic time at which it is in any case."""

    rpc: RpcRequest
    deadline_ms: int


class Doubts:
    """The votes that wait, at most one of each candidate."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[int, Doubt] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, candidate_id: int, rpc: RpcRequest, now_ms: int, wait_ms: int) -> bool:
        """Let a vote wait for ``wait_ms``. Returns False if that is 0, or one of this candidate is waiting
        already."""
        if not wait_ms or candidate_id in self._waiting:
            return False
        self._waiting[candidate_id] = Doubt(rpc, now_ms + wait_ms)
        return True

    def abandon(self, token: Hashable) -> None:
        """Drop a vote whose candidate has disconnected."""
        self._waiting = {id: doubt for id, doubt in self._waiting.items() if doubt.rpc.token != token}

    def take(self, is_settled: Callable[[Doubt], bool]) -> list[RpcRequest]:
        """Remove and return the votes that need not wait any longer."""
        taken = {id: doubt for id, doubt in self._waiting.items() if is_settled(doubt)}
        for candidate_id in taken:
            del self._waiting[candidate_id]
        return [doubt.rpc for doubt in taken.values()]

    def next_deadline_ms(self) -> int | None:
        """Return the time at which the next vote is answered in any case; None if none waits."""
        return min((doubt.deadline_ms for doubt in self._waiting.values()), default=None)
