"""Remember which addresses voters have left, and where they are silent: anybody can send UpdateRaftVoter in a
voter's name.

All times are monotonic milliseconds. A voter is named by its node id.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from kraft_wire.wire.address import Address

REMEMBERED_MS: Final = 10 * 60 * 1000
MOST_ADDRESSES: Final = 4
"""Of one voter: those that it left first."""


class _Left(NamedTuple):
    """An address that a voter has left, and when."""

    address: Address
    at_ms: int


class _Silence(NamedTuple):
    """The address at which a voter is silent, and since when."""

    address: Address
    since_ms: int


class VoterAddresses:
    """The addresses that voters have left within the last ten minutes, and where they are silent now.

    A voter that comes back to one of them hasn't left any address after that.
    """

    __slots__ = ("_left", "_silences")

    def __init__(self) -> None:
        self._left: dict[int, list[_Left]] = {}
        self._silences: dict[int, _Silence] = {}

    def note_move(self, voter_id: int, present: Address, wanted: Address, now_ms: int) -> None:
        """Note that a voter moves."""
        left = self._remembered(voter_id, now_ms)
        before = [each.address for each in left]
        if wanted in before:
            left = left[: before.index(wanted)]
        elif len(left) < MOST_ADDRESSES:
            left.append(_Left(present, now_ms))
        self._left[voter_id] = left
        self._silences.pop(voter_id, None)

    def may_return(self, voter_id: int, address: Address, now_ms: int) -> bool:
        """Whether a voter was at an address before."""
        return any(each.address == address for each in self._remembered(voter_id, now_ms))

    def note_silence(self, voter_id: int, address: Address, now_ms: int) -> int:
        """Note that a voter doesn't answer at an address. Returns for how long it hasn't."""
        silence = self._silences.get(voter_id)
        if silence is None or silence.address != address:
            silence = self._silences[voter_id] = _Silence(address, now_ms)
        return now_ms - silence.since_ms

    def end_silence(self, voter_id: int) -> None:
        """Note that a voter answers where it is."""
        self._silences.pop(voter_id, None)

    def keep(self, voter_ids: Collection[int]) -> None:
        """Forget all nodes but these."""
        for voter_id in [known for known in {*self._left, *self._silences} if known not in voter_ids]:
            self._left.pop(voter_id, None)
            self._silences.pop(voter_id, None)

    def _remembered(self, voter_id: int, now_ms: int) -> list[_Left]:
        since_ms = now_ms - REMEMBERED_MS
        return [each for each in self._left.get(voter_id, ()) if each.at_ms > since_ms]
