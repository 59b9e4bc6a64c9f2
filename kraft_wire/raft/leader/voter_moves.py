"""Doubt a voter that moves again and again: anybody can send UpdateRaftVoter in its name.

A voter may move once, and back. If somebody else has moved it, it moves back as soon as it sees that in the
log. After that its address changes only if it doesn't answer at the present one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kraft_wire.raft.membership.voters import Endpoint

REMEMBERED_MS: Final = 10 * 60 * 1000


class _Home(NamedTuple):
    """Where a voter was before it moved, and the (monotonic) time until which that is remembered."""

    endpoint: Endpoint
    until_ms: int


class VoterMoves:
    """Where the voters were, by node id. All endpoints are those on the controller listener."""

    __slots__ = ("_homes",)

    def __init__(self) -> None:
        self._homes: dict[int, _Home] = {}

    def is_doubtful(self, voter_id: int, wanted: Endpoint, now_ms: int) -> bool:
        """Whether a voter has moved lately, and ``wanted`` isn't where it was before."""
        home = self._homes.get(voter_id)
        return home is not None and now_ms < home.until_ms and wanted != home.endpoint

    def note(self, voter_id: int, home: Endpoint, now_ms: int) -> None:
        """Note that a voter moves, and may return to ``home``. An earlier home is kept while it is
        remembered."""
        known = self._homes.get(voter_id)
        if known is None or now_ms >= known.until_ms:
            self._homes[voter_id] = _Home(home, now_ms + REMEMBERED_MS)

    def settle(self, voter_id: int, home: Endpoint, now_ms: int) -> None:
        """Note that a voter has left its address for certain: it doesn't answer there."""
        self._homes[voter_id] = _Home(home, now_ms + REMEMBERED_MS)
