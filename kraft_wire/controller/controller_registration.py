"""ControllerRegistration (70): a controller tells the active one its listeners and features. KIP-919.

Kafka requires CLUSTER_ACTION on the cluster. Rules: ClusterControlManager.registerController.
"""

from __future__ import annotations

from kraft_wire.controller.context import Context, ControllerState, Result
from kraft_wire.controller.listener_checks import check_listeners
from kraft_wire.metadata import version as metadata_version
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from kraft_wire.protocol.messages.controller_registration_response import ControllerRegistrationResponse
from kraft_wire.protocol.messages.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)


def handle(
    state: ControllerState, request: ControllerRegistrationRequest, version: int, context: Context
) -> Result:
    """Register a controller, replacing what was known of it.

    Raises ApiError: UNSUPPORTED_VERSION below metadata.version 3.7-IV0, INVALID_REQUEST for an impossible
    listener.
    """
    level = state.metadata.features.metadata_version
    if not metadata_version.controller_registration_supported(level):
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"controllers don't register at metadata.version {level}, from 15 on they do",
        )
    check_listeners(f"controller {request.controller_id}", request.listeners, ErrorCode.INVALID_REQUEST)
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            ControllerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in request.listeners
        ],
        features=[
            ControllerFeature(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in request.features
        ],
    )
    record_version = metadata_version.register_controller_record_version(level)
    return Result(ControllerRegistrationResponse(), [(record, record_version)])


def error_response(
    request: ControllerRegistrationRequest, version: int, code: ErrorCode, message: str
) -> ControllerRegistrationResponse:
    """The code and the message."""
    return ControllerRegistrationResponse(error_code=int(code), error_message=message or None)
