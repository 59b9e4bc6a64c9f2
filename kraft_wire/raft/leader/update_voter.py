"""Answer UpdateRaftVoter (82), version 0: a voter has other endpoints or supports other levels of
kraft.version (KIP-853; Kafka's UpdateVoterHandler).

With kraft.version 0 the log has no voters. Then the leader only remembers what its voters tell it: an upgrade
of kraft.version needs their directory ids.

Anybody can send this request in a voter's name. So the voter is asked first (``wanted_entry``). Java's
leaders believe the request.
"""

from __future__ import annotations

from typing import cast

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraft_wire.protocol.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse
from kraft_wire.protocol.own_messages.voter_entry_request import VoterEntryRequest
from kraft_wire.protocol.own_messages.voter_entry_response import VoterEntryResponse
from kraft_wire.raft.door.request_checks import is_other_cluster, leader_only_error
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.events import Failure, RpcRequest
from kraft_wire.raft.leader import append, voter_changes
from kraft_wire.raft.leader.announcement import begin_request, is_from_addressee
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.leader.voter_questions import MOST_WAITING, VoterAnswer
from kraft_wire.raft.leader.wanted_entry import (
    entry_that_counts,
    must_be_asked,
    present_address,
    wanted_address,
)
from kraft_wire.raft.membership import voter_entry
from kraft_wire.raft.membership.change import (
    ChangeRefused,
    check_endpoints,
    check_fenced,
    check_range,
    committed_voters,
    supports,
)
from kraft_wire.raft.membership.voter_entry import addressee_of, entry_in, entry_request
from kraft_wire.raft.membership.voters import ReplicaKey, VersionRange, Voter, endpoints_of
from kraft_wire.raft.named_leader import named_leader
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.quorum_state import QuorumState


def handle_update_voter(quorum: QuorumState, rpc: RpcRequest) -> None:
    """Append a voter's new entry, after the voter was asked for it. The request is answered then, or before
    if that takes long, and not after the commit: the voter sees the record in the log."""
    try:
        leadership, voter = _check(quorum, cast(UpdateRaftVoterRequest, rpc.request))
        known = _check_changeable(quorum, leadership, voter)
        if must_be_asked(known, voter):
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
    return _check_asked(quorum, request), _voter(quorum, request)


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
    if wanted_address(quorum, voter) is None:
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


def _question(quorum: QuorumState, voter: Voter, rpc: RpcRequest) -> None:
    """Let the request wait for the voter's answers. Raises ChangeRefused if too many wait."""
    open_one = quorum.voter_questions.find(voter)
    if open_one is not None and len(open_one.rpcs) < MOST_WAITING:
        open_one.rpcs.append(rpc)
    elif open_one is not None or not quorum.voter_questions.has_room(voter.key.id):
        raise ChangeRefused(ErrorCode.REQUEST_TIMED_OUT, f"{voter.key} is being asked already: try again")
    else:
        present, wanted = present_address(quorum, voter.key.id), wanted_address(quorum, voter)
        addresses = {address for address in (present, wanted) if address is not None}
        now_ms = quorum.now.monotonic_ms
        for peer in quorum.voter_questions.begin(voter, rpc, sorted(addresses), now_ms).answers:
            quorum.send(peer, entry_request(quorum, voter.key))


def release_requests(quorum: QuorumState) -> None:
    """Answer the requests that have waited for long. A Java voter sends nothing else meanwhile, no Fetch
    either: it would take this leader for gone. It sees a change of its entry in the log."""
    asked_by_ms = quorum.now.monotonic_ms - _longest_wait_ms(quorum)
    for rpc in quorum.voter_questions.release(asked_by_ms):
        _reply(quorum, rpc, ErrorCode.REQUEST_TIMED_OUT)


def next_release_ms(quorum: QuorumState) -> int | None:
    """Return when the next request will have waited for long; None if none waits."""
    oldest_ms = quorum.voter_questions.oldest_ms
    return None if oldest_ms is None else oldest_ms + _longest_wait_ms(quorum)


def _longest_wait_ms(quorum: QuorumState) -> int:
    return quorum.config.fetch_timeout_ms // 4


def handle_entry(quorum: QuorumState, call: Call, response: VoterEntryResponse) -> None:
    """Note which entry the voter wants, as it says itself."""
    entry = entry_in(cast(VoterEntryRequest, call.request), response)
    _note_answer(quorum, call, VoterAnswer(voter_entry.is_from_addressee(response), entry))


def handle_entry_failed(quorum: QuorumState, call: Call, failure: Failure) -> None:
    """Ask with BeginQuorumEpoch if the node doesn't serve this API: one of Java's, or of an older release.
    Otherwise note that the voter can't be reached at an address."""
    if failure is Failure.UNSUPPORTED:
        asked = cast(VoterEntryRequest, call.request)
        quorum.send(call.peer, begin_request(quorum, addressee_of(asked)))
    else:
        handle_no_answer(quorum, call, failure)


def handle_answer(quorum: QuorumState, call: Call, response: BeginQuorumEpochResponse) -> None:
    """Note whether the voter is at an address where it was asked."""
    _note_answer(quorum, call, VoterAnswer(is_from_addressee(response)))


def handle_no_answer(quorum: QuorumState, call: Call, failure: Failure) -> None:
    """Note that the voter can't be reached at an address."""
    _note_answer(quorum, call, VoterAnswer(is_there=False))


def _note_answer(quorum: QuorumState, call: Call, answer: VoterAnswer) -> None:
    """Change the voter's entry after the last answer, or refuse to."""
    question = quorum.voter_questions.answered(call.peer, answer)
    if question is None or quorum.leadership is None:
        return
    error = ErrorCode.NONE
    try:
        voter_changes.check_not_stopping(quorum)
        _check_changeable(quorum, quorum.leadership, question.voter)
        entry = entry_that_counts(quorum, quorum.leadership, question)
        _take(quorum, quorum.leadership, entry)
    except ChangeRefused as refused:
        error = refused.error
    for rpc in question.rpcs:
        _reply(quorum, rpc, error)


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
