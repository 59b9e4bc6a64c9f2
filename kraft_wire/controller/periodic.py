"""Work that an active controller does by the clock (Kafka's PeriodicTaskControlManager)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from kraft_wire.controller.context import Context, ControllerState, VersionedRecord

CONTINUE_AFTER_MS = 10
"""How soon a task that did only a part of its work goes on with the rest."""


class Round(msgspec.Struct, frozen=True):
    """What one run of a task decided; ``more`` when there is work left for a run soon after."""

    records: Sequence[VersionedRecord] = ()
    more: bool = False


class PeriodicTask(msgspec.Struct, frozen=True):
    """A named decision that is made every ``period_ms``."""

    name: str
    period_ms: int
    run: Callable[[ControllerState, Context], Round]


class Schedule:
    """Which task runs when. Empty deadlines while the controller is not active."""

    def __init__(self, tasks: Sequence[PeriodicTask]) -> None:
        self._tasks = {task.name: task for task in tasks}
        self._due_ms: dict[str, int] = {}

    def activate(self, now_ms: int) -> None:
        """Every task runs for the first time one period from now."""
        self._due_ms = {task.name: now_ms + task.period_ms for task in self._tasks.values()}

    def deactivate(self) -> None:
        """Nothing runs until the next activation."""
        self._due_ms = {}

    def next_deadline_ms(self) -> int | None:
        """When the next task is due."""
        return min(self._due_ms.values(), default=None)

    def take_due(self, now_ms: int) -> list[PeriodicTask]:
        """The tasks that are due, longest overdue first; each is scheduled one period on."""
        names = sorted((due, name) for name, due in self._due_ms.items() if due <= now_ms)
        tasks = [self._tasks[name] for _, name in names]
        for task in tasks:
            self._due_ms[task.name] = now_ms + task.period_ms
        return tasks

    def continue_soon(self, task: PeriodicTask, now_ms: int) -> None:
        """``task`` has more to do."""
        self._due_ms[task.name] = now_ms + CONTINUE_AFTER_MS
