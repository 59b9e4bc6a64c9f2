"""Serve ExporterPositions (10000): tell a follower how far the exporters of the active controller have come.

Kafka has no such API. Followers keep the positions, so that the next active controller goes on there.
"""

from __future__ import annotations

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.own_messages.exporter_positions_request import ExporterPositionsRequest
from kraft_wire.protocol.own_messages.exporter_positions_response import ExporterPositionsResponse, Position


def handle(
    state: ControllerState, request: ExporterPositionsRequest, version: int, context: Context
) -> Result:
    """List the positions. Raises ApiError(INCONSISTENT_CLUSTER_ID) for a node of another cluster."""
    if request.cluster_id not in (None, state.cluster_id):
        raise ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"this is cluster {state.cluster_id}, and the request is of {request.cluster_id}",
        )
    positions = [Position(exporter, offset) for exporter, offset in state.exporter_positions.items()]
    return Result(ExporterPositionsResponse(positions=positions), shown_end=0)
