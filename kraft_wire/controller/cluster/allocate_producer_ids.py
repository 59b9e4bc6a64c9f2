"""Serve AllocateProducerIds (67): give a broker a block of 1,000 producer ids. KIP-730.

No id is given out twice. Rules: ProducerIdControlManager.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.partitions.cluster_view import check_broker_epoch
from kraft_wire.metadata.producer_ids import BLOCK_SIZE
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraft_wire.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from kraft_wire.protocol.messages.producer_ids_record import ProducerIdsRecord

MAX_PRODUCER_ID: Final = (1 << 63) - 1


def handle(
    state: ControllerState, request: AllocateProducerIdsRequest, version: int, context: Context
) -> Result:
    """Allocate the next block.

    Raises ApiError: STALE_BROKER_EPOCH, and UNKNOWN_SERVER_ERROR when no block is left.
    """
    broker = check_broker_epoch(state, request.broker_id, request.broker_epoch)
    first = state.metadata.producer_ids.next_producer_id
    if first > MAX_PRODUCER_ID - BLOCK_SIZE:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"no producer ids are left: the next is {first}, the last {MAX_PRODUCER_ID}",
        )
    record = ProducerIdsRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, next_producer_id=first + BLOCK_SIZE
    )
    response = AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    return Result(response, [(record, 0)])
