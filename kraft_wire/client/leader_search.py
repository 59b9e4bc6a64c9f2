"""Decide which controller to ask next, by their answers about the leader. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kraft_wire.wire.address import Address

NO_LEADER: Final = -1
FIRST_PAUSE_MS: Final = 50
MAX_PAUSE_MS: Final = 1000
_NEVER: Final = -1


class Step(NamedTuple):
    """The controller to ask after a pause."""

    address: Address
    pause_ms: int


class LeaderSearch:
    """The search for the leader.

    The presumed leader is asked first. If there is none, or it fails, each controller is asked once; then all
    are asked again, after a pause that grows from round to round. ``epoch`` is the newest that any controller
    named; requests to the leader carry it. ``problems`` has the last problem of each controller.
    """

    def __init__(self, bootstrap: Sequence[Address]) -> None:
        self.epoch = 0
        self.problems: dict[Address, str] = {}
        self._candidates = list(bootstrap)
        self._by_id: dict[int, Address] = {}
        self._leader_id = NO_LEADER
        self._leader: Address | None = None
        self._asked_epochs: dict[Address, int] = {}
        self._rounds = 0

    def begin_with(self, leader: Address, epoch: int) -> None:
        """Presume a leader that another search found."""
        self.epoch, self._leader = epoch, leader

    def next_step(self) -> Step:
        """Return the controller to ask now. Report the outcome by ``succeeded`` or ``failed``."""
        pause_ms = 0
        address = self._unasked()
        if address is None:
            pause_ms = min(FIRST_PAUSE_MS << min(self._rounds, 16), MAX_PAUSE_MS)
            self._rounds += 1
            self._asked_epochs.clear()
            address = self._unasked()
        assert address is not None, "a new round has candidates"
        self._asked_epochs[address] = self.epoch
        return Step(address, pause_ms)

    def _unasked(self) -> Address | None:
        """Return a controller that wasn't asked in this round, or only at an older epoch."""
        order = [self._leader, *self._candidates] if self._leader is not None else self._candidates
        return next((a for a in order if self._asked_epochs.get(a, _NEVER) < self.epoch), None)

    def succeeded(self, address: Address) -> None:
        """Take note that a controller gave the wanted answer: it is asked first from now on."""
        self._leader = address
        self.problems.clear()
        self._asked_epochs.clear()
        self._rounds = 0

    def failed(self, address: Address, problem: str) -> None:
        """Take note that a controller didn't answer, or with an error. It is asked last in the next round."""
        self.problems[address] = problem
        if address == self._leader:
            self._leader = None
        if address in self._candidates:
            self._candidates.remove(address)
            self._candidates.append(address)

    def learn_leader(self, leader_id: int, epoch: int, address: Address | None = None) -> None:
        """Take note of a leader that a controller named, unless its epoch is older than the known one."""
        if epoch < self.epoch or (epoch == self.epoch and leader_id == NO_LEADER):
            return
        self.epoch = epoch
        self._leader_id = leader_id
        if address is not None:
            self.learn_controllers({leader_id: address})
        self._leader = self._by_id.get(leader_id)

    def learn_controllers(self, controllers: Mapping[int, Address]) -> None:
        """Take note of controllers' addresses by node id. New ones become candidates."""
        self._by_id.update(controllers)
        for address in controllers.values():
            if address not in self._candidates:
                self._candidates.append(address)
        if self._leader is None:
            self._leader = self._by_id.get(self._leader_id)
