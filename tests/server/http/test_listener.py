"""The listener for metrics and health: how many connections it has."""

from __future__ import annotations

from contextlib import AsyncExitStack

import trio

from kraft_wire.server.config.endpoints import Endpoint
from kraft_wire.server.http.listener import MAX_CONNECTIONS, HttpListener
from kraft_wire.server.http.pages import Pages
from kraft_wire.server.network.listeners import bind, listen
from tests.support.controller_process import GIVE_UP_S

LIVE = b"GET /livez HTTP/1.1\r\nHost: h\r\n\r\n"


async def _is_served(port: int) -> bool:
    """Whether a new connection gets an answer; it is closed then."""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        return await _answers(stream)


async def _answers(stream: trio.SocketStream) -> bool:
    try:
        await stream.send_all(LIVE)
        return bytes(await stream.receive_some()).startswith(b"HTTP/1.1 200 ")
    except trio.BrokenResourceError:
        return False


async def test_one_connection_too_many_is_closed_and_its_place_is_free_again(
    nursery: trio.Nursery,
) -> None:
    bound = await bind([Endpoint("HTTP", "127.0.0.1", 0)])
    listen(bound, 1)
    nursery.start_soon(HttpListener(bound[0], Pages(list, list)).run)
    port = bound[0].endpoint.port
    async with AsyncExitStack() as stack:
        for _ in range(MAX_CONNECTIONS):
            stream = await stack.enter_async_context(await trio.open_tcp_stream("127.0.0.1", port))
            assert await _answers(stream)
        assert not await _is_served(port)
    with trio.fail_after(GIVE_UP_S):
        while not await _is_served(port):
            await trio.lowlevel.checkpoint()
