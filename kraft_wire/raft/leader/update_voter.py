"""Answer UpdateRaftVoter (82), version 0: a voter has other endpoints or supports other levels of
kraft.version (KIP-853; Kafka's UpdateVoterHandler).

With kraft.version 0 the log has no voters. Then the leader only remembers what its voters tell it: an upgrade
of kraft.version needs their directory ids.

Anybody can send this request in a voter's name, and whoever is at a voter's address is taken for it. So a
voter that wants another address, or another directory id, is asked first (``voter_questions``):

- It must be at the address that it wants.
- It must have been silent at its present address for some fetch timeouts.
- With kraft.version 0 it must be at its static address, and answer to the directory id.

Java's leaders ask nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraft_wire.protocol.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse
from kraft_wire.raft.door.request_checks import is_other_cluster, leader_only_error
from kraft_wire.raft.effects import MoveRefused, Reply
from kraft_wire.raft.events import Failure, RpcRequest
from kraft_wire.raft.leader import append, voter_changes
from kraft_wire.raft.leader.announcement import begin_request, is_from_addressee
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.leader.voter_questions import MOST_WAITING, VoterQuestion
from kraft_wire.raft.membership.change import (
    ChangeRefused,
    check_endpoints,
    check_fenced,
    check_range,
    committed_voters,
    supports,
)
from kraft_wire.raft.membership.voters import (
    Endpoints,
    ReplicaKey,
    VersionRange,
    Voter,
    endpoint_at,
    endpoints_of,
)
from kraft_wire.raft.named_leader import named_leader
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.wire.address import Address

SILENT_TIMEOUTS: Final = 5
"""The fetch timeouts for which a voter must be silent at an address before it can be moved away from there:
longer than a restart takes."""
TIMEOUTS_BETWEEN_QUESTIONS: Final = 3
"""A voter asks for its new address once in a fetch timeout, and the question may take as long."""


def handle_update_voter(quorum: QuorumState, rpc: RpcRequest) -> None:
    """Append a voter's new entry. The voter is answered at once, as it sees the record in the log; if it has
    to be asked first, after that."""
    try:
        leadership, voter = _check(quorum, cast(UpdateRaftVoterRequest, rpc.request))
        addresses = _addresses_to_ask(quorum, leadership, voter)
        if addresses:
            _question(quorum, voter, rpc, addresses)
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
    if _address(quorum, voter.endpoints) is None:
        raise ChangeRefused(
            ErrorCode.INVALID_REQUEST, f"a voter needs an endpoint on listener {quorum.config.listener}"
        )
    check_range(voter)
    return voter


def _check_changeable(quorum: QuorumState, leadership: Leadership, voter: Voter) -> Voter:
    """Check that this voter's entry may change now. Returns the present one."""
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
    return known


# The question.


def _address(quorum: QuorumState, endpoints: Endpoints) -> Address | None:
    """Return a voter's address on the controller listener."""
    endpoint = endpoint_at(endpoints, quorum.config.listener)
    return None if endpoint is None else Address(endpoint.host, endpoint.port)


def _addresses_to_ask(quorum: QuorumState, leadership: Leadership, voter: Voter) -> tuple[Address, ...]:
    """Return where the voter has to be asked; nothing if it needn't be."""
    known = _check_changeable(quorum, leadership, voter)
    present, wanted = _address(quorum, known.endpoints), _address(quorum, voter.endpoints)
    assert wanted is not None, "it was checked"
    if known.key == voter.key and present == wanted:
        return ()
    return (wanted,) if present in (None, wanted) else (wanted, present)


def _question(quorum: QuorumState, voter: Voter, rpc: RpcRequest, addresses: Iterable[Address]) -> None:
    """Let the request wait for the voter's answers. Raises ChangeRefused if too many wait."""
    open_one = quorum.voter_questions.find(voter)
    if open_one is not None and len(open_one.rpcs) < MOST_WAITING:
        open_one.rpcs.append(rpc)
    elif open_one is not None or not quorum.voter_questions.has_room(voter.key.id):
        raise ChangeRefused(ErrorCode.REQUEST_TIMED_OUT, f"{voter.key} is being asked already: try again")
    else:
        for peer in quorum.voter_questions.begin(voter, rpc, addresses).answers:
            quorum.send(peer, begin_request(quorum, voter.key))


def handle_answer(quorum: QuorumState, call: Call, response: BeginQuorumEpochResponse) -> None:
    """Note whether the voter is at an address where it was asked."""
    _note_answer(quorum, call, is_there=is_from_addressee(response))


def handle_no_answer(quorum: QuorumState, call: Call, failure: Failure) -> None:
    """Note that the voter can't be reached at an address."""
    _note_answer(quorum, call, is_there=False)


def _note_answer(quorum: QuorumState, call: Call, *, is_there: bool) -> None:
    """Change the voter's entry after the last answer, or refuse to."""
    question = quorum.voter_questions.answered(call.peer, is_there=is_there)
    if question is None or quorum.leadership is None:
        return
    error = ErrorCode.NONE
    try:
        voter_changes.check_not_stopping(quorum)
        _check_answers(quorum, quorum.leadership, question)
        _take(quorum, quorum.leadership, question.voter)
    except ChangeRefused as refused:
        error = refused.error
    for rpc in question.rpcs:
        _reply(quorum, rpc, error)


def _check_answers(quorum: QuorumState, leadership: Leadership, question: VoterQuestion) -> None:
    """Raise ChangeRefused if the answers don't show that the voter is where it is said to be."""
    voter = question.voter
    known = _check_changeable(quorum, leadership, voter)
    present, wanted = _address(quorum, known.endpoints), _address(quorum, voter.endpoints)
    assert wanted is not None, "it was checked"
    if not question.is_there(wanted):
        _report(quorum, MoveRefused(voter.key, present, wanted, is_at_present=False))
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"{voter.key} does not answer at {wanted}")
    if present in (None, wanted):
        return
    if known.key != voter.key:
        _check_static_address(question, present)
    else:
        _check_left(quorum, leadership, question, present, wanted)


def _check_static_address(question: VoterQuestion, present: Address) -> None:
    """Check that a voter of kraft.version 0 answers to its directory id."""
    if not question.is_there(present):
        raise ChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT, f"{question.voter.key} does not answer at {present}: try again"
        )


def _check_left(
    quorum: QuorumState, leadership: Leadership, question: VoterQuestion, present: Address, wanted: Address
) -> None:
    """Check that a voter has been silent at its present address for long enough."""
    key = question.voter.key
    if question.is_there(present):
        leadership.silences.end(key.id)
        _report(quorum, MoveRefused(key, present, wanted, is_at_present=True))
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"{key} still answers at {present}")
    timeout_ms, now_ms = quorum.config.fetch_timeout_ms, quorum.now.monotonic_ms
    silent_ms = leadership.silences.note(
        key.id, present, now_ms, within_ms=TIMEOUTS_BETWEEN_QUESTIONS * timeout_ms
    )
    if silent_ms < SILENT_TIMEOUTS * timeout_ms:
        raise ChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT, f"{key} has been silent at {present} for {silent_ms} ms: try again"
        )


def _report(quorum: QuorumState, refusal: MoveRefused) -> None:
    if quorum.refused_moves.take(quorum.now.monotonic_ms):
        quorum.emit(refusal)


def end_questions(quorum: QuorumState) -> None:
    """Answer the requests that wait for nothing any more: this node doesn't lead, or their voter is none."""
    if not quorum.voter_questions:
        return
    leadership = quorum.leadership
    ids = () if leadership is None else leadership.voters.keys()
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER if leadership is None else ErrorCode.VOTER_NOT_FOUND
    for question in quorum.voter_questions.end_others(ids):
        for rpc in question.rpcs:
            _reply(quorum, rpc, error)


# The change.


def _take(quorum: QuorumState, leadership: Leadership, voter: Voter) -> None:
    if quorum.history.kraft_version >= 1:
        _update_in_log(quorum, leadership, voter)
    else:
        leadership.static_voters = leadership.static_voters.with_learned_key(voter)
    leadership.note_contact(voter.key, quorum.now)


def _update_in_log(quorum: QuorumState, leadership: Leadership, voter: Voter) -> None:
    """Append the voters with this one's new entry. One that is ahead of the leader can't fetch that record,
    so it may send what the log has already: then the leader asks it which epoch it is in."""
    changed = quorum.history.voters.with_updated(voter)
    if changed == quorum.history.voters:
        leadership.ask(voter.key.id, quorum.now.monotonic_ms)
    else:
        append.append_voters(quorum, changed)
