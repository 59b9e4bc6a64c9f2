"""EndQuorumEpochs that anybody repeats in the leader's name after it has resigned."""

from __future__ import annotations

from itertools import count

import pytest

from kraft_wire.protocol.messages.end_quorum_epoch_request import (
    EndQuorumEpochRequest,
    PartitionData,
    TopicData,
)
from kraft_wire.raft.events import RpcRequest
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
