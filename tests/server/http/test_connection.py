"""One connection for metrics and health: keep-alive, limits, and clients that err."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import trio
from prometheus_client.metrics_core import Metric

from kraft_wire.server.http.connection import (
    IDLE_SECONDS,
    MAX_BODY_BYTES,
    MAX_HEADER_BYTES,
    REQUEST_SECONDS,
    HttpConnection,
)
from kraft_wire.server.http.pages import Pages

LIVE = b"GET /livez HTTP/1.1\r\nHost: h\r\n\r\n"


def no_metrics() -> Iterator[Metric]:
    raise ArithmeticError("planted")


class Client:
    """The client's side of a connection in memory."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.stream, other = trio.testing.memory_stream_pair()
        nursery.start_soon(HttpConnection(other, Pages(no_metrics, list)).run)

    async def ask(self, data: bytes) -> bytes:
        await self.stream.send_all(data)
        return await self.receive()

    async def receive(self) -> bytes:
        """Return what arrives until the server waits; nothing at the end of the connection."""
        await trio.testing.wait_all_tasks_blocked()
        return bytes(await self.stream.receive_some())

    async def rest(self) -> bytes:
        """Return all that arrives until the server closes the connection."""
        return b"".join([bytes(data) async for data in self.stream])


@pytest.fixture
def client(nursery: trio.Nursery) -> Client:
    return Client(nursery)


async def test_a_connection_serves_many_requests(client: Client) -> None:
    for _ in range(3):
        answer = await client.ask(LIVE)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert answer.endswith(b"\r\n\r\nthe event loop runs: ok\n")


async def test_requests_that_arrive_together_are_answered_in_order(client: Client) -> None:
    await client.stream.send_all(LIVE + LIVE.replace(b"/livez", b"/other") + LIVE)
    await trio.testing.wait_all_tasks_blocked()
    answers = bytes(await client.stream.receive_some())
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200", b"404", b"200"]


async def test_the_answer_to_head_has_no_body(client: Client) -> None:
    answer = await client.ask(LIVE.replace(b"GET", b"HEAD"))
    assert b"Content-Length: 24\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


async def test_a_client_may_close(client: Client) -> None:
    assert b"Connection: close" in await client.ask(LIVE.replace(b"Host", b"Connection: close\r\nHost"))
    assert await client.rest() == b""


async def test_a_method_that_is_not_allowed_names_those_that_are(client: Client) -> None:
    answer = await client.ask(LIVE.replace(b"GET", b"POST"))
    assert answer.startswith(b"HTTP/1.1 405 Method Not Allowed\r\n")
    assert b"Allow: GET, HEAD\r\n" in answer


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x00\x00\x00\x1a\x00\x12\x00\x03 a Kafka client\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nHost: h\r\nX: " + b"x" * MAX_HEADER_BYTES * 2, 431),
        (
            b"POST /livez HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" + b"x" * MAX_BODY_BYTES * 2,
            413,
        ),
        (b"POST /livez HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n", 417),
    ],
    ids=["garbage", "no host", "long header", "long body", "continue"],
)
async def test_a_bad_request_costs_its_connection(client: Client, sent: bytes, status: int) -> None:
    await client.stream.send_all(sent)
    answer = await client.rest()
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"Connection: close\r\n" in answer


async def test_an_error_of_ours_costs_its_request_only(client: Client) -> None:
    assert (await client.ask(LIVE.replace(b"livez", b"metrics"))).startswith(b"HTTP/1.1 500 ")
    assert (await client.ask(LIVE)).startswith(b"HTTP/1.1 200 ")


async def test_a_client_that_sends_nothing_is_dropped(
    client: Client, autojump_clock: trio.testing.MockClock
) -> None:
    assert await client.rest() == b""
    assert trio.current_time() == pytest.approx(IDLE_SECONDS)


async def test_half_a_request_is_not_waited_for(
    client: Client, autojump_clock: trio.testing.MockClock
) -> None:
    await client.stream.send_all(LIVE[:-2])
    assert await client.rest() == b""
    assert trio.current_time() == pytest.approx(REQUEST_SECONDS)


async def test_a_client_that_disappears(client: Client) -> None:
    await client.stream.send_all(LIVE[:5])
    await client.stream.aclose()
