"""Answer Vote, BeginQuorumEpoch and EndQuorumEpoch (KIP-595, KIP-996, KIP-853).

Any node can get a vote, voter or not, because the set of voters may have changed without this node. Java ends
the process for some of these requests; here they get an error: a candidate with our own id gets no vote, and
a second leader for an epoch, or a leader with our id, gets INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypedDict, cast

from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import (
    begin_quorum_epoch_response,
    end_quorum_epoch_response,
    vote_response,
)
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest, PartitionData
from kraft_wire.protocol.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraft_wire.protocol.messages.vote_request import PartitionData as VotePartition
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft.door import drafted_votes
from kraft_wire.raft.door.callers import hears_leader, is_known_voter
from kraft_wire.raft.door.claims import ask_caller, is_believed, may_raise, take_raise
from kraft_wire.raft.door.request_checks import (
    METADATA_PARTITION,
    is_other_cluster,
    only_partition,
    voter_only_error,
)
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.election import elections, known_leader
from kraft_wire.raft.election.doubts import DOUBT_MS, RAISE_DOUBT_MS
from kraft_wire.raft.election.turns import goes_before_us, has_shorter_log, successor_wait_ms
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.membership.voters import Endpoints, ReplicaKey, endpoints_of
from kraft_wire.raft.named_leader import NamedLeader, named_leader
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import Follower, Prospective, RoleState, Unattached

FIRST_WITH_ENDPOINTS = 1


# Vote.


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
        wait_ms = 0 if error else _doubt_ms(quorum, asked)
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
    if not _is_for_us(quorum, request.voter_id, ReplicaKey(request.voter_id, asked.voter_directory_id)):
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
    partition = vote_response.PartitionData(**_answer(quorum, rpc, error), vote_granted=granted)
    return VoteResponse(
        topics=[vote_response.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        node_endpoints=[vote_response.NodeEndpoint(**address) for address in _leader_addresses(quorum, rpc)],
    )


# BeginQuorumEpoch.


def handle_begin_quorum_epoch(quorum: QuorumState, rpc: RpcRequest) -> None:
    """Answer a leader that announces itself to its voters."""
    request = cast(BeginQuorumEpochRequest, rpc.request)
    asked = only_partition(request.topics)
    if is_other_cluster(quorum, request.cluster_id):
        response = BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    elif asked is None:
        response = BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    else:
        addressee = ReplicaKey(request.voter_id, asked.voter_directory_id)
        error = _claim_error(quorum, asked.leader_id, asked.leader_epoch)
        if not error and not _is_for_us(quorum, request.voter_id, addressee):
            error = ErrorCode.INVALID_VOTER_KEY
        if not error:
            _note_hint(quorum, asked.leader_id, asked.leader_epoch, request.leader_endpoints)
        response = _begin_response(quorum, rpc, error)
    quorum.emit(Reply(rpc.token, response))


def _begin_response(quorum: QuorumState, rpc: RpcRequest, error: ErrorCode) -> BeginQuorumEpochResponse:
    partition = begin_quorum_epoch_response.PartitionData(**_answer(quorum, rpc, error))
    return BeginQuorumEpochResponse(
        topics=[begin_quorum_epoch_response.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        node_endpoints=[
            begin_quorum_epoch_response.NodeEndpoint(**address) for address in _leader_addresses(quorum, rpc)
        ],
    )


# EndQuorumEpoch.


def handle_end_quorum_epoch(quorum: QuorumState, rpc: RpcRequest) -> None:
    """Answer a leader that resigns and names its preferred successors, the best first."""
    request = cast(EndQuorumEpochRequest, rpc.request)
    asked = only_partition(request.topics)
    if is_other_cluster(quorum, request.cluster_id):
        response = EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    elif asked is None:
        response = EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    else:
        error = _claim_error(quorum, asked.leader_id, asked.leader_epoch)
        if not error:
            _note_hint(quorum, asked.leader_id, asked.leader_epoch, request.leader_endpoints)
            _note_resignation(quorum, asked)
        response = _end_response(quorum, rpc, error)
    quorum.emit(Reply(rpc.token, response))


def _note_resignation(quorum: QuorumState, asked: PartitionData) -> None:
    """Start an election in our turn among the successors, instead of after the fetch timeout, once the leader
    itself has answered that it doesn't lead any more: anybody can send this request in its name."""
    state = quorum.state
    if not isinstance(state, Follower) or (state.leader_id, state.epoch) != (
        asked.leader_id,
        asked.leader_epoch,
    ):
        return
    successors = [
        ReplicaKey(replica.candidate_id, replica.candidate_directory_id)
        for replica in asked.preferred_candidates
    ] or [ReplicaKey(node_id) for node_id in asked.preferred_successors]
    config = quorum.config
    wait_ms = successor_wait_ms(
        config.replica_key, successors, config.failover_step_ms, config.election_backoff_max_ms
    )
    state.following.is_first_successor = bool(successors) and successors[0].matches(config.replica_key)
    state.following.successor_wait_ms = wait_ms
    if state.following.has_resigned:
        known_leader.start_election_at(quorum, state, quorum.now.monotonic_ms + wait_ms)


def _end_response(quorum: QuorumState, rpc: RpcRequest, error: ErrorCode) -> EndQuorumEpochResponse:
    partition = end_quorum_epoch_response.PartitionData(**_answer(quorum, rpc, error))
    return EndQuorumEpochResponse(
        topics=[end_quorum_epoch_response.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        node_endpoints=[
            end_quorum_epoch_response.NodeEndpoint(**address) for address in _leader_addresses(quorum, rpc)
        ],
    )


# Shared by all three.


def _claim_error(quorum: QuorumState, leader_id: int, epoch: int) -> ErrorCode:
    """Return the error for a node that claims to lead ``epoch``, or to have led it; NONE if that is possible.

    It isn't if another node leads our epoch, nor if it is this node and isn't so.
    """
    error = voter_only_error(quorum, leader_id, epoch)
    if error:
        return error
    known = quorum.state.leader_id if epoch == quorum.epoch else None
    if leader_id == quorum.config.node_id:
        is_possible = quorum.leadership is not None and known == leader_id
    else:
        is_possible = known in (None, leader_id)
    return ErrorCode.NONE if is_possible else ErrorCode.INVALID_REQUEST


def _note_hint(quorum: QuorumState, leader_id: int, epoch: int, listeners: Iterable[_Listener]) -> None:
    """Remember that a node claims to lead an epoch whose leader this node doesn't know."""
    if epoch > quorum.epoch or quorum.state.leader_id is None:
        now_ms, is_voter = quorum.now.monotonic_ms, leader_id in quorum.history.voters.ids
        quorum.hints.add(leader_id, epoch, _listeners(listeners), now_ms, is_voter=is_voter)


def _is_for_us(quorum: QuorumState, voter_id: int, addressee: ReplicaKey) -> bool:
    """Whether the request is for this replica. A request without a voter id is for any node."""
    return voter_id < 0 or addressee.matches(quorum.config.replica_key)


class _Listener(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


def _listeners(listeners: Iterable[_Listener]) -> Endpoints:
    return endpoints_of((listener.name, listener.host, listener.port) for listener in listeners)


class _Answer(TypedDict):
    partition_index: int
    error_code: ErrorCode
    leader_id: int
    leader_epoch: int


def _answer(quorum: QuorumState, rpc: RpcRequest, error: ErrorCode) -> _Answer:
    """Return the fields that the partition has in all three responses."""
    return {
        "partition_index": METADATA_PARTITION,
        "error_code": error,
        "leader_id": _leader(quorum, rpc).id,
        "leader_epoch": quorum.epoch,
    }


class _Address(TypedDict):
    node_id: int
    host: str
    port: int


def _leader_addresses(quorum: QuorumState, rpc: RpcRequest) -> list[_Address]:
    """Return the leader's address if it is known and the response's version has a field for it."""
    leader = _leader(quorum, rpc)
    if leader.endpoint is None:
        return []
    return [{"node_id": leader.id, "host": leader.endpoint.host, "port": leader.endpoint.port}]


def _leader(quorum: QuorumState, rpc: RpcRequest) -> NamedLeader:
    return named_leader(quorum, rpc.listener, has_endpoints=rpc.version >= FIRST_WITH_ENDPOINTS)
