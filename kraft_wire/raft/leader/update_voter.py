"""Answer UpdateRaftVoter (82), version 0: a voter has other endpoints or supports other levels of
kraft.version (KIP-853; Kafka's UpdateVoterHandler).

With kraft.version 0 the log has no voters. Then the leader only remembers what its voters tell it: an upgrade
of kraft.version needs their directory ids.
"""

from __future__ import annotations

from typing import cast

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraft_wire.protocol.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse
from kraft_wire.raft.door.request_checks import is_other_cluster, leader_only_error
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.leader import append, voter_changes
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.membership.change import (
    ChangeRefused,
    check_endpoints,
    check_fenced,
    check_range,
    committed_voters,
    supports,
)
from kraft_wire.raft.membership.voters import (
    ReplicaKey,
    VersionRange,
    Voter,
    endpoint_at,
    endpoints_of,
)
from kraft_wire.raft.named_leader import named_leader
from kraft_wire.raft.quorum_state import QuorumState


def handle_update_voter(quorum: QuorumState, rpc: RpcRequest) -> None:
    """Append a voter's new entry. The voter is answered at once: it sees the record in the log."""
    error = ErrorCode.NONE
    try:
        _update(quorum, cast(UpdateRaftVoterRequest, rpc.request))
    except ChangeRefused as refused:
        error = refused.error
    leader = named_leader(quorum, rpc.listener, has_endpoints=True)
    current = CurrentLeader(leader_id=leader.id, leader_epoch=quorum.epoch)
    if leader.endpoint is not None:
        current.host, current.port = leader.endpoint.host, leader.endpoint.port
    quorum.emit(Reply(rpc.token, UpdateRaftVoterResponse(error_code=error, current_leader=current)))


def _update(quorum: QuorumState, request: UpdateRaftVoterRequest) -> None:
    """Check the request in Java's order, then change the entry. Raises ChangeRefused."""
    leadership = _check_asked(quorum, request)
    voter = _voter(quorum, request)
    voter_changes.check_none_pending(quorum)
    check_fenced(quorum.high_watermark)
    if quorum.history.kraft_version >= 1:
        _update_in_log(quorum, leadership, voter)
    else:
        _check_supports(quorum, voter)
        _remember(leadership, voter)
    leadership.note_contact(voter.key, quorum.now)


def _check_asked(quorum: QuorumState, request: UpdateRaftVoterRequest) -> Leadership:
    if is_other_cluster(quorum, request.cluster_id):
        raise ChangeRefused(ErrorCode.INCONSISTENT_CLUSTER_ID, "the request is for another cluster")
    error = leader_only_error(quorum, request.current_leader_epoch)
    if error or quorum.leadership is None:
        raise ChangeRefused(error, "this node does not lead that epoch")
    voter_changes.check_not_stopping(quorum)
    return quorum.leadership


def _voter(quorum: QuorumState, request: UpdateRaftVoterRequest) -> Voter:
    """Return the voter as it describes itself. Raises ChangeRefused(INVALID_REQUEST)."""
    feature = request.kraft_version_feature
    voter = Voter(
        ReplicaKey(request.voter_id, request.voter_directory_id),
        endpoints_of((each.name, each.host, each.port) for each in request.listeners),
        VersionRange(feature.min_supported_version, feature.max_supported_version),
    )
    if voter.key.id < 0 or not voter.key.directory_id:
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, "a voter needs a node id and a directory id")
    if voter.key.id == quorum.config.node_id:
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, "the leader itself keeps its entry up to date")
    check_endpoints(voter.endpoints)
    if endpoint_at(voter.endpoints, quorum.config.listener) is None:
        raise ChangeRefused(
            ErrorCode.INVALID_REQUEST, f"a voter needs an endpoint on listener {quorum.config.listener}"
        )
    check_range(voter)
    return voter


def _check_supports(quorum: QuorumState, voter: Voter) -> None:
    level = quorum.history.kraft_version
    if not supports(voter.kraft_versions, level):
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"{voter.key} does not support kraft.version {level}")


def _update_in_log(quorum: QuorumState, leadership: Leadership, voter: Voter) -> None:
    """Append the voters with this one's new entry, unless the log has it already."""
    voters = committed_voters(quorum.history, leadership.high_watermark)
    _check_supports(quorum, voter)
    try:
        changed = voters.with_updated(voter)
    except KeyError:
        raise ChangeRefused(ErrorCode.VOTER_NOT_FOUND, f"{voter.key} is not a voter") from None
    if changed != voters:
        append.append_voters(quorum, changed)


def _remember(leadership: Leadership, voter: Voter) -> None:
    try:
        leadership.static_voters = leadership.static_voters.with_learned_key(voter)
    except KeyError:
        raise ChangeRefused(ErrorCode.VOTER_NOT_FOUND, f"{voter.key} is not a voter") from None
