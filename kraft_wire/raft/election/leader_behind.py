"""Remember a leader of an earlier epoch that a voter has heard of, and when a request may be sent to it."""

from __future__ import annotations

from typing import NamedTuple

from kraft_wire.raft.membership.voters import Peer


class EarlierLeader(NamedTuple):
    """The address of a leader, and the epoch that it leads."""

    peer: Peer
    epoch: int


class LeaderBehind:
    """The last leader of an earlier epoch that an answer named. All times are monotonic milliseconds."""

    __slots__ = ("_leader", "_next_ms")

    def __init__(self) -> None:
        self._leader: EarlierLeader | None = None
        self._next_ms = 0

    def note(self, peer: Peer, epoch: int) -> None:
        """Note that this node leads this epoch."""
        self._leader = EarlierLeader(peer, epoch)

    def due(self, now_ms: int) -> EarlierLeader | None:
        """Return the leader if a request may be sent to it now."""
        return self._leader if now_ms >= self._next_ms else None

    def note_sent(self, next_ms: int) -> None:
        """Note that a request was sent to the leader. It has to be named again before the next one."""
        self._leader, self._next_ms = None, next_ms
