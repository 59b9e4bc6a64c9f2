"""The wires between machines, one each way for every pair: they delay, hold back, and keep nothing for long.

What a connection sends is retransmitted until it arrives, as TCP does it: loss is delay. What is sent into a
partition waits for its end.
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
    """How good the network is."""

    min_delay_us: int = 200
    max_delay_us: int = 2_000
    loss: float = 0.0


class Links:
    """Carries acts from machine to machine."""

    def __init__(self, scheduler: Scheduler, chance: random.Random, conditions: LinkConditions) -> None:
        self._scheduler = scheduler
        self._random = chance.random
        self.conditions = conditions
        self._blocked: dict[Pair, int] = {}
        self._held: dict[Pair, list[tuple[Callable[..., None], tuple[Any, ...]]]] = {}
        self._clogged_until_us: dict[Pair, int] = {}

    # Conditions.

    def block(self, pairs: Iterable[Pair]) -> None:
        """Nothing gets from the first to the second of each pair. Blocks add up."""
        for pair in pairs:
            self._blocked[pair] = self._blocked.get(pair, 0) + 1

    def unblock(self, pairs: Iterable[Pair]) -> None:
        for pair in pairs:
            count = self._blocked.get(pair, 0) - 1
            if count > 0:
                self._blocked[pair] = count
            elif count == 0:
                del self._blocked[pair]
                self._release(pair)

    def unblock_all(self) -> None:
        blocked, self._blocked = list(self._blocked), {}
        for pair in blocked:
            self._release(pair)
        self._clogged_until_us.clear()

    def is_blocked(self, pair: Pair) -> bool:
        return pair in self._blocked

    def clog(self, pair: Pair, until_us: int) -> None:
        """What is sent from now on arrives after ``until_us``."""
        self._clogged_until_us[pair] = until_us

    def _release(self, pair: Pair) -> None:
        for act, arguments in self._held.pop(pair, ()):
            self._scheduler.after(self.conditions.min_delay_us, self._arrive, pair, act, arguments)

    # Carrying.

    def carry(self, pair: Pair, not_before_us: int, act: Callable[..., None], *arguments: Any) -> int:
        """Have ``act`` happen at the other end; returns when, if nothing comes between."""
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
