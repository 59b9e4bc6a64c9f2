"""Clients take turns; brokers don't wait for them, and nothing is done for clients that are gone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import trio
import trio.testing

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.create_topics_request import CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_configs_request import DescribeConfigsRequest
from kraft_wire.protocol.messages.describe_configs_response import DescribeConfigsResponse
from kraft_wire.protocol.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.server.network import connection as connection_module
from kraft_wire.server.network import turns as turns_module
from kraft_wire.server.network.shared import Limits, Shared
from kraft_wire.server.network.turns import Turns
from tests.server.network.peer import (
    HEARTBEAT_REQUEST,
    MAX_ENTRIES,
    Peer,
    connected,
    passes_to_serve,
)


@pytest.fixture
def no_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pass is long enough already."""
    monkeypatch.setattr(turns_module, "BUDGET_S", -1.0)


async def _are_waiting(peer: Peer, requests: int) -> None:
    await trio.testing.wait_all_tasks_blocked(0.05)
    assert len(peer.submitted) == requests


@pytest.mark.usefixtures("no_budget")
async def test_a_broker_is_served_while_a_client_waits_for_its_turn() -> None:
    shared = Shared.of(Limits(1 << 20, 60_000), CONTROLLER_APIS)
    async with connected(shared=shared) as client, connected(shared=shared) as broker:
        await client.send(DescribeClusterRequest(), 1)
        await _are_waiting(client, 0)
        await broker.heartbeats(1)
        await broker.wait_for_requests(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(shared.turns.run)
            await client.wait_for_requests(1)
            nursery.cancel_scope.cancel()


REPLICAS = {17: FetchRequest(replica_state=ReplicaState(replica_id=3)), 14: FetchRequest(replica_id=3)}


@pytest.mark.usefixtures("no_budget")
@pytest.mark.parametrize("version", [14, 17])
async def test_fetches_of_consumers_wait_for_their_turn_and_those_of_replicas_do_not(version: int) -> None:
    shared = Shared.of(Limits(1 << 20, 60_000), CONTROLLER_APIS)
    async with connected(shared=shared) as consumer, connected(shared=shared) as replica:
        await consumer.send(FetchRequest(), version)
        await consumer.wait_for_requests(1)  # only then is it known as a consumer
        await consumer.send(FetchRequest(), version)
        for _ in range(3):
            await replica.send(REPLICAS[version], version)
        await replica.wait_for_requests(3)
        await _are_waiting(consumer, 1)


@pytest.mark.usefixtures("no_budget")
async def test_a_large_fetch_waits_for_its_turn_although_the_client_is_unknown() -> None:
    shared = Shared.of(Limits(1 << 20, 60_000), CONTROLLER_APIS)
    async with connected(shared=shared) as client:
        topics = [FetchTopic(topic="t", partitions=[FetchPartition(partition=n) for n in range(MAX_ENTRIES)])]
        await client.send(FetchRequest(topics=topics), 12)
        await _are_waiting(client, 0)


async def test_a_fetch_has_the_limit_of_clients() -> None:
    async with connected() as client:
        forgotten = [ForgottenTopic(topic="t", partitions=tuple(range(MAX_ENTRIES)))]
        await client.send(FetchRequest(forgotten_topics_data=forgotten), 12)
        refused = await client.receive()
        assert isinstance(refused, FetchResponse)
        assert ErrorCode(refused.error_code) is ErrorCode.POLICY_VIOLATION
        assert not client.submitted


@pytest.mark.usefixtures("no_budget")
async def test_a_broker_with_many_requests_has_one_served_in_a_long_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_module, "TURN_S", 60.0)
    async with connected() as broker:
        await broker.stream.send_all(HEARTBEAT_REQUEST * 50)
        assert await passes_to_serve(broker, 50) > 20, "all were served in a few passes of the event loop"


@pytest.mark.usefixtures("no_budget")
async def test_nothing_is_done_for_a_client_that_is_gone() -> None:
    shared = Shared.of(Limits(1 << 20, 60_000), CONTROLLER_APIS)
    async with connected(shared=shared) as client:
        for _ in range(3):
            await client.send(DescribeClusterRequest(), 1)
        await _are_waiting(client, 0)
        await client.stream.aclose()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(shared.turns.run)
            await client.is_dropped()
            nursery.cancel_scope.cancel()
        assert not client.submitted


@pytest.mark.parametrize(
    ("request_", "version", "response"),
    [
        (CreateTopicsRequest(), 7, CreateTopicsResponse()),
        (DescribeConfigsRequest(), 4, DescribeConfigsResponse()),
    ],
)
async def test_the_request_after_a_write_or_a_read_in_pieces_waits_for_its_answer(
    request_: Message, version: int, response: Message
) -> None:
    async with connected() as client:
        await client.send(request_, version)
        await client.send(DescribeClusterRequest(), 1)
        await client.wait_for_requests(1)
        await _are_waiting(client, 1)
        client.answer(0, response)
        await client.wait_for_requests(2)


@pytest.mark.usefixtures("no_budget")
async def test_all_clients_that_wait_get_their_turn() -> None:
    shared = Shared.of(Limits(1 << 20, 60_000), CONTROLLER_APIS)
    async with connected(shared=shared) as first, connected(shared=shared) as second:
        for _ in range(5):
            await first.send(DescribeClusterRequest(), 1)
            await second.send(DescribeClusterRequest(), 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(shared.turns.run)
            await first.wait_for_requests(5)
            await second.wait_for_requests(5)
            nursery.cancel_scope.cancel()


class CountedTurns(Turns):
    """Turns that count the passes of the event loop."""

    passes = 0

    def after_io_wait(self, timeout: float) -> None:
        super().after_io_wait(timeout)
        self.passes += 1


async def test_a_long_request_ends_the_pass_even_if_requests_were_short_lately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock_s = [0.0]
    monkeypatch.setattr(turns_module, "time", SimpleNamespace(perf_counter=lambda: clock_s[0]))
    turns = CountedTurns()
    for _ in range(100):
        turns.note(1e-6)
    served_in: list[int] = []

    async def serve_a_long_request() -> None:
        await turns.wait()
        served_in.append(turns.passes)
        clock_s[0] += 0.02

    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.run)
        async with trio.open_nursery() as clients:
            for _ in range(10):
                clients.start_soon(serve_a_long_request)
        nursery.cancel_scope.cancel()
    assert len(set(served_in)) == 10
