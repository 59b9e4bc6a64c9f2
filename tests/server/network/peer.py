"""A client's end of a connection, for tests."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast

import trio
import trio.testing

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.controller.node.events import ApiRequest
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.server.network.connection import Connection
from kraft_wire.server.network.shared import Limits, Shared
from kraft_wire.wire.client_side import ClientSide, Response
from kraft_wire.wire.framing import frame
from kraft_wire.wire.headers import encode_request
from kraft_wire.wire.server_side import Slot

HEARTBEAT = BrokerHeartbeatRequest.API_KEY
HEARTBEAT_REQUEST = frame(encode_request(HEARTBEAT, 1, 1, "x", BrokerHeartbeatRequest()))
MAX_FRAME_BYTES = 10_000
MAX_ENTRIES = 500


class Peer:
    """The client's end of a connection, and the requests that the server's end submitted."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.submitted: list[ApiRequest] = []
        self.abandoned: list[Slot] = []
        self.connection: Connection
        self._wire = ClientSide("peer", 1 << 26)
        self._over = trio.Event()

    async def send(self, message: Message, version: int) -> None:
        await self.stream.send_all(self._wire.send(message, version))

    async def heartbeats(self, count: int) -> None:
        for number in range(count):
            await self.send(BrokerHeartbeatRequest(broker_id=number), 1)

    async def wait_for_requests(self, count: int) -> None:
        await until(lambda: len(self.submitted) >= count)

    def answer(self, number: int, response: Message) -> None:
        cast(Slot, self.submitted[number].token).answer(response)

    async def is_dropped(self) -> None:
        """Wait until the server's end is over, without reading."""
        await self._over.wait()

    async def receive(self) -> Message:
        """The response to the oldest request that was sent: its correlation id is checked."""
        while (event := self._wire.next_event()) is None:
            data = await self.stream.receive_some()
            assert data, "the server closed the connection"
            self._wire.receive(data)
        assert isinstance(event, Response)
        return event.message

    async def serve(self, connection: Connection) -> None:
        self.connection = connection
        await connection.run()
        self._over.set()

    async def is_closed(self) -> bool:
        """Wait for the server's end to be over; what it still sends is dropped."""
        try:
            while await self.stream.receive_some():
                pass
        except trio.BrokenResourceError:
            pass
        await self._over.wait()
        return True


async def passes_to_serve(peer: Peer, count: int) -> int:
    """Return the passes of the event loop until so many requests are submitted."""
    passes = 0
    while len(peer.submitted) < count:
        await trio.lowlevel.checkpoint()
        passes += 1
    return passes


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(10):
        while not condition():
            await trio.sleep(0.001)


@asynccontextmanager
async def connected_clients(count: int, shared: Shared) -> AsyncIterator[list[Peer]]:
    """Serve several connections, whose clients have turns."""
    async with trio.open_nursery() as nursery, AsyncExitStack() as stack:
        nursery.start_soon(shared.turns.run)
        yield [await stack.enter_async_context(connected(shared=shared)) for _ in range(count)]
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def connected(
    max_idle_ms: int = 60_000, buffer_bytes: int | None = None, *, shared: Shared | None = None
) -> AsyncIterator[Peer]:
    """Serve a connection and yield its client's end. If ``shared`` is given, its turns aren't run."""
    runs_turns = shared is None
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    if buffer_bytes is not None:
        listener.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
        listener.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    async with listener, trio.open_nursery() as nursery:
        client = await trio.open_tcp_stream("127.0.0.1", listener.socket.getsockname()[1])
        peer = Peer(client)
        server = await listener.accept()
        limits = Limits(MAX_FRAME_BYTES, max_idle_ms, MAX_ENTRIES)
        shared = shared or Shared.of(limits, CONTROLLER_APIS)
        if runs_turns:
            nursery.start_soon(shared.turns.run)
        connection = Connection(server, "CONTROLLER", shared, peer.submitted.append, peer.abandoned.append)
        nursery.start_soon(peer.serve, connection)
        with trio.fail_after(20):
            async with client:
                yield peer
        nursery.cancel_scope.cancel()
