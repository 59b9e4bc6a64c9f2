"""Bind the configured listeners, and accept connections."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

import msgspec
import trio

from kraft_wire.controller.decision.api_table import ApiTable
from kraft_wire.controller.node.events import ApiRequest
from kraft_wire.metadata.quotas import CONNECTION_CREATION_RATE
from kraft_wire.server.config.endpoints import Endpoint
from kraft_wire.server.logging import get_logger
from kraft_wire.server.network.complaints import REPORT_REST_S, Refusals
from kraft_wire.server.network.connection import Connection
from kraft_wire.server.network.shared import Limits, Shared
from kraft_wire.wire.address import format_address
from kraft_wire.wire.dialect import Dialect
from kraft_wire.wire.server_side import Slot

log = get_logger(__name__)

DRAIN_SECONDS = 1.0
LEAST_BACKLOG: Final = 4096
"""A connection that finds the queue full waits a second. A longer queue costs nothing."""
ACCEPT_AGAIN_SECONDS: Final = 0.1
MOST_HELD: Final = 100
"""The refused connections that are held for a while. Others are closed at once."""
EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of accept() that pass when other connections or files are closed."""


class CannotListen(OSError):
    """An address that can't be bound."""


class Bound(msgspec.Struct, frozen=True):
    """A listener with its actual port, and its sockets."""

    endpoint: Endpoint
    sockets: tuple[trio.socket.SocketType, ...]


async def bind(endpoints: Sequence[Endpoint]) -> list[Bound]:
    """Bind every listener. Connections are refused until ``listen``. Raises CannotListen."""
    bound = []
    for endpoint in endpoints:
        with _naming(endpoint):
            sockets = await _bound_sockets(endpoint)
        port = sockets[0].getsockname()[1]
        bound.append(Bound(msgspec.structs.replace(endpoint, port=port), tuple(sockets)))
    return bound


def listen(bound: Sequence[Bound], backlog: int) -> None:
    """Let clients connect to every listener. Raises CannotListen.

    Two processes can bind one port while neither of them listens. The second one that listens gets the error.
    """
    for listener in bound:
        with _naming(listener.endpoint):
            for each in listener.sockets:
                each.listen(max(backlog, LEAST_BACKLOG))


@contextmanager
def _naming(endpoint: Endpoint) -> Iterator[None]:
    """Raise CannotListen, which names the endpoint, for an error of its sockets."""
    try:
        yield
    except OSError as error:
        address = f"{endpoint.name}://{endpoint.address}"
        raise CannotListen(
            error.errno,
            f"listener {address} can't be bound ({error}); correct its address or free the port",
        ) from error


async def _bound_sockets(endpoint: Endpoint) -> list[trio.socket.SocketType]:
    """Bind a socket to each address of the endpoint; without a host, to all addresses of this machine.

    A machine may lack IPv4 or IPv6. Addresses of that family are left out if there are others.
    """
    addresses = await trio.socket.getaddrinfo(
        endpoint.host or None, endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[trio.socket.SocketType] = []
    unsupported: OSError | None = None
    with ExitStack() as unless_all_are_bound:
        for family, kind, protocol, _, address in addresses:
            try:
                each = trio.socket.socket(family, kind, protocol)
            except OSError as error:
                if error.errno != errno.EAFNOSUPPORT:
                    raise
                unsupported = error
                continue
            unless_all_are_bound.callback(each.close)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            await each.bind(address)
            sockets.append(each)
        if unsupported is not None and not sockets:
            raise unsupported
        unless_all_are_bound.pop_all()
    return sockets


async def keep_accepting(
    listener: trio.SocketListener,
    take: Callable[[trio.SocketStream], None],
    exhausted: Callable[[OSError], None],
) -> None:
    """Accept connections until cancelled. When files or memory run out, that is reported, and waited out."""
    async with listener:
        while True:
            try:
                stream = await listener.accept()
            except OSError as error:
                if error.errno not in EXHAUSTED:
                    raise
                exhausted(error)
                await trio.sleep(ACCEPT_AGAIN_SECONDS)
            else:
                take(stream)


def advertised(endpoints: Sequence[Endpoint], bound: Sequence[Bound]) -> list[Endpoint]:
    """Return the advertised endpoints, with this machine's name and the bound port where they have none."""
    ports = {listener.endpoint.name: listener.endpoint.port for listener in bound}
    return [
        msgspec.structs.replace(
            endpoint, host=endpoint.host or socket.getfqdn(), port=endpoint.port or ports[endpoint.name]
        )
        for endpoint in endpoints
    ]


class Acceptor:
    """The open connections of all listeners. A connection beyond ``max_connections()`` is closed at once.
    That returns their number, and what sets it. ``dialects`` are those of the listeners that have one.
    ``hold_ms(address)`` is asked about each new connection: 0, or how long to hold it before it is closed.
    """

    def __init__(
        self,
        limits: Limits,
        apis: ApiTable,
        submit: Callable[[ApiRequest], None],
        abandon: Callable[[Slot], None],
        max_connections: Callable[[], tuple[int, str]],
        dialects: Mapping[str, Dialect] | None = None,
        hold_ms: Callable[[str], int] = lambda address: 0,
    ) -> None:
        self._hold_ms = hold_ms
        self._held = 0
        self._shared = Shared.of(limits, apis)
        self._speaking = {name: self._shared.speaking(each) for name, each in (dialects or {}).items()}
        self._max_connections = max_connections
        self._submit = submit
        self._abandon = abandon
        self._open: set[Connection] = set()
        self._refusals = Refusals()

    async def serve(self, listener: Bound) -> None:
        """Accept connections on all sockets of a listener, which listen already, until cancelled."""
        log.info("listening", listener=listener.endpoint.name, address=bound_address(listener))
        async with trio.open_nursery() as nursery:
            for each in listener.sockets:
                accepting = trio.SocketListener(each)
                nursery.start_soon(self._keep_accepting, accepting, listener.endpoint.name, nursery)

    async def _keep_accepting(self, listener: trio.SocketListener, name: str, nursery: trio.Nursery) -> None:
        await keep_accepting(
            listener,
            lambda stream: nursery.start_soon(self._handle, stream, name),
            lambda error: self._refusals.add(name, os.strerror(error.errno or 0), len(self._open)),
        )

    async def _handle(self, stream: trio.SocketStream, name: str) -> None:
        most, set_by = self._max_connections()
        if len(self._open) >= most:
            self._refusals.add(name, f"{set_by} allows {most} connections", len(self._open))
            await stream.aclose()
            return
        address = peer_host(stream)
        if hold_ms := self._hold_ms(address):
            self._refusals.add(name, f"{CONNECTION_CREATION_RATE} of {address} is exceeded", len(self._open))
            is_full = self._held >= min(MOST_HELD, most // 10)
            await self._hold(stream, 0 if is_full else hold_ms)
            return
        shared = self._speaking.get(name, self._shared)
        await self._run(Connection(stream, name, shared, self._submit, self._abandon))

    async def _hold(self, stream: trio.SocketStream, hold_ms: int) -> None:
        """Close a connection, but only after a while: its client doesn't come again before."""
        self._held += 1
        try:
            async with stream:
                await trio.sleep(hold_ms / 1000)
        finally:
            self._held -= 1

    async def give_turns(self) -> None:
        """Let clients go on that wait for their turn, until cancelled."""
        await self._shared.turns.run()

    async def complain(self) -> None:
        """Log how often warnings were left out, when nothing follows that would tell it, until cancelled."""
        while True:
            await trio.sleep(REPORT_REST_S)
            self._refusals.report_rest()
            self._shared.mistakes.report_rest()

    async def drain(self) -> None:
        """Wait up to DRAIN_SECONDS for responses that are ready to leave."""
        with trio.move_on_after(DRAIN_SECONDS):
            for connection in tuple(self._open):
                await connection.drained()

    async def _run(self, connection: Connection) -> None:
        self._open.add(connection)
        try:
            await connection.run()
        finally:
            self._open.discard(connection)


def peer_host(stream: trio.SocketStream) -> str:
    """Return the IP address of the other end; "" if it has gone."""
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:
        return ""


def bound_address(listener: Bound) -> str:
    """Return the address of a listener's first socket as HOST:PORT."""
    return format_address(*listener.sockets[0].getsockname()[:2])
