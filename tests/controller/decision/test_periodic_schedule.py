"""The schedule of periodic tasks."""

from __future__ import annotations

from kraft_wire.controller.decision.context import Context, ControllerState, Round
from kraft_wire.controller.node.periodic_tasks import CONTINUE_AFTER_MS, PeriodicTask, Schedule


def _idle(state: ControllerState, context: Context) -> Round:
    return Round()


def _schedule() -> Schedule:
    return Schedule([PeriodicTask("fast", 100, _idle), PeriodicTask("slow", 1000, _idle)])


def _names(schedule: Schedule, now_ms: int) -> list[str]:
    return [task.name for task in schedule.take_due(now_ms)]


def test_nothing_runs_before_activation() -> None:
    schedule = _schedule()
    assert schedule.next_deadline_ms() is None
    assert _names(schedule, 10**9) == []


def test_each_task_runs_one_period_after_activation_and_then_every_period() -> None:
    schedule = _schedule()
    schedule.activate(5)
    assert schedule.next_deadline_ms() == 105
    assert _names(schedule, 104) == []
    assert _names(schedule, 105) == ["fast"]
    assert _names(schedule, 204) == []
    assert _names(schedule, 1005) == ["fast", "slow"]


def test_the_longest_overdue_runs_first() -> None:
    schedule = Schedule([PeriodicTask("late", 20, _idle), PeriodicTask("later", 10, _idle)])
    schedule.activate(0)
    assert _names(schedule, 30) == ["later", "late"]


def test_unfinished_work_continues_soon() -> None:
    schedule = _schedule()
    schedule.activate(0)
    (task,) = schedule.take_due(100)
    schedule.continue_soon(task, 100)
    assert schedule.next_deadline_ms() == 100 + CONTINUE_AFTER_MS


def test_nothing_runs_after_deactivation() -> None:
    schedule = _schedule()
    schedule.activate(0)
    schedule.deactivate()
    assert _names(schedule, 10**9) == []
