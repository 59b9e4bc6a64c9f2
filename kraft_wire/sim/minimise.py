"""Shrink a failing run: find a run that violates the same invariant with fewer faults, in less time, and with
simpler options."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from kraft_wire.controller.decision.work import SliceLimits
from kraft_wire.sim.machines.handler_cost import HandlerCost
from kraft_wire.sim.options import Options
from kraft_wire.sim.simulation import Result, simulate
from kraft_wire.sim.swarm import schedule_of, seconds_for

MAX_RUNS = 400
LEAST_SECONDS = 2

replace = msgspec.structs.replace


class Minimiser:
    """A search for a smaller run. ``best`` is the smallest one so far that violates the same invariant."""

    def __init__(
        self,
        failed: Result,
        run: Callable[[Options], Result] = simulate,
        report: Callable[[str], object] | None = None,
    ) -> None:
        if failed.violation is None:
            raise ValueError("a run without a violation can't be minimised")
        self.best = failed
        self.runs = 0
        self._run = run
        self._report = report

    def minimise(self) -> Result:
        """Shrink until nothing can be left out, or until ``MAX_RUNS`` runs are done."""
        self._cut_time()
        self._drop_faults()
        self._simplify()
        self._drop_faults()
        return self.best

    def _still_fails(self, options: Options) -> bool:
        """Whether a smaller run violates the same invariant. If so it becomes the best one."""
        if self.runs >= MAX_RUNS or options == self.best.options:
            return False
        self.runs += 1
        result = self._run(options)
        if result.invariant != self.best.invariant:
            return False
        self.best = result
        if self._report is not None:
            self._report(f"{len(schedule_of(options))} faults, {options.seconds} s: {result.violation}")
        return True

    # Time.

    def _cut_time(self) -> None:
        """Stop soon after the violation, or earlier: the start of the schedule doesn't depend on its end."""
        just_enough = seconds_for(int(self.best.simulated_seconds * 1000)) + 1
        if just_enough < self.best.options.seconds:
            self._still_fails(replace(self.best.options, seconds=just_enough))
        while (seconds := self.best.options.seconds * 3 // 4) >= LEAST_SECONDS:
            if not self._still_fails(replace(self.best.options, seconds=seconds)):
                break

    # Faults.

    def _drop_faults(self) -> None:
        """Leave out half of the faults, then quarters, and so on (Zeller's ddmin)."""
        numbers = tuple(fault.number for fault in schedule_of(self.best.options))
        parts = 2
        while numbers and self.runs < MAX_RUNS:
            remaining = self._without_some(numbers, parts)
            if remaining is not None:
                numbers, parts = remaining, max(2, parts - 1)
            elif parts >= len(numbers):
                break
            else:
                parts = min(len(numbers), 2 * parts)

    def _without_some(self, numbers: tuple[int, ...], parts: int) -> tuple[int, ...] | None:
        for remaining in _complements(numbers, parts):
            if self._still_fails(replace(self.best.options, only=remaining)):
                return remaining
        return None

    # Everything else.

    def _simplify(self) -> None:
        for simpler in _SIMPLER:
            self._still_fails(simpler(self.best.options))


def _complements(numbers: tuple[int, ...], parts: int) -> Iterator[tuple[int, ...]]:
    size = -(-len(numbers) // parts)
    for start in range(0, len(numbers), size):
        yield numbers[:start] + numbers[start + size :]


_SIMPLER: tuple[Callable[[Options], Options], ...] = (
    lambda options: replace(options, messages=replace(options.messages, on_the_wire=False)),
    lambda options: replace(options, messages=replace(options.messages, duplicate=0.0)),
    lambda options: replace(options, messages=replace(options.messages, reset=0.0)),
    lambda options: replace(options, link=replace(options.link, loss=0.0)),
    lambda options: replace(options, link=replace(options.link, max_delay_us=500)),
    lambda options: replace(options, drift_ppm=0),
    lambda options: replace(options, handlers=HandlerCost()),
    lambda options: replace(options, slices=SliceLimits()),
    lambda options: replace(options, brokers=min(1, options.brokers)),
    lambda options: replace(options, value_bytes=10),
    lambda options: replace(options, proposals_per_second=2),
    lambda options: replace(options, snapshot_interval_ms=10_000_000),
    lambda options: replace(options, retention_bytes=100_000_000),
    lambda options: replace(options, fetch_max_bytes=1024 * 1024),
    lambda options: replace(options, disk=replace(options.disk, max_us=200)),
)
