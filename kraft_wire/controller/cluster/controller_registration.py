"""Serve ControllerRegistration (70): record the listeners and features of a controller. KIP-919.

Rules: ClusterControlManager.registerController.
"""

from __future__ import annotations

from kraft_wire.controller.brokers.registration_checks import check_feature_count, check_listeners
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.metadata.features import metadata_version
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
    """Register a controller. An earlier registration is replaced.

    Raises ApiError: UNSUPPORTED_VERSION below metadata.version 3.7-IV0, INVALID_REQUEST for an impossible id
    or listener.
    """
    level = state.metadata.features.metadata_version
    if not metadata_version.controller_registration_supported(level):
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"controllers register from metadata.version 15 on; it is {level}",
        )
    if request.controller_id < 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"controller id {request.controller_id} is negative")
    node = f"controller {request.controller_id}"
    check_feature_count(node, len(request.features), ErrorCode.INVALID_REQUEST)
    check_listeners(node, request.listeners, ErrorCode.INVALID_REQUEST)
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
