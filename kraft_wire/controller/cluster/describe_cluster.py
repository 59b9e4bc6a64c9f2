"""Serve DescribeCluster (60): list the controllers and name the active one. KIP-700, KIP-919.

Admin clients with bootstrap controllers send it first. The nodes are the registered controllers that have the
request's listener. Version 1 adds the endpoint type; 2 can ask for fenced brokers, and controllers are never
fenced. Kafka requires ALTER on the cluster from a controller's client, DESCRIBE from a broker's. Rules:
AuthHelper.computeDescribeClusterResponse.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.metadata.features import metadata_version
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from kraft_wire.security.authorization import CLUSTER, AclOperation

BROKERS: Final = 1
CONTROLLERS: Final = 2
"""The endpoint types of KIP-919."""

CLUSTER_OPERATIONS: Final = (
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
    AclOperation.IDEMPOTENT_WRITE,
)
"""The operations that exist on the cluster (AclEntry.supportedOperations)."""


def handle(state: ControllerState, request: DescribeClusterRequest, version: int, context: Context) -> Result:
    """List the controllers.

    Raises ApiError: UNSUPPORTED_VERSION below metadata.version 3.7-IV0, MISMATCHED_ENDPOINT_TYPE for brokers,
    UNSUPPORTED_ENDPOINT_TYPE for any other type; in version 0 INVALID_REQUEST takes the place of both.
    """
    if not metadata_version.controller_registration_supported(state.metadata.features.metadata_version):
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION, "below metadata.version 3.7-IV0 admin clients use brokers only"
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
        response.cluster_authorized_operations = _authorized_operations(context)
    metadata = state.metadata
    return Result(response, shown_end=max(metadata.controllers_changed_end, metadata.features.epoch + 1))


def controllers_on(state: ControllerState, listener: str) -> list[DescribeClusterBroker]:
    """Return the registered controllers that have a listener of this name, by id."""
    return [
        DescribeClusterBroker(broker_id=controller.id, host=endpoint.host, port=endpoint.port)
        for controller in sorted(state.metadata.controllers.values(), key=lambda controller: controller.id)
        for endpoint in controller.listeners
        if endpoint.name == listener
    ]


def _authorized_operations(context: Context) -> int:
    """Return the client's permissions on the cluster, one bit for each AclOperation; 0 without DESCRIBE."""
    if not context.may(AclOperation.DESCRIBE, CLUSTER):
        return 0
    return sum(1 << operation for operation in CLUSTER_OPERATIONS if context.may(operation, CLUSTER))


def _check_endpoint_type(endpoint_type: int, version: int) -> None:
    if endpoint_type == CONTROLLERS:
        return
    if endpoint_type == BROKERS:
        code, fault = ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this node is a controller, not a broker"
    else:
        code, fault = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"there is no endpoint type {endpoint_type}"
    raise ApiError(code if version else ErrorCode.INVALID_REQUEST, fault)
