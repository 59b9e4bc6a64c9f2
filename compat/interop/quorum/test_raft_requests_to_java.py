"""Java's controller understands the requests of our Raft client side, and we understand its responses."""

from __future__ import annotations

import pytest
import trio

from compat.harness.kafka.cluster import CONTROLLER_ID, NEWEST_KAFKA, random_cluster_id
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.nodes import JvmController
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.ports import HOST
from compat.harness.processes import Workspace
from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import describe_quorum_request, vote_request
from kraft_wire.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kraft_wire.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft.events import Failure
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.server.network.peers import Peers

CLUSTER_ID = random_cluster_id()


@pytest.fixture
def controller(workspace: Workspace, tool_server: ToolServer) -> JvmController:
    controller = JvmController(workspace, CONTROLLER_ID, find_jars(NEWEST_KAFKA), tool_server)
    controller.format(CLUSTER_ID, "--standalone")
    controller.start()
    controller.wait_until_ready()
    return controller


async def _ask(peer: Peer, *requests: Message) -> list[Message | Failure]:
    """Send these requests together and return their outcomes."""
    outcomes: dict[int, Message | Failure] = {}
    all_there = trio.Event()

    def take(request_id: int, outcome: Message | Failure) -> None:
        outcomes[request_id] = outcome
        if len(outcomes) == len(requests):
            all_there.set()

    peers = Peers(take, take, client_id="raft-client-1")
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peers.run)
            for request_id, request in enumerate(requests):
                peers.send(request_id, peer, request)
            await all_there.wait()
            nursery.cancel_scope.cancel()
    return [outcomes[request_id] for request_id in range(len(requests))]


def _describe_quorum() -> DescribeQuorumRequest:
    partition = describe_quorum_request.PartitionData(partition_index=0)
    return DescribeQuorumRequest(
        topics=[describe_quorum_request.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])]
    )


def _pre_vote(epoch: int) -> VoteRequest:
    partition = vote_request.PartitionData(
        replica_epoch=epoch, replica_id=1, last_offset_epoch=0, last_offset=0, pre_vote=True
    )
    return VoteRequest(
        cluster_id=CLUSTER_ID,
        topics=[vote_request.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
    )


async def test_java_describes_its_quorum_and_refuses_an_old_pre_vote(controller: JvmController) -> None:
    peer = Peer(CONTROLLER_ID, HOST, controller.port)
    described, *votes = await _ask(peer, _describe_quorum(), _pre_vote(epoch=0), _pre_vote(epoch=0))
    assert isinstance(described, DescribeQuorumResponse)
    leader = described.topics[0].partitions[0]
    assert leader.leader_id == CONTROLLER_ID
    for voted in votes:
        assert isinstance(voted, VoteResponse)
        (answer,) = voted.topics[0].partitions
        assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (answer.leader_id, answer.leader_epoch) == (CONTROLLER_ID, leader.leader_epoch)
        assert [(node.node_id, node.port) for node in voted.node_endpoints] == [
            (CONTROLLER_ID, controller.port)
        ]

    controller.kill()
    assert await _ask(peer, _describe_quorum()) == [Failure.LOST]
