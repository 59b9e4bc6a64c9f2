"""Serve ExporterPositions (10000): tell how far the exporters of the active controller, or of an observer,
have come.

Kafka has no such API. Followers keep the positions, so that the next active controller goes on there.
"""

from __future__ import annotations

from kraft_wire.configs.exporter_orders import Orders, orders_in
from kraft_wire.controller.decision.context import Context, ControllerState, ExporterRow, Result
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.own_messages.exporter_positions_request import ExporterPositionsRequest
from kraft_wire.protocol.own_messages.exporter_positions_response import ExporterPositionsResponse, Position

NO_POSITION = -1


def handle(
    state: ControllerState, request: ExporterPositionsRequest, version: int, context: Context
) -> Result:
    """List the exporters. Raises ApiError(INCONSISTENT_CLUSTER_ID) for a node of another cluster."""
    if request.cluster_id not in (None, state.cluster_id):
        raise ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"this is cluster {state.cluster_id}, and the request is of {request.cluster_id}",
        )
    orders = orders_in(state.metadata.configs.get(ResourceType.BROKER, ""))
    positions = [_position(row, orders.get(row.name, Orders())) for row in state.list_exporters()]
    return Result(ExporterPositionsResponse(positions=positions), shown_end=0)


def _position(row: ExporterRow, orders: Orders) -> Position:
    return Position(
        exporter=row.name,
        next_offset=NO_POSITION if row.position is None else row.position,
        reset=row.reset,
        paused=orders.is_paused,
        failures_in_a_row=row.failures_in_a_row,
    )
