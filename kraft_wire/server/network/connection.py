"""Serve one client's connection: sockets and time-outs around the server's side of the wire.

A client that only sends, or never reads, costs a bounded amount of memory: while the server's side has no
room for another request, the socket isn't read. A client that doesn't take the next piece of its responses
within the maximum idle time is disconnected.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

from kraft_wire.controller.decision.api_table import ApiTable
from kraft_wire.controller.node.events import ApiRequest, Caller
from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.registry import api_name
from kraft_wire.server.logging import get_logger
from kraft_wire.wire.address import format_address
from kraft_wire.wire.server_side import Request, ServerSide, Slot

RECEIVE_BYTES = 64 * 1024
SEND_BYTES = 256 * 1024
TURN_S = 0.002
"""A connection that has sent many requests is served for so long, then all others have their turn."""
WAITING_CLIENT_S = 0.1
"""The shortest time until a client that waits for its answer is looked at again."""

log = get_logger(__name__)


class Limits:
    """The limits of one connection: the size of a frame, and the idle time (as in Kafka, none if below 0)."""

    def __init__(self, max_frame_bytes: int, max_idle_ms: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        self.max_idle_ms = max_idle_ms

    @property
    def max_idle_seconds(self) -> float:
        """The maximum idle time; infinite if there is no limit."""
        return self.max_idle_ms / 1000 if self.max_idle_ms >= 0 else math.inf


class Connection:
    """A connection, served until the client closes it, breaks the protocol or is idle for too long, or until
    the server stops."""

    def __init__(
        self,
        stream: trio.SocketStream,
        listener: str,
        limits: Limits,
        apis: ApiTable,
        submit: Callable[[ApiRequest], None],
        abandon: Callable[[Slot], None],
        report_mistake: Callable[[str, str], None],
    ) -> None:
        self._stream = stream
        self._listener = listener
        self._limits = limits
        self._apis = apis
        self._submit = submit
        self._abandon = abandon
        self._report_mistake = report_mistake
        self._wire = ServerSide(
            self._served_request, limits.max_frame_bytes, self._wake_writer, self._give_up
        )
        self._scope = trio.CancelScope()
        self._writer_wanted = trio.Event()
        self._room = trio.Event()
        self._closed = False
        self._sending = False
        self._received_at_s = self._sent_at_s = trio.current_time()
        self._address = _peer_address(stream)
        self._caller = Caller(listener, self._address)

    async def run(self) -> None:
        """Serve the client. An error of its own costs this connection only."""
        log.debug("connection opened", peer=self._address, listener=self._listener)
        try:
            with self._scope:
                async with self._stream, trio.open_nursery() as nursery:
                    nursery.start_soon(self._write)
                    nursery.start_soon(self._end_silence)
                    await self._read()
                    nursery.cancel_scope.cancel()
        except* ProtocolError as errors:
            for error in errors.exceptions:
                self._report_mistake(self._address, str(error))
        except* (trio.BrokenResourceError, trio.ClosedResourceError) as errors:
            log.debug("connection lost", peer=self._address, error=repr(errors.exceptions[0]))
        finally:
            self._closed = True
            self._room.set()
            for slot in self._wire.unanswered():
                self._abandon(slot)
        log.debug("connection closed", peer=self._address)

    # Requests.

    async def _read(self) -> None:
        while data := await self._stream.receive_some(RECEIVE_BYTES):
            self._received_at_s = trio.current_time()
            self._wire.receive(data)
            turn_ends_s = self._received_at_s + TURN_S
            while (whole := self._wire.next_frame()) is not None:
                while not self._wire.has_room:
                    self._room = trio.Event()
                    await self._room.wait()
                self._submit(self._api_request(self._wire.take(whole)))
                if trio.current_time() > turn_ends_s:
                    await trio.lowlevel.checkpoint()
                    turn_ends_s = trio.current_time() + TURN_S

    def _served_request(self, api_key: int, version: int) -> type[Message] | None:
        """Return the class of a request that this listener serves, None if it doesn't."""
        api = self._apis.served(api_key, version)
        return None if api is None else api.request_class

    def _api_request(self, request: Request) -> ApiRequest:
        if request.client_id != self._caller.client_id:  # most clients have one id
            self._caller = Caller(self._listener, self._address, request.client_id)
        return ApiRequest(request.slot, request.api_key, request.version, request.message, self._caller)

    # Responses.

    def _wake_writer(self) -> None:
        """Have the writer look whether the next response is ready."""
        self._writer_wanted.set()

    def _give_up(self, slot: Slot, error: ProtocolError) -> None:
        """Close the connection: this request can't be answered, and so none of those after it."""
        log.error(
            "connection dropped",
            peer=self._address,
            reason="response can't be encoded",
            api=api_name(slot.api_key),
            version=slot.version,
            error=str(error),
        )
        self._scope.cancel()

    async def drained(self) -> None:
        """Wait until every response that may leave has been passed to the socket."""
        while not self._closed and (self._sending or self._wire.has_ready):
            self._room = trio.Event()
            await self._room.wait()

    async def _write(self) -> None:
        while True:
            await self._writer_wanted.wait()
            self._writer_wanted = trio.Event()
            if data := self._wire.take_ready():
                self._sending = True
                await self._send(data)
                self._sending = False
                self._room.set()

    async def _send(self, data: bytes) -> None:
        for start in range(0, len(data), SEND_BYTES):
            piece = memoryview(data)[start : start + SEND_BYTES]
            self._sent_at_s = trio.current_time()
            await self._stream.send_all(piece)
            self._wire.sent(len(piece))
        self._sent_at_s = trio.current_time()

    def _idle_at_s(self) -> float:
        """Return the time at which the connection is idle, or the client takes too long to read."""
        since_s = self._sent_at_s if self._sending else max(self._received_at_s, self._sent_at_s)
        return since_s + self._limits.max_idle_seconds

    async def _end_silence(self) -> None:
        """Close the connection if it is idle, or if the client doesn't read, for the maximum idle time.

        One task sleeps through it: a time-out around every receive and send would cost more than the request.
        """
        while True:
            await trio.sleep_until(self._idle_at_s())
            # If the process was suspended, what has arrived is read first. The pass in which it wakes may see
            # the time, but not the sockets: epoll was interrupted. The reader runs in the next pass.
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            if trio.current_time() < self._idle_at_s():
                continue
            if self._sending or not self._wire.has_slots:
                break
            await trio.sleep(max(self._limits.max_idle_seconds, WAITING_CLIENT_S))
        reason = "response not read" if self._sending else "idle"
        log.info(
            "connection dropped", peer=self._address, reason=reason, max_idle_ms=self._limits.max_idle_ms
        )
        self._scope.cancel()


def _peer_address(stream: trio.SocketStream) -> str:
    try:
        host, port, *_ = stream.socket.getpeername()
    except OSError as error:
        return f"unknown ({error.strerror})"
    return format_address(host, port)
