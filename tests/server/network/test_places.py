"""Clients' large requests are begun when those before them leave room."""

from __future__ import annotations

from random import Random

import pytest
import trio
import trio.testing

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.controller.node.events import ApiRequest
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_quorum_request import DescribeQuorumRequest, TopicData
from kraft_wire.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.messages.envelope_response import EnvelopeResponse
from kraft_wire.server.network.places import MOST_BYTES, SMALL_BYTES, Places
from kraft_wire.server.network.shared import Limits, Shared
from kraft_wire.server.network.turns import Turns
from kraft_wire.wire.headers import encode_request
from tests.server.network.peer import Peer, connected, connected_clients

VERSION = 7
NAME_BYTES = 16_000


def shared(max_idle_ms: int = 60_000, max_held_bytes: int = 1 << 30) -> Shared:
    limits = Limits(2 * MOST_BYTES, max_idle_ms, max_held_bytes=max_held_bytes)
    return Shared.of(limits, CONTROLLER_APIS)


def names(size_bytes: int) -> list[str]:
    lengths = [NAME_BYTES] * (size_bytes // NAME_BYTES) + [size_bytes % NAME_BYTES]
    return ["t" * length for length in lengths]


def creation(size_bytes: int) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name) for name in names(size_bytes)])


def forwarded(request: Message, version: int) -> EnvelopeRequest:
    data = encode_request(request.API_KEY, version, 1, "client", request)
    return EnvelopeRequest(request_data=data, request_principal=b"", client_host_address=b"\x7f\0\0\1")


async def submitted(peer: Peer) -> list[ApiRequest]:
    """What the server has begun, when nothing more happens."""
    await trio.testing.wait_all_tasks_blocked(0.02)
    return peer.submitted


async def test_a_large_request_waits_for_those_of_other_clients() -> None:
    async with connected_clients(2, shared()) as (first, second):
        await first.send(creation(MOST_BYTES // 2), VERSION)
        await first.wait_for_requests(1)
        await second.send(creation(MOST_BYTES // 2 + 1), VERSION)
        assert not await submitted(second)
        first.answer(0, CreateTopicsResponse())
        await second.wait_for_requests(1)


async def test_a_client_that_is_gone_leaves_room() -> None:
    async with connected_clients(2, shared()) as (second, first):
        await first.send(creation(MOST_BYTES), VERSION)
        await first.wait_for_requests(1)
        await second.send(creation(SMALL_BYTES), VERSION)
        assert not await submitted(second)
        await first.stream.aclose()
        await second.wait_for_requests(1)


async def test_a_request_that_is_larger_than_the_room_is_in_work_alone() -> None:
    async with connected_clients(2, shared()) as (first, second):
        await first.send(creation(SMALL_BYTES), VERSION)
        await first.wait_for_requests(1)
        await second.send(creation(MOST_BYTES + 1), VERSION)
        assert not await submitted(second)
        first.answer(0, CreateTopicsResponse())
        await second.wait_for_requests(1)
        await first.send(creation(SMALL_BYTES), VERSION)
        assert len(await submitted(first)) == 1


async def test_nothing_else_waits_for_large_requests() -> None:
    async with connected_clients(2, shared()) as (large, other):
        await large.send(creation(MOST_BYTES), VERSION)
        await large.wait_for_requests(1)
        await other.send(creation(10), VERSION)
        await other.wait_for_requests(1)
        other.answer(0, CreateTopicsResponse())
        await other.heartbeats(1)
        await other.wait_for_requests(2)


async def test_a_client_has_one_place() -> None:
    """Also if the next request need not wait for the answer to this one."""
    topics = [TopicData(topic_name=name) for name in names(MOST_BYTES)]
    async with connected_clients(2, shared()) as (first, second):
        for _ in range(2):
            await first.send(DescribeQuorumRequest(topics), 2)
        await first.wait_for_requests(1)
        assert len(await submitted(first)) == 1
        first.answer(0, DescribeQuorumResponse())
        await first.wait_for_requests(2)
        first.answer(1, DescribeQuorumResponse())
        await second.send(creation(MOST_BYTES), VERSION)
        await second.wait_for_requests(1)


async def test_a_small_request_behind_a_large_one_takes_no_room() -> None:
    """It may wait for long, such as a poll."""
    topics = [TopicData(topic_name=name) for name in names(MOST_BYTES)]
    async with connected_clients(2, shared()) as (first, second):
        await first.send(DescribeQuorumRequest(topics), 2)
        await first.send(DescribeQuorumRequest(), 2)
        await first.wait_for_requests(2)
        first.answer(0, DescribeQuorumResponse())
        await second.send(creation(MOST_BYTES), VERSION)
        await second.wait_for_requests(1)


async def test_an_answer_to_a_small_request_behind_a_large_one_leaves_no_room() -> None:
    topics = [TopicData(topic_name=name) for name in names(MOST_BYTES)]
    async with connected_clients(2, shared()) as (first, second):
        await first.send(DescribeQuorumRequest(topics), 2)
        await first.send(DescribeQuorumRequest(), 2)
        await first.wait_for_requests(2)
        first.answer(1, DescribeQuorumResponse())
        await second.send(creation(MOST_BYTES), VERSION)
        assert not await submitted(second)


async def test_the_next_envelope_waits_for_the_write_in_this_one() -> None:
    async with connected() as broker:
        for _ in range(2):
            await broker.send(forwarded(creation(10), VERSION), 0)
        await broker.wait_for_requests(1)
        assert len(await submitted(broker)) == 1
        broker.answer(0, EnvelopeResponse(response_data=None))
        await broker.wait_for_requests(2)


async def test_the_next_envelope_does_not_wait_for_the_read_in_this_one() -> None:
    async with connected() as broker:
        for _ in range(2):
            await broker.send(forwarded(DescribeClusterRequest(), 1), 0)
        await broker.wait_for_requests(2)


@pytest.mark.parametrize("order", ["answer, drop", "drop, answer"])
async def test_a_client_that_is_dropped_when_its_turn_comes_leaves_room(order: str) -> None:
    """Both happen in one step. No task runs in between."""
    async with connected_clients(3, shared()) as (first, second, third):
        await first.send(creation(MOST_BYTES), VERSION)
        await first.wait_for_requests(1)
        await second.send(creation(MOST_BYTES), VERSION)
        await submitted(second)
        await third.send(creation(MOST_BYTES), VERSION)
        await submitted(third)
        if order == "answer, drop":
            first.answer(0, CreateTopicsResponse())
            second.connection.drop("test")
        else:
            second.connection.drop("test")
            first.answer(0, CreateTopicsResponse())
        await third.wait_for_requests(1)
        assert not second.submitted


async def test_clients_that_are_dropped_together_leave_room() -> None:
    for dropped_first in (0, 1):
        async with connected_clients(3, shared()) as clients:
            for client in clients:
                await client.send(creation(MOST_BYTES), VERSION)
                await submitted(client)
            for number in (dropped_first, 1 - dropped_first):
                clients[number].connection.drop("test")
            await clients[2].wait_for_requests(1)
            assert not clients[1].submitted


async def test_a_request_is_not_begun_after_its_client_was_dropped() -> None:
    """Nobody would abandon it."""
    async with connected_clients(2, shared()) as (first, second):
        await first.send(creation(10), VERSION)
        await first.wait_for_requests(1)
        await first.send(creation(MOST_BYTES), VERSION)
        await submitted(first)
        first.connection.drop("test")
        await second.send(creation(MOST_BYTES), VERSION)
        await second.wait_for_requests(1)
        assert len(await submitted(first)) == 1
        assert list(first.abandoned) == [first.submitted[0].token]


async def test_the_memory_limit_costs_no_room() -> None:
    """The connection that asks for room is the one that is dropped for it."""
    together = shared(max_held_bytes=MOST_BYTES)
    async with connected_clients(2, together) as (first, second):
        await first.send(creation(MOST_BYTES + 1), VERSION)
        assert await first.is_closed()
        await second.send(creation(SMALL_BYTES), VERSION)
        await second.wait_for_requests(1)


async def test_an_answer_to_another_request_leaves_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The large request has its place while it waits for its turn."""
    together = shared()
    is_over = False
    monkeypatch.setattr(Turns, "is_over", property(lambda turns: is_over))
    async with connected(shared=together) as first, connected(shared=together) as second:
        await first.send(DescribeQuorumRequest(), 2)
        await first.wait_for_requests(1)
        is_over = True
        for client in (first, second):
            await client.send(creation(MOST_BYTES), VERSION)
            await submitted(client)
        first.answer(0, DescribeQuorumResponse())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(together.turns.run)
            await first.wait_for_requests(2)
            assert not await submitted(second)
            nursery.cancel_scope.cancel()


async def test_a_client_that_waits_for_room_is_not_idle() -> None:
    async with connected_clients(2, shared(max_idle_ms=30)) as (first, second):
        await first.send(creation(MOST_BYTES), VERSION)
        await first.wait_for_requests(1)
        await second.send(creation(MOST_BYTES), VERSION)
        await trio.sleep(0.2)
        first.answer(0, CreateTopicsResponse())
        await second.wait_for_requests(1)


@pytest.mark.parametrize("seed", range(50))
async def test_room_is_never_exceeded_and_never_lost(
    seed: int, autojump_clock: trio.testing.MockClock
) -> None:
    random = Random(seed)
    places = Places()
    in_work: dict[int, int] = {}

    async def work(number: int, size_bytes: int, scope: trio.CancelScope) -> None:
        place = places.ask(size_bytes)
        try:
            with scope:
                await place.wait()
                in_work[number] = size_bytes
                assert len(in_work) == 1 or sum(in_work.values()) <= MOST_BYTES
                await trio.sleep(random.random())
        finally:
            in_work.pop(number, None)
            place.leave()
            place.leave()

    async with trio.open_nursery() as nursery:
        for number in range(40):
            scope = trio.CancelScope()
            nursery.start_soon(work, number, random.randrange(1, MOST_BYTES * 3 // 2), scope)
            await trio.sleep(random.random() / 10)
            if random.random() < 0.2:
                scope.cancel()
    assert places.ask(MOST_BYTES * 2).is_granted
