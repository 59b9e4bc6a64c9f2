"""DescribeCluster (60) on a controller: the controllers, and which is active. KIP-700, KIP-919.

Admin clients that bootstrap from controllers start with it. The nodes are the registered controllers that
have the request's listener. Version 0 has no endpoint type; 2 asks for fenced brokers, which controllers are
never. Kafka requires ALTER on the cluster here (DESCRIBE on brokers). Rules:
AuthHelper.computeDescribeClusterResponse.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.controller.context import Context, ControllerState, Result
from kraft_wire.metadata import version as metadata_version
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)

BROKERS: Final = 1
CONTROLLERS: Final = 2
"""What the client wants to know about: the endpoint types of KIP-919."""

CLUSTER_OPERATIONS: Final = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
"""What a client may do to the cluster, one bit an AclOperation: CREATE, ALTER, DESCRIBE, CLUSTER_ACTION,
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE. All of them while there is no authorizer."""


def handle(state: ControllerState, request: DescribeClusterRequest, version: int, context: Context) -> Result:
    """List the controllers.

    Raises ApiError: UNSUPPORTED_VERSION below metadata.version 3.7-IV0, MISMATCHED_ENDPOINT_TYPE when asked
    for brokers, UNSUPPORTED_ENDPOINT_TYPE for anything else; at version 0 INVALID_REQUEST takes their place.
    """
    if not metadata_version.controller_registration_supported(state.metadata.features.metadata_version):
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION, "below metadata.version 3.7-IV0 admin clients talk to brokers only"
        )
    _check_endpoint_type(request.endpoint_type, version)
    nodes = controllers_on(state, context.listener)
    controller_id = state.leader_id if any(n.broker_id == state.leader_id for n in nodes) else -1
    response = DescribeClusterResponse(
        error_message=None,
        endpoint_type=CONTROLLERS,
        cluster_id=state.cluster_id,
        controller_id=controller_id,
        brokers=nodes,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return Result(response)


def error_response(
    request: DescribeClusterRequest, version: int, code: ErrorCode, message: str
) -> DescribeClusterResponse:
    """The code and the message."""
    return DescribeClusterResponse(error_code=int(code), error_message=message or None)


def controllers_on(state: ControllerState, listener: str) -> list[DescribeClusterBroker]:
    """The registered controllers that can be reached through a listener of this name, by id."""
    return [
        DescribeClusterBroker(broker_id=controller.id, host=endpoint.host, port=endpoint.port)
        for controller in sorted(state.metadata.controllers.values(), key=lambda controller: controller.id)
        for endpoint in controller.listeners
        if endpoint.name == listener
    ]


def _check_endpoint_type(endpoint_type: int, version: int) -> None:
    if endpoint_type == CONTROLLERS:
        return
    if endpoint_type == BROKERS:
        code, fault = ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this is a controller, not a broker"
    else:
        code, fault = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"there is no endpoint type {endpoint_type}"
    raise ApiError(code if version else ErrorCode.INVALID_REQUEST, fault)
