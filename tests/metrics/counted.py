"""A whole node on a simulated disk, whose steps are counted."""

from __future__ import annotations

from typing import Any

import msgspec

from kraft_wire.controller.node.effects import NodeEffect
from kraft_wire.controller.node.node import NodeEvent
from kraft_wire.metrics.counts import Counts
from kraft_wire.metrics.process import DiskUse, Process, Value
from kraft_wire.metrics.readings import read
from kraft_wire.metrics.windows import Histogram
from kraft_wire.raft.election import elections
from kraft_wire.raft.events import Now
from kraft_wire.wire.traffic import Traffic
from tests.controller.lone_controller import Disk, LoneController


class CountedController(LoneController):
    """A controller with counts, from its first step on."""

    counts: Counts | None = None

    def step(self, event: NodeEvent) -> list[NodeEffect]:
        if self.counts is None:
            self.counts = Counts(self.node, self.now)
        effects = super().step(event)
        self.counts.stepped(event, effects, self.now)
        return effects

    @property
    def now(self) -> Now:
        return self._now()

    @property
    def counted(self) -> Counts:
        assert self.counts is not None, "it has started"
        return self.counts

    def values(self) -> dict[str, Value]:
        return read(self.node, self.counted, process(), self.now)


def process(**known: Any) -> Process:
    """Return a process that has done nothing but what is ``known``."""
    idle = Process(
        steps=Histogram((1,)),
        delays=Histogram((1,)),
        cpu_ms=0,
        traffic=Traffic(),
        disk=DiskUse(),
        warnings={},
        has_static_voters=False,
    )
    return msgspec.structs.replace(idle, **known)


def active(disk: Disk | None = None) -> CountedController:
    """Return a controller whose bootstrap is committed."""
    controller = CountedController(disk)
    controller.flush()
    controller.flush()
    return controller


def leaderless() -> CountedController:
    """Return a controller that has heard of a higher epoch and not acted on it."""
    controller = active()
    quorum = controller.node.core._quorum
    elections.become_unattached(quorum, quorum.epoch + 1)
    return controller
