"""All connections together hold a bounded number of bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest
import trio.testing

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraft_wire.server.network import complaints
from kraft_wire.server.network.complaints import MOST_MISTAKES
from kraft_wire.server.network.held_bytes import HeldBytes
from kraft_wire.server.network.shared import Limits, Shared
from kraft_wire.wire.server_side import Slot, answer_alike
from kraft_wire.wire.shared_bytes import SharedBytes
from tests.server.network.peer import Peer, connected, connected_clients, until

MAX_HELD_BYTES = 100_000
UNFINISHED = (1 << 20).to_bytes(4, "big")


LARGE_BYTES = 32 * 1024 * 1024
"""More than the sockets' buffers take."""


def shared(max_held_bytes: int = MAX_HELD_BYTES) -> Shared:
    return Shared.of(Limits(1 << 21, 60_000, max_held_bytes=max_held_bytes), CONTROLLER_APIS)


async def test_the_connection_with_the_largest_unfinished_request_is_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    all_connections = shared()
    async with connected(shared=all_connections) as small, connected(shared=all_connections) as large:
        await small.stream.send_all(UNFINISHED + bytes(MAX_HELD_BYTES // 3))
        await trio.testing.wait_all_tasks_blocked(0.05)
        await large.stream.send_all(UNFINISHED + bytes(MAX_HELD_BYTES))
        assert await large.is_closed()
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert MAX_HELD_BYTES // 3 <= all_connections.held.total < MAX_HELD_BYTES
    (dropped,) = [r.__dict__["fields"] for r in caplog.records if r.getMessage() == "connection dropped"]
    assert f"kraft.wire.max.held.bytes allows ({MAX_HELD_BYTES})" in dropped["reason"]
    assert all_connections.held.total == 0


async def test_responses_that_are_not_read_count() -> None:
    all_connections = shared()
    records = PartitionData(partition_index=0, high_watermark=0, records=bytes(2 * MAX_HELD_BYTES))
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[records])])
    async with connected(shared=all_connections) as client:
        await client.send(FetchRequest(), 12)
        await client.wait_for_requests(1)
        client.answer(0, response)
        assert await client.is_closed()


async def test_a_connection_holds_nothing_when_its_requests_are_answered() -> None:
    all_connections = shared()
    async with connected(shared=all_connections) as client:
        for number in range(3):
            await client.heartbeats(1)
            await client.wait_for_requests(number + 1)
            client.answer(number, BrokerHeartbeatResponse())
            await client.receive()
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert all_connections.held.total == 0


async def test_clients_that_are_dropped_again_and_again_do_not_fill_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(complaints, "MISTAKE_INTERVAL_S", 3600.0)
    all_connections = shared()
    for _ in range(MOST_MISTAKES + 5):
        async with connected(shared=all_connections) as client:
            await client.stream.send_all(UNFINISHED + bytes(2 * MAX_HELD_BYTES))
            assert await client.is_closed()
    dropped = [record for record in caplog.records if record.getMessage() == "connection dropped"]
    assert len(dropped) == MOST_MISTAKES


async def test_what_a_connection_held_is_freed_when_it_ends() -> None:
    """A garbage collection, which would notice later, may be far away."""
    async with connected() as client:
        await client.heartbeats(2)
        await client.wait_for_requests(2)
        client.answer(1, BrokerHeartbeatResponse())
        waiting = cast(Slot, client.submitted[1].token)
        assert waiting.payload is not None, "the first answer comes first"
        await client.stream.aclose()
        await until(lambda: waiting.payload is None)


def answer_of(size_bytes: int) -> FetchResponse:
    partition = PartitionData(partition_index=0, high_watermark=0, records=bytes(size_bytes))
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])


@asynccontextmanager
async def replicas_that_ask(count: int, all_connections: Shared) -> AsyncIterator[list[Peer]]:
    """Replicas whose Fetches aren't answered yet. They read nothing by themselves."""
    async with connected_clients(count, all_connections) as replicas:
        for replica in replicas:
            await replica.send(FetchRequest(), 12)
            await replica.wait_for_requests(1)
        yield replicas


def slot(replica: Peer) -> Slot:
    return cast(Slot, replica.submitted[0].token)


async def test_records_that_several_replicas_get_count_once() -> None:
    all_connections = shared(LARGE_BYTES * 2)
    async with replicas_that_ask(5, all_connections) as replicas:
        answer_alike([slot(each) for each in replicas], answer_of(LARGE_BYTES))
        assert LARGE_BYTES <= all_connections.held.total < LARGE_BYTES + 10_000
        for replica in replicas:
            await replica.receive()
        await until(lambda: all_connections.held.total == 0)


async def test_those_dropped_hold_nothing_before_the_next_answer_is_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A step may make many answers, and no task runs before it ends."""
    all_connections = shared(LARGE_BYTES * 3)
    async with replicas_that_ask(8, all_connections) as replicas:
        for replica in replicas:
            answer_alike([slot(replica)], answer_of(LARGE_BYTES))
            assert all_connections.held.total <= LARGE_BYTES * 3
    assert len([r for r in caplog.records if r.getMessage() == "connection dropped"]) == 6


async def test_requests_in_work_count() -> None:
    all_connections = shared(LARGE_BYTES)
    topics = [CreatableTopic(name=f"topic-{number}") for number in range(1_000)]
    async with connected_clients(1, all_connections) as (client,):
        await client.send(CreateTopicsRequest(topics=topics), 7)
        await client.wait_for_requests(1)
        assert all_connections.held.total > 5 * sum(len(topic.name) for topic in topics)
        client.answer(0, CreateTopicsResponse())
        await client.receive()
        await until(lambda: all_connections.held.total == 0)


async def test_requests_in_work_are_dropped_last() -> None:
    """They end by themselves. If they were dropped first, no request would ever be completed."""
    all_connections = shared(400_000)
    topics = [CreatableTopic(name=f"topic-{number:06}") for number in range(1_500)]
    async with connected_clients(2, all_connections) as (in_work, waiting):
        await in_work.send(CreateTopicsRequest(topics=topics), 7)
        await in_work.wait_for_requests(1)
        held = all_connections.held.total
        await waiting.stream.send_all((1 << 20).to_bytes(4) + bytes(400_000 - held + 1))
        assert held < 400_000 and await waiting.is_closed()
        in_work.answer(0, CreateTopicsResponse())
        await in_work.receive()


class SomeHolder:
    """A connection that holds what it is told."""

    def __init__(self, held_bytes: int, shared: list[SharedBytes]) -> None:
        self.held_bytes = held_bytes
        self.in_work_bytes = 0
        self.shared = shared
        for part in shared:
            part.uses += 1
        self.is_dropped = False

    def drop(self, reason: str) -> None:
        self.is_dropped = True
        for part in self.shared:
            part.uses -= 1
        self.held_bytes, self.shared = 0, []


def test_what_one_connection_gets_several_times_counts_once() -> None:
    held = HeldBytes(700_000)
    several = SomeHolder(0, [SharedBytes(bytes(300_000))] * 10)
    others = [SomeHolder(400_000, []), SomeHolder(400_000, [])]
    for holder in (several, *others):
        held.note(holder)
    assert held.total <= 700_000
    assert [each.is_dropped for each in (several, *others)] == [False, True, False]


def test_shared_bytes_that_others_hold_are_not_freed_by_a_drop() -> None:
    held = HeldBytes(1_000_000)
    part = SharedBytes(bytes(600_000))
    replicas = [SomeHolder(10_000 + number, [part]) for number in range(5)]
    for holder in replicas:
        held.note(holder)
    other = SomeHolder(500_000, [])
    held.note(other)
    assert [each.is_dropped for each in replicas] == [True] * 5
    del part, holder
    assert held.total <= 1_000_000 and not other.is_dropped


async def test_a_response_that_is_sent_is_not_kept() -> None:
    async with connected() as client:
        await client.heartbeats(1)
        await client.wait_for_requests(1)
        client.answer(0, BrokerHeartbeatResponse())
        await client.receive()
        assert client.connection._sender._left.obj == b""
