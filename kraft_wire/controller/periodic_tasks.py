"""What an active controller does by the clock, and how often (Kafka's QuorumController.register*)."""

from __future__ import annotations

from kraft_wire.controller.activation import no_op_record
from kraft_wire.controller.context import Context, ControllerState
from kraft_wire.controller.fencing import check_period_ms, fence_one_stale_broker
from kraft_wire.controller.periodic import PeriodicTask, Round
from kraft_wire.controller.rebalance import balance_leaders, elect_unclean_leaders
from kraft_wire.controller.settings import Settings


def periodic_tasks(settings: Settings) -> list[PeriodicTask]:
    """The tasks that ``settings`` enable."""
    tasks = [
        PeriodicTask(
            "fence stale brokers", check_period_ms(settings.broker_session_timeout_ms), fence_one_stale_broker
        ),
        PeriodicTask(
            "elect unclean leaders", settings.unclean_leader_election_interval_ms, elect_unclean_leaders
        ),
    ]
    if settings.metadata_max_idle_interval_ms > 0:
        tasks.append(PeriodicTask("write a no-op", settings.metadata_max_idle_interval_ms, _no_op))
    if settings.auto_leader_rebalance_enable:
        period_ms = settings.leader_imbalance_check_interval_seconds * 1000
        tasks.append(PeriodicTask("balance leaders", period_ms, balance_leaders))
    return tasks


def _no_op(state: ControllerState, context: Context) -> Round:
    """Keeps the log's end moving, so that observers notice when they have stopped following (KIP-835)."""
    return Round([no_op_record()])
