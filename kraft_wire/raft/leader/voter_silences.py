"""Remember for how long voters haven't answered at their addresses. Voters are named by their node ids."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from kraft_wire.wire.address import Address


class _Silence(NamedTuple):
    """The address at which a voter is silent, where it wants to be instead, since when it is silent, and when
    it was last asked (monotonic)."""

    address: Address
    wanted: Address
    since_ms: int
    asked_ms: int


class VoterSilences:
    """The voters that were asked in vain."""

    __slots__ = ("_by_voter",)

    def __init__(self) -> None:
        self._by_voter: dict[int, _Silence] = {}

    def note(self, voter_id: int, address: Address, wanted: Address, now_ms: int, *, within_ms: int) -> int:
        """Note that a voter doesn't answer at an address, but where it wants to be. Returns for how long that
        has been so, in ms.

        If the last question was more than ``within_ms`` ago, a new silence begins: the voter may have been
        there meanwhile. So it does if the voter was said to be elsewhere.
        """
        known = self._by_voter.get(voter_id)
        since_ms = now_ms
        if known is not None and (known.address, known.wanted) == (address, wanted):
            since_ms = known.since_ms if now_ms - known.asked_ms <= within_ms else now_ms
        self._by_voter[voter_id] = _Silence(address, wanted, since_ms, now_ms)
        return now_ms - since_ms

    def is_silent(self, voter_id: int) -> bool:
        """Whether a voter was asked in vain, and hasn't answered since."""
        return voter_id in self._by_voter

    def end(self, voter_id: int) -> None:
        """Note that a voter answers."""
        self._by_voter.pop(voter_id, None)

    def answered(self, voter_id: int, address: Address) -> None:
        """Note that a voter answers at an address: it isn't silent there."""
        known = self._by_voter.get(voter_id)
        if known is not None and known.address == address:
            self.end(voter_id)

    def keep(self, voter_ids: Collection[int]) -> None:
        """Forget all nodes but these."""
        self._by_voter = {id: silence for id, silence in self._by_voter.items() if id in voter_ids}
