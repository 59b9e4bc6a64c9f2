"""Answers that name an impossible leader, or an impossible address, from a node that was asked."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.protocol.messages.fetch_response import NodeEndpoint
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.events import ResponseReceived
from kraft_wire.raft.outgoing import FIRST_CLAIMED_ID
from tests.raft.core_quorum import CoreQuorum, QuorumNode
from tests.raft.election.claimed_leaders import fetch_answer, fetches


@pytest.fixture
def node() -> QuorumNode:
    """A follower whose leader has just ended, so that it asks who leads."""
    quorum = CoreQuorum(3).led()
    found = quorum.followers()[0]
    quorum.isolate(found.id)
    found.crash()
    found.effects.clear()
    found.start()
    return found


def _question(node: QuorumNode) -> SendRequest:
    quorum = node.quorum
    quorum.run_until(lambda: bool(fetches(node.effects)))
    return fetches(node.effects)[-1]


@pytest.mark.parametrize("leader_id", [-2, -7, FIRST_CLAIMED_ID - 5, -(2**31)])
def test_a_leader_with_an_impossible_id_is_none(node: QuorumNode, leader_id: int) -> None:
    epoch = node.running.epoch
    node.step(ResponseReceived(_question(node).request_id, fetch_answer(leader_id, epoch + 1)))
    assert node.running.leader_id is None or node.running.leader_id > 0
    assert node.running.epoch == epoch
    node.quorum.heal()
    node.quorum.run_until(node.quorum.agree)


@pytest.mark.parametrize(
    ("host", "port"), [("host", 0), ("host", 70_000), ("host", -1), (" ", 1), ("h" * 256, 1)]
)
def test_an_address_that_can_not_be_one_is_left_out(node: QuorumNode, host: str, port: int) -> None:
    other = next(id for id in node.quorum.nodes if id != node.id)
    answer = fetch_answer(other, node.running.epoch)
    answer = msgspec.structs.replace(answer, node_endpoints=[NodeEndpoint(other, host, port)])
    node.step(ResponseReceived(_question(node).request_id, answer))
    endpoints = node.running._quorum.state.leader_endpoints
    assert (host, port) not in {(each.host, each.port) for each in endpoints}
