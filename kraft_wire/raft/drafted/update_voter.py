"""Translate the drafted UpdateVoter (77), version 0: Kafka's UpdateRaftVoter (82).

In released Kafka key 77 is ShareGroupDescribe, which controllers don't serve.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.protocol.messages import update_raft_voter_request as own_request
from kraft_wire.protocol.messages import update_raft_voter_response as own_response
from kraft_wire.raft.drafted.alike import alike, all_alike
from kraft_wire.raft.membership.kip_853 import update_voter_request, update_voter_response
from kraft_wire.wire.dialect import Form


def _read_request(
    drafted: update_voter_request.UpdateVoterRequest, version: int
) -> own_request.UpdateRaftVoterRequest:
    return alike(
        own_request.UpdateRaftVoterRequest,
        drafted,
        voter_directory_id=drafted.voter_uuid,
        listeners=all_alike(own_request.Listener, drafted.listeners),
        kraft_version_feature=alike(own_request.KRaftVersionFeature, drafted.kraft_version_feature),
    )


def _write_request(own: own_request.UpdateRaftVoterRequest) -> update_voter_request.UpdateVoterRequest:
    return alike(
        update_voter_request.UpdateVoterRequest,
        own,
        voter_uuid=own.voter_directory_id,
        listeners=all_alike(update_voter_request.Listener, own.listeners),
        kraft_version_feature=alike(update_voter_request.KRaftVersionFeature, own.kraft_version_feature),
    )


def _read_response(
    drafted: update_voter_response.UpdateVoterResponse,
) -> own_response.UpdateRaftVoterResponse:
    leader = alike(
        own_response.CurrentLeader,
        drafted.current_leader,
        host=drafted.node_endpoint.host,
        port=drafted.node_endpoint.port,
    )
    return own_response.UpdateRaftVoterResponse(error_code=drafted.error_code, current_leader=leader)


def _write_response(own: own_response.UpdateRaftVoterResponse) -> update_voter_response.UpdateVoterResponse:
    leader = own.current_leader
    return update_voter_response.UpdateVoterResponse(
        error_code=own.error_code,
        current_leader=alike(update_voter_response.LeaderIdAndEpoch, leader),
        node_endpoint=alike(update_voter_response.NodeEndpoint, leader),
    )


UPDATE_VOTER: Final = Form(
    key=update_voter_request.UpdateVoterRequest.API_KEY,
    own_key=own_request.UpdateRaftVoterRequest.API_KEY,
    own_versions={0: 0},
    request_class=update_voter_request.UpdateVoterRequest,
    response_class=update_voter_response.UpdateVoterResponse,
    read_request=_read_request,
    write_request=_write_request,
    read_response=_read_response,
    write_response=_write_response,
)
