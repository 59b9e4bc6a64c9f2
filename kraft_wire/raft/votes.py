"""Vote, BeginQuorumEpoch and EndQuorumEpoch (KIP-595, KIP-996, KIP-853): other nodes campaign, lead, or cease
to.

Votes are granted whoever asks, voter or not: the set of voters may have moved on without us. Differences from
Java, where one request can end the process: a candidate with our own id gets no vote; a second leader for an
epoch that has one, or one that claims to be us, gets INVALID_REQUEST.
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
from kraft_wire.raft import elections
from kraft_wire.raft.checks import METADATA_PARTITION, is_other_cluster, only_partition, voter_only_error
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Follower, Prospective, Unattached
from kraft_wire.raft.voters import Endpoints, ReplicaKey, endpoints_of

FIRST_WITH_ENDPOINTS = 1


# Vote.


def handle_vote(quorum: Quorum, rpc: RpcRequest) -> None:
    """Answer a candidate (or, with PreVote, somebody who thinks of becoming one)."""
    request = cast(VoteRequest, rpc.request)
    asked = only_partition(request.topics)
    if is_other_cluster(quorum, request.cluster_id):
        response = VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    elif asked is None:
        response = VoteResponse(error_code=ErrorCode.INVALID_REQUEST)
    else:
        error = _vote_error(quorum, request, asked)
        granted = not error and _grant(quorum, asked)
        response = _vote_response(quorum, rpc, error, granted)
    quorum.emit(Reply(rpc.token, response))


def _vote_error(quorum: Quorum, request: VoteRequest, asked: VotePartition) -> ErrorCode:
    """Why no vote is considered. A higher epoch counts for us even so, unless the request makes no sense."""
    last_possible = asked.replica_epoch if asked.pre_vote else asked.replica_epoch - 1
    if asked.last_offset < 0 or not 0 <= asked.last_offset_epoch <= last_possible:
        return ErrorCode.INVALID_REQUEST
    error = voter_only_error(quorum, asked.replica_id, asked.replica_epoch)
    if error:
        return error
    if asked.replica_epoch > quorum.epoch:
        elections.become_unattached(quorum, asked.replica_epoch)
    if not _is_for_us(quorum, request.voter_id, ReplicaKey(request.voter_id, asked.voter_directory_id)):
        return ErrorCode.INVALID_VOTER_KEY
    return ErrorCode.NONE


def _grant(quorum: Quorum, asked: VotePartition) -> bool:
    """Whether the vote is granted; if so it is on stable storage before the reply."""
    candidate = ReplicaKey(asked.replica_id, asked.replica_directory_id)
    if candidate.id == quorum.config.node_id:
        return False
    log = quorum.log
    is_up_to_date = (asked.last_offset_epoch, asked.last_offset) >= (log.last_epoch, log.end_offset)
    state = quorum.state
    if not quorum.is_whole:
        return False
    granted = state.grants_vote(candidate, is_up_to_date=is_up_to_date, is_pre_vote=asked.pre_vote)
    if granted and not asked.pre_vote and quorum.epoch <= quorum.no_vote_up_to_epoch:
        _ask_for_higher_epoch(quorum)
        return False
    if granted and not asked.pre_vote and state.voted is None:
        _remember_vote(quorum, candidate)
    return granted


def _ask_for_higher_epoch(quorum: Quorum) -> None:
    """This node may have voted in this epoch before it lost quorum-state. The candidate, which may not win
    without it, learns from the answer's epoch where it can have our vote."""
    if quorum.epoch < quorum.no_vote_up_to_epoch:
        elections.become_unattached(quorum, quorum.no_vote_up_to_epoch)


def _remember_vote(quorum: Quorum, candidate: ReplicaKey) -> None:
    state = quorum.state
    assert isinstance(state, (Unattached, Prospective))  # no other role grants a vote that it hasn't given
    deadline_ms = quorum.election_deadline_ms()
    if quorum.is_only_voter and state.deadline_ms > quorum.now.monotonic_ms:
        deadline_ms = state.deadline_ms  # a sole voter may wait for a stranger, but not for one after another
    quorum.become(Unattached(quorum.epoch, deadline_ms, state.leader_id, candidate))


def _vote_response(quorum: Quorum, rpc: RpcRequest, error: ErrorCode, granted: bool) -> VoteResponse:
    partition = vote_response.PartitionData(**_answer(quorum, error), vote_granted=granted)
    return VoteResponse(
        topics=[vote_response.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        node_endpoints=[vote_response.NodeEndpoint(**address) for address in _leader_addresses(quorum, rpc)],
    )


# BeginQuorumEpoch.


def handle_begin_quorum_epoch(quorum: Quorum, rpc: RpcRequest) -> None:
    """A leader makes itself known to us, whom it takes for a voter."""
    request = cast(BeginQuorumEpochRequest, rpc.request)
    asked = only_partition(request.topics)
    if is_other_cluster(quorum, request.cluster_id):
        response = BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    elif asked is None:
        response = BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    else:
        error = _hear_of_leader(
            quorum, asked.leader_id, asked.leader_epoch, _listeners(request.leader_endpoints)
        )
        addressee = ReplicaKey(request.voter_id, asked.voter_directory_id)
        if not error and not _is_for_us(quorum, request.voter_id, addressee):
            error = ErrorCode.INVALID_VOTER_KEY
        response = _begin_response(quorum, rpc, error)
    quorum.emit(Reply(rpc.token, response))


def _begin_response(quorum: Quorum, rpc: RpcRequest, error: ErrorCode) -> BeginQuorumEpochResponse:
    partition = begin_quorum_epoch_response.PartitionData(**_answer(quorum, error))
    return BeginQuorumEpochResponse(
        topics=[begin_quorum_epoch_response.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        node_endpoints=[
            begin_quorum_epoch_response.NodeEndpoint(**address) for address in _leader_addresses(quorum, rpc)
        ],
    )


# EndQuorumEpoch.


def handle_end_quorum_epoch(quorum: Quorum, rpc: RpcRequest) -> None:
    """A leader stops, and says who should follow it, best first."""
    request = cast(EndQuorumEpochRequest, rpc.request)
    asked = only_partition(request.topics)
    if is_other_cluster(quorum, request.cluster_id):
        response = EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    elif asked is None:
        response = EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    else:
        error = _hear_of_leader(
            quorum, asked.leader_id, asked.leader_epoch, _listeners(request.leader_endpoints)
        )
        if not error:
            _follow_no_longer(quorum, asked)
        response = _end_response(quorum, rpc, error)
    quorum.emit(Reply(rpc.token, response))


def _follow_no_longer(quorum: Quorum, asked: PartitionData) -> None:
    """Stand for election in our turn instead of after the fetch timeout."""
    state = quorum.state
    if not isinstance(state, Follower) or state.leader_id != asked.leader_id:
        return
    successors = [
        ReplicaKey(replica.candidate_id, replica.candidate_directory_id)
        for replica in asked.preferred_candidates
    ] or [ReplicaKey(node_id) for node_id in asked.preferred_successors]
    wait_ms = successor_wait_ms(quorum.config.replica_key, successors, quorum.config.election_backoff_max_ms)
    elections.stand_by(quorum, state, quorum.now.monotonic_ms + wait_ms)


def successor_wait_ms(key: ReplicaKey, successors: list[ReplicaKey], max_ms: int) -> int:
    """How long a successor waits: the first not at all, each next one twice as long, the others
    ``max_ms``."""
    position = next((index for index, successor in enumerate(successors) if successor.matches(key)), None)
    if position is None:
        return max_ms
    if position == 0:
        return 0
    return min(max_ms, (max_ms >> (len(successors) - 1)) << (position - 1))


def _end_response(quorum: Quorum, rpc: RpcRequest, error: ErrorCode) -> EndQuorumEpochResponse:
    partition = end_quorum_epoch_response.PartitionData(**_answer(quorum, error))
    return EndQuorumEpochResponse(
        topics=[end_quorum_epoch_response.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        node_endpoints=[
            end_quorum_epoch_response.NodeEndpoint(**address) for address in _leader_addresses(quorum, rpc)
        ],
    )


# What they share.


def _hear_of_leader(quorum: Quorum, leader_id: int, epoch: int, endpoints: Endpoints) -> ErrorCode:
    """Somebody says that it leads ``epoch``."""
    error = voter_only_error(quorum, leader_id, epoch)
    if error:
        return error
    if leader_id == quorum.config.node_id and quorum.leadership is None:
        return ErrorCode.INVALID_REQUEST
    is_possible = elections.hear_of_leader(quorum, epoch, leader_id, endpoints)
    return ErrorCode.NONE if is_possible else ErrorCode.INVALID_REQUEST


def _is_for_us(quorum: Quorum, voter_id: int, addressee: ReplicaKey) -> bool:
    """Whether the request is for this replica; one without a voter id is for whoever gets it."""
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


def _answer(quorum: Quorum, error: ErrorCode) -> _Answer:
    """What the answers to all three say of the partition."""
    return {
        "partition_index": METADATA_PARTITION,
        "error_code": error,
        "leader_id": quorum.leader_id_on_wire,
        "leader_epoch": quorum.epoch,
    }


class _Address(TypedDict):
    node_id: int
    host: str
    port: int


def _leader_addresses(quorum: Quorum, rpc: RpcRequest) -> list[_Address]:
    """Where the leader is, where that is known and the version has room for it."""
    endpoint = quorum.leader_endpoint(rpc.listener)
    if rpc.version < FIRST_WITH_ENDPOINTS or endpoint is None or quorum.leader_id_on_wire < 0:
        return []
    return [{"node_id": quorum.leader_id_on_wire, "host": endpoint.host, "port": endpoint.port}]
