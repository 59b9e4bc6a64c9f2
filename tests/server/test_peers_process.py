"""Requests to a real server of ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from kraft_wire.log.batch import split_batches
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import describe_quorum_response
from kraft_wire.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.heartbeat_request import HeartbeatRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft.events import Failure
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.server.network.peers import Peers
from tests.server.network.outgoing import Reports, describe_quorum, fetch, running, vote
from tests.support.controller_process import CLUSTER_ID, GIVE_UP_S, NODE_ID, ControllerProcess, formatted


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[ControllerProcess]:
    file = formatted(tmp_path, {"metadata.max.idle.interval.ms": "0"})
    with ControllerProcess(file) as process:
        process.wait_for("active controller")
        yield process


def _peer(controller: ControllerProcess) -> Peer:
    host, port = controller.wait_for("listening")["address"].split(":")
    return Peer(NODE_ID, host, int(port))


async def _leader(peers: Peers, reports: Reports, peer: Peer) -> describe_quorum_response.PartitionData:
    peers.send(0, peer, describe_quorum())
    described = await reports.of(0)
    assert isinstance(described, DescribeQuorumResponse)
    return described.topics[0].partitions[0]


async def test_it_answers_a_vote_and_a_fetch_and_refuses_what_it_does_not_serve(
    controller: ControllerProcess,
) -> None:
    peer = _peer(controller)
    with trio.fail_after(GIVE_UP_S):
        async with running() as (peers, reports):
            leader = await _leader(peers, reports, peer)
            assert leader.leader_id == NODE_ID
            peers.send(1, peer, vote(epoch=0, pre_vote=True, cluster_id=CLUSTER_ID))
            peers.send(2, peer, fetch(0, epoch=leader.leader_epoch))
            peers.send(3, peer, HeartbeatRequest())
            voted, fetched = await reports.of(1), await reports.of(2)
            assert await reports.of(3) is Failure.UNSUPPORTED
    assert isinstance(voted, VoteResponse)
    (answer,) = voted.topics[0].partitions
    assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (answer.leader_id, answer.leader_epoch) == (NODE_ID, leader.leader_epoch)
    assert isinstance(fetched, FetchResponse)
    (partition,) = fetched.responses[0].partitions
    assert partition.error_code == 0
    assert split_batches(partition.records or b"")[0]


async def test_a_fetch_that_is_parked_is_lost_with_the_process(controller: ControllerProcess) -> None:
    peer = _peer(controller)
    with trio.fail_after(GIVE_UP_S):
        async with running() as (peers, reports):
            leader = await _leader(peers, reports, peer)
            end, epoch = leader.high_watermark, leader.leader_epoch
            peers.send(1, peer, fetch(end, epoch=epoch, high_watermark=end, max_wait_ms=3_600_000))
            for request_id in range(2, 300):  # a Vote at a time, while the Fetch is parked
                peers.send(request_id, peer, vote(epoch=0, cluster_id=CLUSTER_ID))
                assert isinstance(await reports.of(request_id), VoteResponse)
            controller.kill()
            assert await reports.of(1) is Failure.LOST
            peers.send(300, peer, vote())
            assert await reports.of(300) is Failure.LOST
