"""AllocateProducerIds (67): a broker gets a block of 1,000 producer ids that nobody else ever gets. KIP-730.

Kafka requires CLUSTER_ACTION on the cluster. Rules: ProducerIdControlManager.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.controller.cluster_view import check_broker_epoch
from kraft_wire.controller.context import Context, ControllerState, Result
from kraft_wire.metadata.producer_ids import BLOCK_SIZE
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraft_wire.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from kraft_wire.protocol.messages.producer_ids_record import ProducerIdsRecord

MAX_PRODUCER_ID: Final = (1 << 63) - 1


def handle(
    state: ControllerState, request: AllocateProducerIdsRequest, version: int, context: Context
) -> Result:
    """Allocate the next block. Raises ApiError(STALE_BROKER_EPOCH), and UNKNOWN_SERVER_ERROR when none is
    left."""
    broker = check_broker_epoch(state, request.broker_id, request.broker_epoch)
    first = state.metadata.producer_ids.next_producer_id
    if first > MAX_PRODUCER_ID - BLOCK_SIZE:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"producer ids are used up: the next is {first}, the last {MAX_PRODUCER_ID}",
        )
    record = ProducerIdsRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, next_producer_id=first + BLOCK_SIZE
    )
    response = AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    return Result(response, [(record, 0)])


def error_response(
    request: AllocateProducerIdsRequest, version: int, code: ErrorCode, message: str
) -> AllocateProducerIdsResponse:
    """Only the code has a place in the response."""
    return AllocateProducerIdsResponse(error_code=int(code))
