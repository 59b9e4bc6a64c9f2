"""Simulate the links between machines, one in each direction for every pair: they delay messages.

Messages are retransmitted until they arrive, as TCP does, so that loss is delay. Messages that are sent
during a network partition wait until it ends.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from kraft_wire.sim.scheduler import MS, Scheduler

RETRANSMISSION_US = 200 * MS
MAX_RETRANSMISSIONS = 5

Pair = tuple[int, int]


class LinkConditions(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """The delay and the loss of all links."""

    min_delay_us: int = 200
    max_delay_us: int = 2_000
    loss: float = 0.0


class Links:
    """All links. They carry calls from machine to machine."""

    def __init__(self, scheduler: Scheduler, chance: random.Random, conditions: LinkConditions) -> None:
        self._scheduler = scheduler
        self._random = chance.random
        self.conditions = conditions
        self._blocked: dict[Pair, int] = {}
        self._held: dict[Pair, list[tuple[Callable[..., None], tuple[Any, ...]]]] = {}
        self._clogged_until_us: dict[Pair, int] = {}

    # Conditions.

    def block(self, pairs: Iterable[Pair]) -> None:
        """Block the link from the first to the second node of each pair. A link may be blocked more than
        once."""
        for pair in pairs:
            self._blocked[pair] = self._blocked.get(pair, 0) + 1

    def unblock(self, pairs: Iterable[Pair]) -> None:
        """Remove one block of each pair's link."""
        for pair in pairs:
            count = self._blocked.get(pair, 0) - 1
            if count > 0:
                self._blocked[pair] = count
            elif count == 0:
                del self._blocked[pair]
                self._release(pair)

    def unblock_all(self) -> None:
        """Remove all blocks and delays."""
        blocked, self._blocked = list(self._blocked), {}
        for pair in blocked:
            self._release(pair)
        self._clogged_until_us.clear()

    def clog(self, pair: Pair, until_us: int) -> None:
        """Delay what is sent from now on until ``until_us`` or later."""
        self._clogged_until_us[pair] = until_us

    def _release(self, pair: Pair) -> None:
        for act, arguments in self._held.pop(pair, ()):
            self._scheduler.after(self.conditions.min_delay_us, self._arrive, pair, act, arguments)

    # Carrying.

    def carry(self, pair: Pair, not_before_us: int, act: Callable[..., None], *arguments: Any) -> int:
        """Call ``act`` at the other end. Return the time of arrival; a block or a clog may delay it
        further."""
        conditions = self.conditions
        share = self._random()
        delay_us = conditions.min_delay_us + int(share * share * conditions.max_delay_us)
        if conditions.loss and self._random() < conditions.loss:
            delay_us += self._retransmission_us(conditions.loss)
        at_us = max(self._scheduler.now_us + delay_us, not_before_us)
        if self._clogged_until_us:
            at_us = max(at_us, self._clogged_until_us.get(pair, 0))
        self._scheduler.at(at_us, self._arrive, pair, act, arguments)
        return at_us

    def _retransmission_us(self, loss: float) -> int:
        delay_us = RETRANSMISSION_US
        for doublings in range(1, MAX_RETRANSMISSIONS):
            if self._random() >= loss:
                break
            delay_us += RETRANSMISSION_US << doublings
        return delay_us

    def _arrive(self, pair: Pair, act: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if pair in self._blocked:
            self._held.setdefault(pair, []).append((act, arguments))
        else:
            act(*arguments)
