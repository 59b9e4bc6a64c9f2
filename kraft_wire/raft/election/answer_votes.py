"""Answer Vote (KIP-595, KIP-996, KIP-853).

Any node can get a vote, voter or not, because the set of voters may have changed without this node. A
candidate with our own id gets none; Java ends the process.
"""

from __future__ import annotations

from typing import Final, cast

from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import vote_response
from kraft_wire.protocol.messages.vote_request import PartitionData as VotePartition
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft.door import drafted_votes
from kraft_wire.raft.door.callers import hears_leader, is_known_voter
from kraft_wire.raft.door.claims import ask_caller, is_believed, may_raise, take_raise
from kraft_wire.raft.door.epoch_limits import is_acceptable_epoch
from kraft_wire.raft.door.request_checks import (
    is_other_cluster,
    only_partition,
    voter_only_error,
)
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.election import elections, known_leader
from kraft_wire.raft.election.answers import is_for_us, leader_addresses, partition_fields
from kraft_wire.raft.election.doubts import DOUBT_MS, RAISE_DOUBT_MS
from kraft_wire.raft.election.turns import goes_before_us, has_shorter_log
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import Prospective, RoleState, Unattached

_OF_DOUBT: Final = (ErrorCode.NONE, ErrorCode.UNKNOWN_LEADER_EPOCH)
"""The errors of a Vote whose answer may wait."""


def handle_vote(quorum: QuorumState, rpc: RpcRequest) -> None:
    """Answer the Vote of a candidate, or with PreVote the one of a node that may become a candidate, perhaps
    a little later (``doubts``)."""
    request = cast(VoteRequest, rpc.request)
    asked = only_partition(request.topics)
    if is_other_cluster(quorum, request.cluster_id):
        quorum.emit(Reply(rpc.token, VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)))
    elif asked is None:
        quorum.emit(Reply(rpc.token, VoteResponse(error_code=ErrorCode.INVALID_REQUEST)))
    else:
        candidate = _candidate(asked)
        error = _vote_error(quorum, rpc, asked)
        if not error and _is_doubtful_raise(quorum, asked):
            ask_caller(quorum, candidate, asked.replica_epoch)
        wait_ms = _doubt_ms(quorum, asked) if error in _OF_DOUBT else 0
        is_known = is_known_voter(quorum, candidate)
        if not quorum.doubts.add(candidate, rpc, quorum.now.monotonic_ms, wait_ms, is_known=is_known):
            _decide_vote(quorum, rpc, asked, error)


def _doubt_ms(quorum: QuorumState, asked: VotePartition) -> int:
    """Return how long the answer may wait for news of a leader; 0 if it needs none.

    The vote would be refused only because the candidate's epoch isn't believed yet, or because of a leader
    whose end may not be known here yet.
    """
    if _is_doubtful_raise(quorum, asked):
        return RAISE_DOUBT_MS
    is_known = is_known_voter(quorum, _candidate(asked))
    return DOUBT_MS if (is_known or asked.pre_vote) and _trusts_leader(quorum) else 0


def _is_doubtful_raise(quorum: QuorumState, asked: VotePartition) -> bool:
    """Whether the vote is of a higher epoch, which its candidate can't raise ours to now."""
    if not is_acceptable_epoch(asked.replica_epoch, quorum.epoch):
        return True  # Java would repeat the Vote at once, again and again
    return asked.replica_epoch > quorum.epoch and not may_raise(quorum, _candidate(asked))


def _trusts_leader(quorum: QuorumState) -> bool:
    """Whether this node follows a leader and sees no sign that it is gone."""
    return quorum.leadership is None and hears_leader(quorum)


def settle_doubts(quorum: QuorumState) -> None:
    """Answer the votes that need not wait any longer: there is news of a leader, or none came."""
    if not quorum.doubts:
        return
    now_ms = quorum.now.monotonic_ms
    for rpc in quorum.doubts.take(
        lambda doubt: doubt.deadline_ms <= now_ms or not _doubt_ms(quorum, _asked(doubt.rpc))
    ):
        asked = _asked(rpc)
        _decide_vote(quorum, rpc, asked, _vote_error(quorum, rpc, asked))


def _asked(rpc: RpcRequest) -> VotePartition:
    return cast(VoteRequest, rpc.request).topics[0].partitions[0]


def _decide_vote(quorum: QuorumState, rpc: RpcRequest, asked: VotePartition, error: ErrorCode) -> None:
    before = quorum.state
    error = error or _raise_to(quorum, asked)
    granted = not error and _grant(quorum, asked)
    quorum.emit(Reply(rpc.token, _vote_response(quorum, rpc, error, granted)))
    if not error:
        _give_way(quorum, asked, granted, before)


def _give_way(quorum: QuorumState, asked: VotePartition, granted: bool, before: RoleState) -> None:
    """Let a better candidate go first. If ours is the better log and the leader is gone, go first."""
    if granted:
        if asked.pre_vote and goes_before_us(quorum, asked):
            elections.yield_election(quorum)
    elif is_known_voter(quorum, _candidate(asked)) and has_shorter_log(quorum, asked):
        known_leader.hurry_election(quorum, before)


def _vote_error(quorum: QuorumState, rpc: RpcRequest, asked: VotePartition) -> ErrorCode:
    """Return the error for a vote that is not considered; NONE if it is. Nothing changes yet."""
    request = cast(VoteRequest, rpc.request)
    last_possible = asked.replica_epoch if asked.pre_vote else asked.replica_epoch - 1
    if asked.last_offset < 0 or not 0 <= asked.last_offset_epoch <= last_possible:
        return ErrorCode.INVALID_REQUEST
    error = voter_only_error(quorum, asked.replica_id, asked.replica_epoch)
    if error:
        return error
    if not is_for_us(quorum, request.voter_id, ReplicaKey(request.voter_id, asked.voter_directory_id)):
        return drafted_votes.not_for_us_error(quorum, rpc)
    return drafted_votes.candidate_uuid_error(quorum, rpc, asked.replica_directory_id)


def _raise_to(quorum: QuorumState, asked: VotePartition) -> ErrorCode:
    """Adopt the epoch of a candidate if it is higher, and believed; return the error if it isn't believed."""
    if asked.replica_epoch <= quorum.epoch:
        return ErrorCode.NONE
    if not take_raise(quorum, _candidate(asked), asked.replica_epoch):
        return ErrorCode.UNKNOWN_LEADER_EPOCH  # INVALID_REQUEST would end a Java process
    elections.become_unattached(quorum, asked.replica_epoch)
    return ErrorCode.NONE


def _candidate(asked: VotePartition) -> ReplicaKey:
    return ReplicaKey(asked.replica_id, asked.replica_directory_id)


def _grant(quorum: QuorumState, asked: VotePartition) -> bool:
    """Whether the vote is granted. A granted vote is on stable storage before the reply."""
    candidate = _candidate(asked)
    if candidate.id == quorum.config.node_id:
        return False
    is_up_to_date = not has_shorter_log(quorum, asked)
    state = quorum.state
    if not quorum.is_log_complete:
        return False
    granted = state.grants_vote(candidate, is_up_to_date=is_up_to_date, is_pre_vote=asked.pre_vote)
    if not asked.pre_vote and not (is_known_voter(quorum, candidate) or is_believed(quorum, candidate)):
        return False
    if granted and not asked.pre_vote and quorum.epoch <= quorum.no_vote_up_to_epoch:
        _raise_epoch(quorum)
        return False
    if granted and not asked.pre_vote and state.voted is None:
        _record_vote(quorum, candidate)
    return granted


def _raise_epoch(quorum: QuorumState) -> None:
    """Raise the epoch to the last one in which this node may have voted before it lost quorum-state.

    The candidate may not win without this node's vote. It learns from the answer's epoch in which epoch it
    can get the vote.
    """
    if quorum.epoch < quorum.no_vote_up_to_epoch:
        elections.become_unattached(quorum, quorum.no_vote_up_to_epoch)


def _record_vote(quorum: QuorumState, candidate: ReplicaKey) -> None:
    state = quorum.state
    assert isinstance(state, (Unattached, Prospective))  # no other role grants a new vote
    deadline_ms = quorum.election_deadline_ms()
    waits_once = quorum.is_only_voter or not is_known_voter(quorum, candidate)
    if waits_once and state.deadline_ms > quorum.now.monotonic_ms:
        deadline_ms = state.deadline_ms  # nobody from outside delays the election again and again
    quorum.become(Unattached(quorum.epoch, deadline_ms, state.leader_id, candidate))


def _vote_response(quorum: QuorumState, rpc: RpcRequest, error: ErrorCode, granted: bool) -> VoteResponse:
    partition = vote_response.PartitionData(**partition_fields(quorum, rpc, error), vote_granted=granted)
    return VoteResponse(
        topics=[vote_response.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        node_endpoints=[vote_response.NodeEndpoint(**address) for address in leader_addresses(quorum, rpc)],
    )
