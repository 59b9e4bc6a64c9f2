"""Serve UnregisterBroker (64): remove a broker that will not come back. KIP-500.

The broker's replicas stay assigned to it, and it leaves every ISR. It leaves the ELRs when it registers again
and may have lost records. A broker that is still running registers again. Rules:
ReplicationControlManager.unregisterBroker.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kraft_wire.controller.brokers.leaving import BrokerLeaving
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.sessions import BrokerUnregistered
from kraft_wire.controller.decision.work import Piece, WorkKind
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from kraft_wire.protocol.messages.unregister_broker_response import UnregisterBrokerResponse

if TYPE_CHECKING:
    from kraft_wire.metadata.brokers import BrokerRegistration


def handle(
    state: ControllerState, request: UnregisterBrokerRequest, version: int, context: Context
) -> Result:
    """Remove the registration. Raises ApiError(BROKER_ID_NOT_REGISTERED)."""
    _registration(state, request.broker_id)
    work = BrokerLeaving(WorkKind.UNREGISTER, request.broker_id, partial(_unregister, request.broker_id))
    return Result.of_work(work, state, context)


def _unregister(broker_id: int, state: ControllerState, context: Context, count: int) -> Piece:
    broker = _registration(state, broker_id)
    record = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return Piece([(record, 0)], True, [BrokerUnregistered(broker.id)], UnregisterBrokerResponse())


def _registration(state: ControllerState, broker_id: int) -> BrokerRegistration:
    broker = state.metadata.brokers.get(broker_id)
    if broker is None:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {broker_id} is not registered")
    return broker
