"""AdvertisedEndpoints (10004), an API of ours: a leader asks a voter where it says that it can be reached.

A voter that got another name for its address answers at both. Only the voter itself, where it is known, can
say that the new name is its own: anybody may have a name that leads to a voter's address.
"""

from __future__ import annotations

from typing import cast

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.own_messages.advertised_endpoints_request import AdvertisedEndpointsRequest
from kraft_wire.protocol.own_messages.advertised_endpoints_response import (
    AdvertisedEndpointsResponse,
    Endpoint,
)
from kraft_wire.raft.door.request_checks import is_other_cluster
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.membership.voters import Endpoints, ReplicaKey, endpoints_of
from kraft_wire.raft.quorum_state import QuorumState


def handle_advertised_endpoints(quorum: QuorumState, rpc: RpcRequest) -> None:
    """Tell the endpoints that this node advertises, if the request is for this replica."""
    request, config = cast(AdvertisedEndpointsRequest, rpc.request), quorum.config
    if is_other_cluster(quorum, request.cluster_id):
        response = AdvertisedEndpointsResponse(ErrorCode.INCONSISTENT_CLUSTER_ID)
    elif addressee_of(request) != config.replica_key:
        response = AdvertisedEndpointsResponse(ErrorCode.INVALID_VOTER_KEY)
    else:
        endpoints = [Endpoint(each.listener, each.host, each.port) for each in config.endpoints]
        response = AdvertisedEndpointsResponse(endpoints=endpoints)
    quorum.emit(Reply(rpc.token, response))


def advertised_request(quorum: QuorumState, voter: ReplicaKey) -> AdvertisedEndpointsRequest:
    """Return the question to a voter."""
    return AdvertisedEndpointsRequest(quorum.config.cluster_id, voter.id, voter.directory_id)


def addressee_of(request: AdvertisedEndpointsRequest) -> ReplicaKey:
    """Return the replica that is asked."""
    return ReplicaKey(request.voter_id, request.voter_directory_id)


def endpoints_in(response: AdvertisedEndpointsResponse) -> Endpoints:
    """Return the endpoints in an answer."""
    return endpoints_of((each.listener, each.host, each.port) for each in response.endpoints)
