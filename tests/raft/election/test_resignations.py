"""EndQuorumEpochs that anybody repeats in the leader's name after it has resigned."""

from __future__ import annotations

from itertools import count

import pytest

from kraft_wire.protocol.messages.end_quorum_epoch_request import (
    EndQuorumEpochRequest,
    PartitionData,
    ReplicaInfo,
    TopicData,
)
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.roles import Follower
from tests.raft.core_quorum import CoreQuorum, QuorumNode
from tests.raft.lone_node import CLUSTER_ID, LISTENER
from tests.raft.membership.reconfiguration import NO_CLIENT, Asked, remove_request
from tests.raft.quorum_ports import Caller

_NUMBERS = count(2_000_000)


def repeat(quorum: CoreQuorum, leader: QuorumNode, epoch: int, every_ms: int) -> None:
    """Say again and again that the leader has resigned, and names no successors."""
    partition = PartitionData(leader_id=leader.id, leader_epoch=epoch)
    request = EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID, topics=[TopicData("__cluster_metadata", [partition])]
    )
    for node in quorum.nodes.values():
        if node.is_up and node is not leader:
            node.step(RpcRequest(Caller(node.id, NO_CLIENT, next(_NUMBERS)), request, 1, LISTENER))
    quorum.later(every_ms, lambda: repeat(quorum, leader, epoch, every_ms))


@pytest.mark.parametrize("every_ms", [5, 20, 100, 500])
def test_repeated_resignations_postpone_no_election(every_ms: int) -> None:
    """The first successor is out of reach, so that the others are needed."""
    quorum = CoreQuorum(5).led()
    quorum.run_for(10_000)
    leader = quorum.leader
    epoch, leadership = leader.running.epoch, leader.running._quorum.leadership
    assert leadership is not None
    repeat(quorum, leader, epoch, every_ms)
    quorum.run_for(50)
    Asked(leader, remove_request(leader))
    while leader.running._quorum.leadership is not None:
        successor = leadership.successors()[0].id
        quorum._run_next()
    quorum.isolate(successor)
    quorum.run_until(lambda: any(node.running.epoch > epoch for node in quorum.leaders), within_ms=3_000)


def test_what_is_said_while_the_leader_is_at_work_counts_no_more_when_it_resigns() -> None:
    """Else all followers would take themselves for the first successor, and stand without pre-votes."""
    quorum = CoreQuorum(5).led()
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    for node in quorum.followers():
        key = node.config.replica_key
        partition = PartitionData(
            leader_id=leader.id, leader_epoch=epoch, preferred_candidates=[ReplicaInfo(*key)]
        )
        request = EndQuorumEpochRequest(
            cluster_id=CLUSTER_ID, topics=[TopicData("__cluster_metadata", [partition])]
        )
        node.step(RpcRequest(Caller(node.id, NO_CLIENT, next(_NUMBERS)), request, 1, LISTENER))
    quorum.run_for(1_000)
    for node in quorum.followers():
        state = node.running._quorum.state
        assert isinstance(state, Follower)
        following = state.following
        assert (following.is_first_successor, following.successor_wait_ms) == (False, None)
