"""UnregisterBroker (64): forget a broker that will not come back. KIP-500.

The broker's replicas stay assigned to it; it leaves every ISR and ELR. A broker that is alive registers
again. Kafka requires ALTER on the cluster. Rules: ReplicationControlManager.unregisterBroker.
"""

from __future__ import annotations

from kraft_wire.controller import broker_changes
from kraft_wire.controller.context import Context, ControllerState, Result
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
    records = broker_changes.unregister(state, broker)
    state.sessions.remove(broker.id)
    return Result(UnregisterBrokerResponse(), records, atomic=False)


def error_response(
    request: UnregisterBrokerRequest, version: int, code: ErrorCode, message: str
) -> UnregisterBrokerResponse:
    """The code and the message."""
    return UnregisterBrokerResponse(error_code=int(code), error_message=message or None)
