"""Check the brokers that a client chose for a partition's replicas (ReplicationControlManager)."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.controller.decision.context import ControllerState


def why_not_assignable(state: ControllerState, broker_ids: Sequence[int]) -> str | None:
    """Return what is wrong with an assignment, as the rest of a sentence about it; None if nothing is.

    The brokers must be registered and distinct, and have a log directory that is not cordoned (since 4.4).
    """
    if not broker_ids:
        return "names no broker"
    for broker_id in broker_ids:
        registration = state.metadata.brokers.get(broker_id)
        if registration is None:
            return f"names broker {broker_id}, which is not registered"
        if not registration.has_uncordoned_directory:
            return f"names broker {broker_id}, which has only cordoned log directories"
    if len(set(broker_ids)) != len(broker_ids):
        return "names a broker more than once"
    return None
