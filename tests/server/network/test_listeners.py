"""Listeners limit the number of connections."""

from __future__ import annotations

import errno
import socket
from typing import cast

import pytest
import trio

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.server.config.endpoints import Endpoint
from kraft_wire.server.network.file_limit import RESERVED_FILES, max_connections
from kraft_wire.server.network.listeners import Acceptor, Bound, CannotListen, bind, listen
from kraft_wire.server.network.shared import Limits


@pytest.mark.parametrize(("file_limit", "connections"), [(64, 32), (1024, 1024 - RESERVED_FILES)])
def test_connections_leave_files_for_the_log(file_limit: int, connections: int) -> None:
    assert max_connections(file_limit) == connections


async def _is_open(stream: trio.SocketStream) -> bool:
    with trio.move_on_after(0.05):
        return await stream.receive_some() != b""
    return True


async def test_a_connection_too_many_is_closed_and_the_others_stay() -> None:
    (bound,) = await bind([Endpoint("CONTROLLER", "127.0.0.1", 0)])
    listen([bound], backlog=5)
    port = bound.endpoint.port
    acceptor = Acceptor(
        Limits(1000, 60_000),
        CONTROLLER_APIS,
        lambda request: None,
        lambda slot: None,
        max_connections=lambda: (1, "max.connections"),
    )
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


async def test_a_connection_that_a_quota_refuses_is_held_then_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A tenth of all places is for those. They take no place of others."""
    (bound,) = await bind([Endpoint("CONTROLLER", "127.0.0.1", 0)])
    listen([bound], backlog=5)
    holds_ms = [0, 20, 3_600_000, 3_600_000, 0]

    acceptor = Acceptor(
        Limits(1000, 60_000),
        CONTROLLER_APIS,
        lambda request: None,
        lambda slot: None,
        max_connections=lambda: (10, "max.connections"),
        hold_ms=lambda address: holds_ms.pop(0),
    )

    async def connect() -> trio.SocketStream:
        stream = await trio.open_tcp_stream("127.0.0.1", bound.endpoint.port)
        await trio.testing.wait_all_tasks_blocked()
        return stream

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(acceptor.serve, bound)
            async with await connect() as served, await connect() as refused:
                assert await refused.receive_some() == b""
                async with await connect() as held, await connect() as one_too_many, await connect() as other:
                    assert await one_too_many.receive_some() == b""
                    assert [await _is_open(each) for each in (held, served, other)] == [True] * 3
            nursery.cancel_scope.cancel()
    assert _warnings(caplog)[0]["reason"] == "connection_creation_rate of 127.0.0.1 is exceeded"


def _warnings(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    assert all(record.exc_info is None for record in caplog.records)
    return [record.__dict__["fields"] for record in caplog.records if record.message == "connections refused"]


class ExhaustedListener(trio.abc.AsyncResource):
    """A system that has no file left for another connection, three times."""

    def __init__(self) -> None:
        self.accepts = 0
        self.is_closed = False

    async def aclose(self) -> None:
        self.is_closed = True

    async def accept(self) -> trio.SocketStream:
        self.accepts += 1
        await trio.lowlevel.checkpoint()
        raise OSError(errno.EMFILE if self.accepts <= 3 else errno.EBADF, "no")


async def test_a_lack_of_files_is_waited_out_and_logged_without_a_traceback(
    caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    listener = ExhaustedListener()
    acceptor = Acceptor(
        Limits(1000, 60_000),
        CONTROLLER_APIS,
        lambda request: None,
        lambda slot: None,
        lambda: (1, "max.connections"),
    )
    async with trio.open_nursery() as nursery:
        with pytest.raises(OSError, match="no") as ended:
            await acceptor._keep_accepting(cast(trio.SocketListener, listener), "CONTROLLER", nursery)
    assert ended.value.errno == errno.EBADF
    assert [fields["reason"] for fields in _warnings(caplog)] == ["Too many open files"]
    assert (listener.accepts, listener.is_closed) == (4, True)


async def test_many_connections_wait_in_the_queue() -> None:
    """A connection that finds the queue full is tried again after a second."""
    (bound,) = await bind([Endpoint("CONTROLLER", "127.0.0.1", 0)])
    listen([bound], backlog=1)
    waiting = [socket.create_connection(("127.0.0.1", bound.endpoint.port), timeout=0.9) for _ in range(200)]
    for connection in waiting:
        connection.close()
    _close(bound)


async def test_connections_are_refused_until_it_listens() -> None:
    (bound,) = await bind([Endpoint("CONTROLLER", "127.0.0.1", 0)])
    address = ("127.0.0.1", bound.endpoint.port)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    listen([bound], backlog=1)
    socket.create_connection(address).close()
    _close(bound)


async def test_the_second_that_listens_on_a_port_is_told_so() -> None:
    """Both are bound before either listens."""
    (first,) = await bind([Endpoint("CONTROLLER", "127.0.0.1", 0)])
    (second,) = await bind([first.endpoint])
    listen([first], backlog=1)
    with pytest.raises(CannotListen, match=f"CONTROLLER://127.0.0.1:{first.endpoint.port}") as refused:
        listen([second], backlog=1)
    assert refused.value.errno == errno.EADDRINUSE
    _close(first)
    _close(second)


async def test_a_family_of_addresses_that_the_machine_lacks_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make, without = trio.socket.socket, socket.AF_INET6

    def make_socket(family: int, kind: int, protocol: int) -> trio.socket.SocketType:
        if family == without:
            raise OSError(errno.EAFNOSUPPORT, "not here")
        return make(family, kind, protocol)

    monkeypatch.setattr(trio.socket, "socket", make_socket)
    (bound,) = await bind([Endpoint("CONTROLLER", "", 0)])
    assert [each.family for each in bound.sockets] == [socket.AF_INET]
    _close(bound)
    with pytest.raises(CannotListen, match="not here"):
        await bind([Endpoint("CONTROLLER", "::1", 0)])


def _close(bound: Bound) -> None:
    for each in bound.sockets:
        each.close()
