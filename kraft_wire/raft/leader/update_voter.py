"""Answer UpdateRaftVoter (82), version 0: a voter has other endpoints or supports other levels of
kraft.version (KIP-853; Kafka's UpdateVoterHandler).

With kraft.version 0 the log has no voters. Then the leader only remembers what its voters tell it: an upgrade
of kraft.version needs their directory ids.

Anybody can send this request in a voter's name. So a directory id counts after the voter has answered to it,
at its static address. A voter that has moved, and not back, is asked before it moves again (``voter_moves``).
"""

from __future__ import annotations

from typing import cast

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraft_wire.protocol.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse
from kraft_wire.raft.door.request_checks import is_other_cluster, leader_only_error
from kraft_wire.raft.effects import MoveRefused, Reply
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.leader import append, voter_changes
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.leader.voter_questions import VoterQuestion
from kraft_wire.raft.membership.change import (
    ChangeRefused,
    check_endpoints,
    check_fenced,
    check_range,
    committed_voters,
    supports,
)
from kraft_wire.raft.membership.voters import (
    Endpoint,
    Peer,
    ReplicaKey,
    VersionRange,
    Voter,
    endpoint_at,
    endpoints_of,
    is_at,
)
from kraft_wire.raft.named_leader import named_leader
from kraft_wire.raft.peers import voter_peer
from kraft_wire.raft.quorum_state import QuorumState


def handle_update_voter(quorum: QuorumState, rpc: RpcRequest) -> None:
    """Change a voter's entry. The voter is answered at once: it sees the record in the log. If the request is
    doubtful, the voter itself is asked first."""
    try:
        leadership, voter = _check(quorum, cast(UpdateRaftVoterRequest, rpc.request))
        if _is_doubtful(quorum, leadership, voter):
            _question(quorum, voter, rpc)
        else:
            _take(quorum, leadership, voter)
            _reply(quorum, rpc, ErrorCode.NONE)
    except ChangeRefused as refused:
        _reply(quorum, rpc, refused.error)


def _reply(quorum: QuorumState, rpc: RpcRequest, error: ErrorCode) -> None:
    leader = named_leader(quorum, rpc.listener, has_endpoints=True)
    current = CurrentLeader(leader_id=leader.id, leader_epoch=quorum.epoch)
    if leader.endpoint is not None:
        current.host, current.port = leader.endpoint.host, leader.endpoint.port
    quorum.emit(Reply(rpc.token, UpdateRaftVoterResponse(error_code=error, current_leader=current)))


# The checks, in Java's order. All of them raise ChangeRefused.


def _check(quorum: QuorumState, request: UpdateRaftVoterRequest) -> tuple[Leadership, Voter]:
    """Return the state of this leader, and the voter as the request describes it."""
    leadership = _check_asked(quorum, request)
    voter = _voter(quorum, request)
    _check_changeable(quorum, leadership, voter)
    return leadership, voter


def _check_asked(quorum: QuorumState, request: UpdateRaftVoterRequest) -> Leadership:
    if is_other_cluster(quorum, request.cluster_id):
        raise ChangeRefused(ErrorCode.INCONSISTENT_CLUSTER_ID, "the request is for another cluster")
    error = leader_only_error(quorum, request.current_leader_epoch)
    if error or quorum.leadership is None:
        raise ChangeRefused(error, "this node does not lead that epoch")
    voter_changes.check_not_stopping(quorum)
    return quorum.leadership


def _voter(quorum: QuorumState, request: UpdateRaftVoterRequest) -> Voter:
    """Return the voter as it describes itself."""
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


def _check_changeable(quorum: QuorumState, leadership: Leadership, voter: Voter) -> None:
    """Check that this voter's entry may change now."""
    voter_changes.check_none_pending(quorum)
    check_fenced(quorum.high_watermark)
    level = quorum.history.kraft_version
    voters = leadership.static_voters
    if level >= 1:
        voters = committed_voters(quorum.history, leadership.high_watermark)
    if not supports(voter.kraft_versions, level):
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"{voter.key} does not support kraft.version {level}")
    known = voters.get(voter.key.id)
    if known is None or (level >= 1 and not known.key.matches(voter.key)):
        raise ChangeRefused(ErrorCode.VOTER_NOT_FOUND, f"{voter.key} is not a voter")


# Doubt.


def _is_doubtful(quorum: QuorumState, leadership: Leadership, voter: Voter) -> bool:
    """Whether the voter itself has to be asked. With kraft.version 0, whether the directory id is its own;
    else, whether it has left its address, if it has moved lately (``voter_moves``)."""
    if quorum.history.kraft_version < 1:
        known = leadership.static_voters.get(voter.key.id)
        return known is None or known.key != voter.key
    here, wanted = _present(quorum, voter), endpoint_at(voter.endpoints, quorum.config.listener)
    if here is None or wanted is None or is_at(voter.endpoints, here):
        return False
    return leadership.moves.is_doubtful(voter.key.id, wanted, quorum.now.monotonic_ms)


def _present(quorum: QuorumState, voter: Voter) -> Endpoint | None:
    """Return where the log has the voter."""
    return endpoint_at(quorum.history.voters.endpoints_of(voter.key.id), quorum.config.listener)


def _question(quorum: QuorumState, voter: Voter, rpc: RpcRequest) -> None:
    """Let the request wait for the voter's answer at its known address (``leader_notices`` asks)."""
    if voter.key.id in quorum.voter_questions:
        raise ChangeRefused(ErrorCode.REQUEST_TIMED_OUT, f"{voter.key} is being asked already: try again")
    quorum.voter_questions.begin(VoterQuestion(voter, rpc))


def settle_question(quorum: QuorumState, asked: ReplicaKey, at: Peer, *, is_there: bool) -> None:
    """Change the entry that waits for an answer, or refuse to. ``is_there``: the voter that was asked has
    answered."""
    leadership = quorum.leadership
    if leadership is None or at != voter_peer(quorum, asked.id):
        return
    question = quorum.voter_questions.end(asked)
    if question is None:
        return
    error = ErrorCode.NONE
    try:
        _check_changeable(quorum, leadership, question.voter)
        _check_answer(quorum, question.voter, is_there=is_there)
        _take(quorum, leadership, question.voter)
        _note_home(quorum, leadership, question.voter)
    except ChangeRefused as refused:
        error = refused.error
    if question.rpc is not None:
        _reply(quorum, question.rpc, error)


def _check_answer(quorum: QuorumState, voter: Voter, *, is_there: bool) -> None:
    """Raise ChangeRefused if the voter's answer shows that the request isn't its own."""
    if quorum.history.kraft_version < 1:
        if not is_there:
            raise ChangeRefused(ErrorCode.REQUEST_TIMED_OUT, f"{voter.key} does not answer at its address")
    elif is_there:
        here = _present(quorum, voter)
        if here is not None and quorum.refused_moves.may_report(quorum.now.monotonic_ms):
            quorum.emit(MoveRefused(voter.key, here, voter.endpoints))
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"{voter.key} still answers at its present address")


def _note_home(quorum: QuorumState, leadership: Leadership, voter: Voter) -> None:
    """Note that a voter has left its former address for certain."""
    home = endpoint_at(voter.endpoints, quorum.config.listener)
    if home is not None and quorum.history.kraft_version >= 1:
        leadership.moves.settle(voter.key.id, home, quorum.now.monotonic_ms)


def end_questions(quorum: QuorumState) -> None:
    """Answer the requests that wait for a voter's answer which doesn't count any more."""
    questions = quorum.voter_questions
    if not questions:
        return
    if quorum.leadership is None:
        for question in questions.end_all():
            _refuse(quorum, question, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return
    for question in questions.end_others(quorum.leadership.voters):
        _refuse(quorum, question, ErrorCode.VOTER_NOT_FOUND)


def _refuse(quorum: QuorumState, question: VoterQuestion, error: ErrorCode) -> None:
    if question.rpc is not None:
        _reply(quorum, question.rpc, error)


# The change.


def _take(quorum: QuorumState, leadership: Leadership, voter: Voter) -> None:
    if quorum.history.kraft_version >= 1:
        _update_in_log(quorum, leadership, voter)
    else:
        leadership.static_voters = leadership.static_voters.with_learned_key(voter)
    leadership.note_contact(voter.key, quorum.now)


def _update_in_log(quorum: QuorumState, leadership: Leadership, voter: Voter) -> None:
    """Append the voters with this one's new entry, unless the log has it already."""
    changed = quorum.history.voters.with_updated(voter)
    if changed == quorum.history.voters:
        return
    here = _present(quorum, voter)
    if here is not None and not is_at(voter.endpoints, here):
        leadership.moves.note(voter.key.id, here, quorum.now.monotonic_ms)
    append.append_voters(quorum, changed)
