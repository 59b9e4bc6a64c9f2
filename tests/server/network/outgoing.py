"""Our outgoing side while it runs, what it reported, and requests to send."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import (
    describe_quorum_request,
    fetch_request,
    vote_request,
    vote_response,
)
from kraft_wire.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft.events import Failure
from kraft_wire.server.network.peers import Peers


class Reports:
    """The reports, in order."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self._outcomes: dict[int, Message | Failure] = {}
        self._news = trio.Event()

    def add(self, request_id: int, outcome: Message | Failure) -> None:
        assert request_id not in self._outcomes, f"request {request_id} was reported twice"
        self.ids.append(request_id)
        self._outcomes[request_id] = outcome
        self._news.set()
        self._news = trio.Event()

    async def of(self, request_id: int) -> Message | Failure:
        while request_id not in self._outcomes:
            await self._news.wait()
        return self._outcomes[request_id]

    async def failure_of(self, request_id: int) -> Failure:
        outcome = await self.of(request_id)
        assert isinstance(outcome, Failure), outcome
        return outcome

    async def epoch_of(self, request_id: int) -> int:
        """The leader's epoch in the answer to a Vote, by which tests tell answers apart."""
        outcome = await self.of(request_id)
        assert isinstance(outcome, VoteResponse), outcome
        return outcome.topics[0].partitions[0].leader_epoch


@asynccontextmanager
async def running(max_frame_bytes: int = 1 << 20) -> AsyncIterator[tuple[Peers, Reports]]:
    reports = Reports()
    peers = Peers(reports.add, reports.add, client_id="raft-client-7", max_frame_bytes=max_frame_bytes)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peers.run)
        yield peers, reports
        nursery.cancel_scope.cancel()


def vote(epoch: int = 1, *, pre_vote: bool = False, cluster_id: str | None = None) -> VoteRequest:
    partition = vote_request.PartitionData(
        replica_epoch=epoch, replica_id=7, last_offset_epoch=0, last_offset=0, pre_vote=pre_vote
    )
    topic = vote_request.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])
    return VoteRequest(cluster_id=cluster_id, topics=[topic])


def vote_answer(epoch: int = 1) -> VoteResponse:
    partition = vote_response.PartitionData(leader_id=-1, leader_epoch=epoch, vote_granted=True)
    return VoteResponse(topics=[vote_response.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])])


def fetch(
    offset: int = 0, *, epoch: int = 1, high_watermark: int = -1, max_wait_ms: int = 500
) -> FetchRequest:
    partition = fetch_request.FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=epoch,
        high_watermark=high_watermark,
    )
    topic = fetch_request.FetchTopic(
        topic=CLUSTER_METADATA, topic_id=CLUSTER_METADATA_TOPIC_ID, partitions=[partition]
    )
    return FetchRequest(
        replica_state=fetch_request.ReplicaState(replica_id=7),
        max_wait_ms=max_wait_ms,
        max_bytes=1 << 20,
        topics=[topic],
    )


def describe_quorum() -> DescribeQuorumRequest:
    partition = describe_quorum_request.PartitionData(partition_index=0)
    topic = describe_quorum_request.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])
    return DescribeQuorumRequest(topics=[topic])
