"""Serve UnregisterController (94): remove the registration of a controller that will not come back.

A controller that is still running registers again. Rules: ClusterControlManager.unregisterController, Kafka
4.4.
"""

from __future__ import annotations

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.metadata.features import metadata_version
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.unregister_controller_record import UnregisterControllerRecord
from kraft_wire.protocol.messages.unregister_controller_request import UnregisterControllerRequest
from kraft_wire.protocol.messages.unregister_controller_response import UnregisterControllerResponse


def handle(
    state: ControllerState, request: UnregisterControllerRequest, version: int, context: Context
) -> Result:
    """Remove the registration.

    Raises ApiError: INVALID_REQUEST for the active controller, UNSUPPORTED_VERSION below metadata.version 33,
    CONTROLLER_ID_NOT_REGISTERED.
    """
    controller_id, level = request.controller_id, state.metadata.features.metadata_version
    if controller_id == state.node_id:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"controller {controller_id} is the active one, and can't be unregistered: stop it first",
        )
    if not metadata_version.unregister_controller_supported(level):
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"controllers can be unregistered from metadata.version 33 on; it is {level}",
        )
    if controller_id not in state.metadata.controllers:
        raise ApiError(
            ErrorCode.CONTROLLER_ID_NOT_REGISTERED, f"controller {controller_id} is not registered"
        )
    record = UnregisterControllerRecord(controller_id=controller_id)
    return Result(UnregisterControllerResponse(error_message=None), [(record, 0)])
