"""Keep the hints about a new leader that are being followed up (``follow_hints``)."""

from __future__ import annotations

from typing import Final, NamedTuple

from kraft_wire.raft.membership.voters import Endpoints
from kraft_wire.raft.waiting import earlier

MOST_HINTS: Final = 4
"""Anybody can name any leader. The voters come on top."""
KEPT_MS: Final = 2000
ASK_AGAIN_MS: Final = 50


class Hint(NamedTuple):
    """A node is said to lead this epoch, at these endpoints. The times are monotonic."""

    epoch: int
    endpoints: Endpoints
    until_ms: int
    ask_at_ms: int


class Hints:
    """The hints that are being followed up, by the id of the leader. There are only a few."""

    __slots__ = ("_by_leader",)

    def __init__(self) -> None:
        self._by_leader: dict[int, Hint] = {}

    def __len__(self) -> int:
        return len(self._by_leader)

    def add(self, leader_id: int, epoch: int, endpoints: Endpoints, now_ms: int, *, is_voter: bool) -> None:
        """Note a hint. One about the same leader replaces the one before it. There is always room for one
        about a voter."""
        known = self._by_leader.get(leader_id)
        if known is None and not is_voter and len(self._by_leader) >= MOST_HINTS:
            return
        ask_at_ms = now_ms if known is None else known.ask_at_ms
        self._by_leader[leader_id] = Hint(epoch, endpoints, now_ms + KEPT_MS, ask_at_ms)

    def asked(self, leader_id: int, now_ms: int) -> None:
        """Note that a leader is asked now."""
        hint = self._by_leader[leader_id]
        self._by_leader[leader_id] = hint._replace(ask_at_ms=now_ms + ASK_AGAIN_MS)

    def drop_settled(self, epoch: int, now_ms: int, *, has_leader: bool) -> None:
        """Forget the hints that are too old, or from which a node in ``epoch`` can learn nothing more."""
        lowest = epoch + has_leader
        self._by_leader = {
            leader_id: hint
            for leader_id, hint in self._by_leader.items()
            if now_ms < hint.until_ms and hint.epoch >= lowest
        }

    def due(self, now_ms: int) -> list[tuple[int, Hint]]:
        """Return the hints that are to be followed up now."""
        return [(leader_id, hint) for leader_id, hint in self._by_leader.items() if hint.ask_at_ms <= now_ms]

    def next_deadline_ms(self, now_ms: int) -> int | None:
        """Return when the next hint is due or too old; None if there is none."""
        deadline_ms: int | None = None
        for hint in self._by_leader.values():
            deadline_ms = earlier(deadline_ms, hint.ask_at_ms if hint.ask_at_ms > now_ms else hint.until_ms)
        return deadline_ms
