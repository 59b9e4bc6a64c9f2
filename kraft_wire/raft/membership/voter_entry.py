"""VoterEntry (10004), an API of ours: a leader asks a voter for the entry that the voter wants to have.

Anybody can send an UpdateRaftVoter in a voter's name, and anybody may have a host name that leads to a
voter's address. Only the voter itself, where it is known, can say what is true.
"""

from __future__ import annotations

from typing import cast

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.own_messages.voter_entry_request import VoterEntryRequest
from kraft_wire.protocol.own_messages.voter_entry_response import Endpoint, VoterEntryResponse
from kraft_wire.raft.door.request_checks import is_other_cluster
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.membership.voters import ReplicaKey, VersionRange, Voter, endpoints_of
from kraft_wire.raft.quorum_state import QuorumState


def handle_voter_entry(quorum: QuorumState, rpc: RpcRequest) -> None:
    """Answer with this node's entry if the request is for this replica."""
    request, own = cast(VoterEntryRequest, rpc.request), quorum.config.voter
    if is_other_cluster(quorum, request.cluster_id):
        response = VoterEntryResponse(ErrorCode.INCONSISTENT_CLUSTER_ID)
    elif addressee_of(request) != own.key:
        response = VoterEntryResponse(ErrorCode.INVALID_VOTER_KEY)
    else:
        response = VoterEntryResponse(
            endpoints=[Endpoint(each.listener, each.host, each.port) for each in own.endpoints],
            min_kraft_version=own.kraft_versions.min_version,
            max_kraft_version=own.kraft_versions.max_version,
        )
    quorum.emit(Reply(rpc.token, response))


def entry_request(quorum: QuorumState, voter: ReplicaKey) -> VoterEntryRequest:
    """Return the question to a voter."""
    return VoterEntryRequest(quorum.config.cluster_id, voter.id, voter.directory_id)


def addressee_of(request: VoterEntryRequest) -> ReplicaKey:
    """Return the replica that is asked."""
    return ReplicaKey(request.voter_id, request.voter_directory_id)


def is_from_addressee(response: VoterEntryResponse) -> bool:
    """Whether the voter that was asked has answered."""
    return response.error_code not in (ErrorCode.INVALID_VOTER_KEY, ErrorCode.INCONSISTENT_CLUSTER_ID)


def entry_in(request: VoterEntryRequest, response: VoterEntryResponse) -> Voter | None:
    """Return the entry in an answer; None if it has an error."""
    if response.error_code:
        return None
    return Voter(
        addressee_of(request),
        endpoints_of((each.listener, each.host, each.port) for each in response.endpoints),
        VersionRange(response.min_kraft_version, response.max_kraft_version),
    )
