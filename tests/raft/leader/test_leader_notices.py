"""A leader announces itself, and learns of another leader."""

from __future__ import annotations

from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import begin_quorum_epoch_response, vote_response
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft.effects import Effect, SendRequest
from kraft_wire.raft.events import ResponseReceived, Start
from kraft_wire.raft.membership.voters import static_voters
from kraft_wire.raft.roles import Role
from tests.raft.lone_node import LISTENER, LoneNode, config, of_type

VOTERS = static_voters(LISTENER, {1: ("a", 9093), 2: ("b", 9093), 3: ("c", 9093)})


def vote(epoch: int) -> VoteResponse:
    granted = vote_response.PartitionData(
        partition_index=0, leader_id=-1, leader_epoch=epoch, vote_granted=True
    )
    return VoteResponse(topics=[vote_response.TopicData(CLUSTER_METADATA, [granted])])


def begun(epoch: int, leader_id: int, error: ErrorCode) -> BeginQuorumEpochResponse:
    answer = begin_quorum_epoch_response.PartitionData(
        partition_index=0, error_code=error, leader_id=leader_id, leader_epoch=epoch
    )
    return BeginQuorumEpochResponse(
        topics=[begin_quorum_epoch_response.TopicData(CLUSTER_METADATA, [answer])]
    )


def sent(effects: list[Effect], request_type: type, to: int) -> SendRequest:
    """Return the only request of this type to this node."""
    (found,) = (
        effect
        for effect in of_type(effects, SendRequest)
        if isinstance(effect.request, request_type) and effect.peer.id == to
    )
    return found


def elected() -> tuple[LoneNode, list[Effect]]:
    """Return node 1 as the leader of epoch 1 of three voters, and the effects of its election."""
    node = LoneNode(config(static=VOTERS), start=False)
    asked = node.step(Start())
    asked = node.step(ResponseReceived(sent(asked, VoteRequest, 2).request_id, vote(0)))
    done = node.step(ResponseReceived(sent(asked, VoteRequest, 2).request_id, vote(1)))
    assert node.core.role is Role.LEADER
    return node, done


def test_every_other_voter_is_told_at_once() -> None:
    _, done = elected()
    for voter in (2, 3):
        request = sent(done, BeginQuorumEpochRequest, voter).request
        assert isinstance(request, BeginQuorumEpochRequest)
        assert request.voter_id == voter


def test_the_leader_of_a_higher_epoch_is_followed_at_once_even_if_it_refused_us() -> None:
    node, done = elected()
    refusal = begun(5, leader_id=2, error=ErrorCode.FENCED_LEADER_EPOCH)
    node.step(ResponseReceived(sent(done, BeginQuorumEpochRequest, 2).request_id, refusal))
    assert (node.core.role, node.core.epoch, node.core.leader_id) == (Role.FOLLOWER, 5, 2)
    assert sent(node.flush(), FetchRequest, 2)
