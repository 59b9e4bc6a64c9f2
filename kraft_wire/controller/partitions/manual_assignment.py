"""Check the brokers that a client chose for a partition's replicas (ReplicationControlManager)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kraft_wire.controller.decision.context import ControllerState

_SHOWN: Final = 20


def shown(broker_ids: Sequence[int]) -> str:
    """Return the text about an assignment, which may be very long, in an error message."""
    first = ", ".join(map(str, broker_ids[:_SHOWN]))
    return f"[{first}]" if len(broker_ids) <= _SHOWN else f"[{first}, ...]"


def why_not_assignable(state: ControllerState, broker_ids: Sequence[int]) -> str | None:
    """Return what is wrong with an assignment, as the rest of a sentence about it; None if nothing is.

    The brokers must be registered and distinct, and have a log directory that is not cordoned (since 4.4).
    """
    if not broker_ids:
        return "names no broker"
    if len(broker_ids) > len(state.metadata.brokers):
        return f"names {len(broker_ids)} brokers, and {len(state.metadata.brokers)} are registered"
    for broker_id in broker_ids:
        registration = state.metadata.brokers.get(broker_id)
        if registration is None:
            return f"names broker {broker_id}, which is not registered"
        if registration.is_cordoned:
            return f"names broker {broker_id}, which has only cordoned log directories"
    if len(set(broker_ids)) != len(broker_ids):
        return "names a broker more than once"
    return None
