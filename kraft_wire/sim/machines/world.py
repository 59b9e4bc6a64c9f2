"""Values that all machines of a simulation share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from kraft_wire.sim.checkers.checkers import Checkers
from kraft_wire.sim.network.connections import Network
from kraft_wire.sim.scheduler import Scheduler
from kraft_wire.sim.trace import Trace

if TYPE_CHECKING:
    from kraft_wire.sim.machines.node import SimNode


class DiskSpeed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The shortest and the longest time that a flush takes."""

    min_us: int = 100
    max_us: int = 4_000


class NextFlush(msgspec.Struct, frozen=True):
    """A flush during which the power is to fail: the next one, or the first one after the next truncation, if
    it begins before ``until_us``. It takes ``stall_us`` longer than it would. ``then`` is called when the
    power has failed."""

    until_us: int
    stall_us: int
    is_after_truncation: bool
    then: Callable[[SimNode], None]

    def is_due(self, now_us: int) -> bool:
        return not self.is_after_truncation and now_us < self.until_us


class World(msgspec.Struct):
    """The time, the network, the trace and the checkers of one run."""

    seed: int
    scheduler: Scheduler
    network: Network
    trace: Trace
    checkers: Checkers
