"""Who to ask next: what controllers have said about who leads, weighed. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kraft_wire.client.addresses import Address

NO_LEADER: Final = -1
FIRST_PAUSE_MS: Final = 50
MAX_PAUSE_MS: Final = 1000
_NEVER: Final = -1


class Step(NamedTuple):
    """Wait so long, then ask there."""

    address: Address
    pause_ms: int


class LeaderSearch:
    """Asks whom it takes for the leader; where there is none, or it didn't answer, each of the controllers in
    turn, and when all have been asked without success, all again after a pause that grows.

    ``epoch`` is the newest that anybody has named; requests to the leader carry it.
    """

    def __init__(self, bootstrap: Sequence[Address]) -> None:
        self.epoch = 0
        self.said: dict[Address, str] = {}
        self._candidates = list(bootstrap)
        self._by_id: dict[int, Address] = {}
        self._leader_id = NO_LEADER
        self._leader: Address | None = None
        self._asked_epochs: dict[Address, int] = {}
        self._rounds = 0

    def begin_with(self, leader: Address, epoch: int) -> None:
        """Somebody else has found this one."""
        self.epoch, self._leader = epoch, leader

    def next_step(self) -> Step:
        """Whom to ask now. Each answer is to be followed by ``succeeded`` or ``failed``."""
        pause_ms = 0
        address = self._unasked()
        if address is None:
            pause_ms = min(FIRST_PAUSE_MS << min(self._rounds, 16), MAX_PAUSE_MS)
            self._rounds += 1
            self._asked_epochs.clear()
            address = self._unasked()
        assert address is not None, "in a new round nobody has been asked"
        self._asked_epochs[address] = self.epoch
        return Step(address, pause_ms)

    def _unasked(self) -> Address | None:
        """Who hasn't been asked in this round, or only at an older epoch."""
        order = [self._leader, *self._candidates] if self._leader is not None else self._candidates
        return next((a for a in order if self._asked_epochs.get(a, _NEVER) < self.epoch), None)

    def succeeded(self, address: Address) -> None:
        """It answered as was needed, and is asked first from now on."""
        self._leader = address
        self.said.clear()
        self._asked_epochs.clear()
        self._rounds = 0

    def failed(self, address: Address, what: str) -> None:
        """It didn't answer, or with an error: ``what`` it said. It is asked last in the next round."""
        self.said[address] = what
        if address == self._leader:
            self._leader = None
        if address in self._candidates:
            self._candidates.remove(address)
            self._candidates.append(address)

    def heard(self, leader_id: int, epoch: int, address: Address | None = None) -> None:
        """Somebody says who leads. What is older than what is known counts for nothing."""
        if epoch < self.epoch or (epoch == self.epoch and leader_id == NO_LEADER):
            return
        self.epoch = epoch
        self._leader_id = leader_id
        if address is not None:
            self.know({leader_id: address})
        self._leader = self._by_id.get(leader_id)

    def know(self, controllers: Mapping[int, Address]) -> None:
        """Where controllers listen, beside those that were given."""
        self._by_id.update(controllers)
        for address in controllers.values():
            if address not in self._candidates:
                self._candidates.append(address)
        if self._leader is None:
            self._leader = self._by_id.get(self._leader_id)
