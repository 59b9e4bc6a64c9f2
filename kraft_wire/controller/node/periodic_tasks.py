"""Schedule the periodic tasks of an active controller (Kafka's PeriodicTaskControlManager)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from kraft_wire.controller.brokers.fencing import check_period_ms, fence_one_stale_broker
from kraft_wire.controller.decision.context import Context, ControllerState, Round
from kraft_wire.controller.node.activation import no_op_record
from kraft_wire.controller.partitions.timed_elections import balance_leaders, elect_unclean_leaders
from kraft_wire.controller.settings import Settings
from kraft_wire.controller.tokens.expired_tokens import remove_expired_tokens

CONTINUE_AFTER_MS = 10
"""The delay before the next run of a task that did only a part of its work."""


class PeriodicTask(msgspec.Struct, frozen=True):
    """A named decision that is made every ``period_ms``."""

    name: str
    period_ms: int
    run: Callable[[ControllerState, Context], Round]


def periodic_tasks(settings: Settings) -> list[PeriodicTask]:
    """Return the tasks that ``settings`` enable (Kafka's QuorumController.register*)."""
    tasks = [
        PeriodicTask(
            "fence stale brokers", check_period_ms(settings.broker_session_timeout_ms), fence_one_stale_broker
        ),
        PeriodicTask(
            "elect unclean leaders", settings.unclean_leader_election_interval_ms, elect_unclean_leaders
        ),
    ]
    check_ms = settings.delegation_token_expiry_check_interval_ms
    tasks.append(PeriodicTask("remove expired tokens", check_ms, remove_expired_tokens))
    if settings.metadata_max_idle_interval_ms > 0:
        tasks.append(PeriodicTask("write a no-op", settings.metadata_max_idle_interval_ms, _write_no_op))
    if settings.auto_leader_rebalance_enable:
        period_ms = settings.leader_imbalance_check_interval_seconds * 1000
        tasks.append(PeriodicTask("balance leaders", period_ms, balance_leaders))
    return tasks


class Schedule:
    """The next run of each task. There are no runs while the controller is not active."""

    def __init__(self, tasks: Sequence[PeriodicTask]) -> None:
        self._tasks = {task.name: task for task in tasks}
        self._due_ms: dict[str, int] = {}
        self._next_ms: int | None = None

    def activate(self, now_ms: int) -> None:
        """Schedule every task for the first time, one period after ``now_ms``."""
        self._due_ms = {task.name: now_ms + task.period_ms for task in self._tasks.values()}
        self._find_next()

    def deactivate(self) -> None:
        """Run nothing until the next activation."""
        self._due_ms = {}
        self._find_next()

    def next_deadline_ms(self) -> int | None:
        """Return the time at which the next task is due."""
        return self._next_ms

    def take_due(self, now_ms: int) -> list[PeriodicTask]:
        """Return the tasks that are due, longest overdue first, and schedule each one period later."""
        names = sorted((due, name) for name, due in self._due_ms.items() if due <= now_ms)
        tasks = [self._tasks[name] for _, name in names]
        for task in tasks:
            self._due_ms[task.name] = now_ms + task.period_ms
        self._find_next()
        return tasks

    def continue_soon(self, task: PeriodicTask, now_ms: int) -> None:
        """Schedule ``task`` again soon, because it has more to do."""
        self._due_ms[task.name] = now_ms + CONTINUE_AFTER_MS
        self._find_next()

    def _find_next(self) -> None:
        self._next_ms = min(self._due_ms.values(), default=None)


def _write_no_op(state: ControllerState, context: Context) -> Round:
    """Move the end of the log, so that observers notice when they no longer follow it (KIP-835)."""
    return Round([no_op_record()])
