"""Remember for how long voters haven't answered at their addresses. Voters are named by their node ids."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from kraft_wire.wire.address import Address


class Silence(NamedTuple):
    """A voter that doesn't answer at its address.

    It is silent since ``since_ms``. The address that was named for it last is ``wanted``, at ``named_ms``. At
    ``rival_ms`` another one was named; None: never. All times are monotonic.
    """

    address: Address
    since_ms: int
    wanted: Address
    named_ms: int
    rival_ms: int | None = None

    def named(self, wanted: Address, now_ms: int) -> Silence:
        """Return the silence after an address was named."""
        rival_ms = self.rival_ms if wanted == self.wanted else self.named_ms
        return self._replace(wanted=wanted, named_ms=now_ms, rival_ms=rival_ms)


class VoterSilences:
    """The voters that were asked in vain."""

    __slots__ = ("_by_voter",)

    def __init__(self) -> None:
        self._by_voter: dict[int, Silence] = {}

    def note(self, voter_id: int, address: Address, wanted: Address, now_ms: int) -> Silence:
        """Note that a voter doesn't answer at its address, but at one that was named for it."""
        known = self._by_voter.get(voter_id)
        if known is None or known.address != address:
            silence = Silence(address, now_ms, wanted, now_ms)
        else:
            silence = known.named(wanted, now_ms)
        self._by_voter[voter_id] = silence
        return silence

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
