"""Serve UnregisterBroker (64): remove a broker that will not come back. KIP-500.

The broker's replicas stay assigned to it; it leaves every ISR and ELR. A broker that is still running
registers again. Rules: ReplicationControlManager.unregisterBroker.
"""

from __future__ import annotations

from kraft_wire.controller.brokers import broker_changes
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.sessions import BrokerUnregistered
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from kraft_wire.protocol.messages.unregister_broker_response import UnregisterBrokerResponse


def handle(
    state: ControllerState, request: UnregisterBrokerRequest, version: int, context: Context
) -> Result:
    """Remove the registration. Raises ApiError(BROKER_ID_NOT_REGISTERED)."""
    broker = state.metadata.brokers.get(request.broker_id)
    if broker is None:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {request.broker_id} is not registered")
    return Result(
        UnregisterBrokerResponse(),
        broker_changes.unregister(state, broker),
        atomic=False,
        session_changes=[BrokerUnregistered(broker.id)],
    )
