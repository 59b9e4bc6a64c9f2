"""Fencing of brokers that have fallen silent: one a pass, so that the next decision sees the effect of the
last.

Source: ReplicationControlManager.maybeFenceOneStaleBroker, BrokerHeartbeatTracker.
"""

from __future__ import annotations

from kraft_wire.controller.broker_changes import fence
from kraft_wire.controller.context import Context, ControllerState
from kraft_wire.controller.periodic import Round

CHECKS_PER_TIMEOUT = 8


def check_period_ms(session_timeout_ms: int) -> int:
    """How often to look: a silent broker is fenced within 112.5 % of its session timeout."""
    return max(1, session_timeout_ms // CHECKS_PER_TIMEOUT)


def fence_one_stale_broker(state: ControllerState, context: Context) -> Round:
    """Fence the broker that has been silent the longest, if any is past the session timeout.

    ``more`` says that another one waits.
    """
    stale = state.sessions.stale_brokers(context.monotonic_ms)
    for position, (broker_id, epoch) in enumerate(stale):
        state.sessions.expire(broker_id)
        broker = state.metadata.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch or broker.fenced:
            continue
        return Round(fence(state, broker), more=position + 1 < len(stale))
    return Round()
