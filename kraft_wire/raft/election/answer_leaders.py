"""Answer BeginQuorumEpoch and EndQuorumEpoch (KIP-595, KIP-853).

Java ends the process for some of these requests; here a second leader for an epoch, or a leader with our id,
gets INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, cast

from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import begin_quorum_epoch_response, end_quorum_epoch_response
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest, PartitionData
from kraft_wire.protocol.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraft_wire.raft.door.request_checks import is_other_cluster, only_partition, voter_only_error
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.election import known_leader
from kraft_wire.raft.election.answers import is_for_us, leader_addresses, partition_fields
from kraft_wire.raft.election.turns import successor_wait_ms
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.membership.voters import Endpoints, ReplicaKey, endpoints_of
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import Follower

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
        if not error and not is_for_us(quorum, request.voter_id, addressee):
            error = ErrorCode.INVALID_VOTER_KEY
        if not error:
            _note_hint(quorum, asked.leader_id, asked.leader_epoch, request.leader_endpoints)
        response = _begin_response(quorum, rpc, error)
    quorum.emit(Reply(rpc.token, response))


def _begin_response(quorum: QuorumState, rpc: RpcRequest, error: ErrorCode) -> BeginQuorumEpochResponse:
    partition = begin_quorum_epoch_response.PartitionData(**partition_fields(quorum, rpc, error))
    return BeginQuorumEpochResponse(
        topics=[begin_quorum_epoch_response.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        node_endpoints=[
            begin_quorum_epoch_response.NodeEndpoint(**address) for address in leader_addresses(quorum, rpc)
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
    following = state.following
    following.is_first_successor |= bool(successors) and successors[0].matches(config.replica_key)
    earlier_wait_ms, due_ms = following.successor_wait_ms, quorum.now.monotonic_ms + wait_ms
    following.successor_wait_ms = wait_ms if earlier_wait_ms is None else min(earlier_wait_ms, wait_ms)
    if following.has_resigned:
        # Only the first wait may be longer than a dead leader's successors wait. Anybody can repeat this.
        due_ms = due_ms if earlier_wait_ms is None else min(state.deadline_ms, due_ms)
        known_leader.start_election_at(quorum, state, due_ms)


def _end_response(quorum: QuorumState, rpc: RpcRequest, error: ErrorCode) -> EndQuorumEpochResponse:
    partition = end_quorum_epoch_response.PartitionData(**partition_fields(quorum, rpc, error))
    return EndQuorumEpochResponse(
        topics=[end_quorum_epoch_response.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        node_endpoints=[
            end_quorum_epoch_response.NodeEndpoint(**address) for address in leader_addresses(quorum, rpc)
        ],
    )


# Shared by both.


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


class _Listener(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


def _listeners(listeners: Iterable[_Listener]) -> Endpoints:
    return endpoints_of((listener.name, listener.host, listener.port) for listener in listeners)
