"""Fence silent brokers, one in each run, so that the next decision sees the effect of the last.

Rules: ReplicationControlManager.maybeFenceOneStaleBroker, BrokerHeartbeatTracker.
"""

from __future__ import annotations

from kraft_wire.controller.brokers.broker_changes import fence
from kraft_wire.controller.decision.context import Context, ControllerState, Round
from kraft_wire.controller.decision.sessions import SessionEnded

CHECKS_PER_TIMEOUT = 8


def check_period_ms(session_timeout_ms: int) -> int:
    """Return the interval of the checks: a silent broker is fenced within 112.5 % of its session timeout."""
    return max(1, session_timeout_ms // CHECKS_PER_TIMEOUT)


def fence_one_stale_broker(state: ControllerState, context: Context) -> Round:
    """Fence the broker that is past its session timeout and has been silent for longest.

    ``more`` is set when other sessions have timed out as well.
    """
    stale = state.sessions.stale_brokers(context.monotonic_ms)
    ended: list[SessionEnded] = []
    for position, (broker_id, epoch) in enumerate(stale):
        ended.append(SessionEnded(broker_id))
        broker = state.metadata.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch or broker.fenced:
            continue
        change = fence(state, broker, context)
        return Round(
            change.records, more=position + 1 < len(stale), session_changes=ended, works=change.works
        )
    return Round(session_changes=ended)
