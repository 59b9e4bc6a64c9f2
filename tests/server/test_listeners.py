"""Listeners: how many connections they let in."""

from __future__ import annotations

import pytest
import trio

from kraft_wire.server.config_endpoints import Endpoint
from kraft_wire.server.connection import Limits
from kraft_wire.server.file_limit import RESERVED_FILES, max_connections
from kraft_wire.server.listeners import Acceptor, bind


@pytest.mark.parametrize(("file_limit", "connections"), [(64, 32), (1024, 1024 - RESERVED_FILES)])
def test_connections_leave_files_for_the_log(file_limit: int, connections: int) -> None:
    assert max_connections(file_limit) == connections


async def _is_open(stream: trio.SocketStream) -> bool:
    with trio.move_on_after(0.05):
        return await stream.receive_some() != b""
    return True


async def test_a_connection_too_many_is_closed_and_the_others_stay() -> None:
    (bound,) = await bind([Endpoint("CONTROLLER", "127.0.0.1", 0)], backlog=5)
    port = bound.endpoint.port
    acceptor = Acceptor(Limits(1000, 60_000), lambda request: None, lambda slot: None, max_connections=1)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(acceptor.serve, bound)
            async with await trio.open_tcp_stream("127.0.0.1", port) as first:
                await trio.testing.wait_all_tasks_blocked()
                async with await trio.open_tcp_stream("127.0.0.1", port) as second:
                    assert await second.receive_some() == b""
                assert await _is_open(first)
            await trio.testing.wait_all_tasks_blocked()
            async with await trio.open_tcp_stream("127.0.0.1", port) as third:
                assert await _is_open(third)
            nursery.cancel_scope.cancel()
