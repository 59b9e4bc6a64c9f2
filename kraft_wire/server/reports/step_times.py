"""Measure the steps of the event loop: while one runs, everybody waits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import trio

from kraft_wire.controller.node.effects import NodeEffect, RecordsAppended
from kraft_wire.controller.node.events import ApiRequest
from kraft_wire.controller.node.node import NodeEvent
from kraft_wire.protocol.registry import api_name
from kraft_wire.raft.events import RpcRequest
from kraft_wire.server.logging import get_logger

log = get_logger(__name__)

BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Upper bounds of the histogram's classes; the last class has none."""
SLOW_MS: Final = 100
REPORT_SECONDS: Final = 3600


class StepTimes:
    """A histogram of the time that steps take, with their effects. ``counts`` has one more class than
    BOUNDS_MS."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_MS) + 1)
        self.longest_ms = 0.0
        self.total_ms = 0.0

    def note(self, event: NodeEvent, effects: Sequence[NodeEffect], took_ms: float) -> None:
        """Count a step, and warn if it was slow."""
        self.counts[bisect_left(BOUNDS_MS, took_ms)] += 1
        self.longest_ms = max(self.longest_ms, took_ms)
        self.total_ms += took_ms
        if took_ms > SLOW_MS:
            log.warning(
                "slow step", took_ms=round(took_ms), event_name=_name(event), records=_appended(effects)
            )

    async def report_regularly(self) -> None:
        """Log the histogram every hour."""
        while True:
            await trio.sleep(REPORT_SECONDS)
            self.report()

    def report(self) -> None:
        """Log the histogram of all steps so far: the number of steps up to each bound."""
        classes = {f"to_{bound}_ms": count for bound, count in zip(BOUNDS_MS, self.counts, strict=False)}
        log.info("step duration", **classes, above=self.counts[-1], longest_ms=round(self.longest_ms, 1))


def _name(event: NodeEvent) -> str:
    match event:
        case ApiRequest(api_key=api_key):
            return api_name(api_key)
        case RpcRequest(request=request):
            return api_name(request.API_KEY)
        case _:
            return type(event).__name__


def _appended(effects: Sequence[NodeEffect]) -> int:
    return sum(len(effect.records) for effect in effects if isinstance(effect, RecordsAppended))
