"""One client's connection: bytes to requests, responses back in the order of the requests.

Kafka's rule is that a connection's responses leave in the order in which its requests came. Requests are
handed on as soon as they are whole, up to ``MAX_PIPELINED`` of them and up to ``MAX_UNSENT_BYTES`` of
responses; past that the socket isn't read until a response has left, so that a client that only sends, or
never reads, costs a bounded amount of memory. One that takes nothing of a response for as long as it may be
silent is dropped.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import trio

from kraft_wire.controller.api_versions import API_VERSIONS
from kraft_wire.controller.apis import APIS
from kraft_wire.controller.requests import ApiRequest, Peer
from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.framing import FrameReader, frame
from kraft_wire.protocol.headers import decode_request_header, encode_response
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.registry import api_name, request_class
from kraft_wire.server.logging import get_logger

MAX_PIPELINED = 128
MAX_UNSENT_BYTES = 1024 * 1024
RECEIVE_BYTES = 64 * 1024
SEND_BYTES = 256 * 1024

log = get_logger(__name__)


class UnservedApi(ProtocolError):
    """The request names an API, or a version of it, that this listener doesn't serve."""


class Slot:
    """The place of one response in a connection's order. Serves as the request's token."""

    __slots__ = ("_connection", "api_key", "correlation_id", "payload", "version")

    def __init__(self, connection: Connection, api_key: int, version: int, correlation_id: int) -> None:
        self._connection = connection
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.payload: bytes | None = None

    def answer(self, response: Message) -> None:
        """Encode the response into its place; it leaves when those before it have left.

        One that its version has no form for is a defect of ours, which costs this connection and no more.
        """
        try:
            payload = frame(encode_response(self.api_key, self.version, self.correlation_id, response))
        except ProtocolError as error:
            self._connection.give_up(self, error)
            return
        self.payload = payload
        self._connection.answered(len(payload))


class Limits:
    """What one connection may use: bytes a frame, milliseconds of silence (as in Kafka, below 0 any)."""

    def __init__(self, max_frame_bytes: int, max_idle_ms: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        self.max_idle_ms = max_idle_ms

    @property
    def max_idle_seconds(self) -> float:
        """Infinite where any silence is allowed."""
        return self.max_idle_ms / 1000 if self.max_idle_ms >= 0 else math.inf


class Connection:
    """Runs until the peer goes, breaks the protocol, is silent for too long, or the server stops."""

    def __init__(
        self,
        stream: trio.SocketStream,
        listener: str,
        limits: Limits,
        submit: Callable[[ApiRequest], None],
        abandon: Callable[[Slot], None],
    ) -> None:
        self._stream = stream
        self._listener = listener
        self._limits = limits
        self._submit = submit
        self._abandon = abandon
        self._frames = FrameReader(limits.max_frame_bytes)
        self._slots: deque[Slot] = deque()
        self._unsent_bytes = 0
        self._scope = trio.CancelScope()
        self._writer_wanted = trio.Event()
        self._room = trio.Event()
        self._closed = False
        self._sending = False
        self._address = _peer_address(stream)

    async def run(self) -> None:
        """Serve the peer. Whatever it does wrong costs this connection only."""
        log.debug("connection opened", peer=self._address, listener=self._listener)
        try:
            with self._scope:
                async with self._stream, trio.open_nursery() as nursery:
                    nursery.start_soon(self._write)
                    await self._read()
                    nursery.cancel_scope.cancel()
        except* ProtocolError as errors:
            for error in errors.exceptions:
                log.warning("connection closed: bad request", peer=self._address, error=str(error))
        except* (trio.BrokenResourceError, trio.ClosedResourceError) as errors:
            log.debug("connection lost", peer=self._address, error=repr(errors.exceptions[0]))
        finally:
            self._closed = True
            self._room.set()
            for slot in self._slots:
                if slot.payload is None:
                    self._abandon(slot)
        log.debug("connection closed", peer=self._address)

    async def _read(self) -> None:
        while data := await self._receive():
            self._frames.feed(data)
            while (whole := self._frames.next_frame()) is not None:
                await self._wait_for_room()
                self._dispatch(whole)

    async def _receive(self) -> bytes | bytearray:
        """The next bytes; empty at the end of the stream or after too long a silence with nothing in
        flight.
        """
        while True:
            with trio.move_on_after(self._limits.max_idle_seconds):
                return await self._stream.receive_some(RECEIVE_BYTES)
            if not self._slots and not self._sending:
                log.info("connection closed: idle", peer=self._address, max_idle_ms=self._limits.max_idle_ms)
                return b""

    async def _wait_for_room(self) -> None:
        while len(self._slots) >= MAX_PIPELINED or self._unsent_bytes >= MAX_UNSENT_BYTES:
            self._room = trio.Event()
            await self._room.wait()

    def _dispatch(self, whole: bytes) -> None:
        header, body_offset = decode_request_header(whole)
        api_key, version = header.request_api_key, header.request_api_version
        slot = Slot(self, api_key, version, header.correlation_id)
        api = APIS.get(api_key)
        # An ApiVersions request from the future is answered, in version 0, with what is served (KIP-511).
        is_from_the_future = api_key == API_VERSIONS and version > APIS[API_VERSIONS].max_version
        request: Message
        if is_from_the_future:
            request, slot.version = ApiVersionsRequest(), 0
        elif api is not None and api.supports(version):
            request, _ = request_class(api_key).decode_from(whole, version, body_offset)
        else:
            raise UnservedApi(f"{api_name(api_key)} (api key {api_key}) version {version} is not served here")
        self._slots.append(slot)
        peer = Peer(listener=self._listener, address=self._address, client_id=header.client_id or "")
        self._submit(ApiRequest(slot, api_key, version, request, peer))

    def answered(self, size_bytes: int) -> None:
        """A response has come; it may be the one whose turn it is."""
        self._unsent_bytes += size_bytes
        self._writer_wanted.set()

    def give_up(self, slot: Slot, error: ProtocolError) -> None:
        """There is no way to answer this request, and so none of those after it."""
        log.error(
            "connection closed: a response by defect has no form",
            peer=self._address,
            api=api_name(slot.api_key),
            version=slot.version,
            error=str(error),
        )
        self._scope.cancel()

    async def drained(self) -> None:
        """Wait until every response whose turn it is has been handed to the socket."""
        while not self._closed and (self._sending or (self._slots and self._slots[0].payload is not None)):
            self._room = trio.Event()
            await self._room.wait()

    async def _write(self) -> None:
        while True:
            await self._writer_wanted.wait()
            self._writer_wanted = trio.Event()
            ready = []
            while self._slots and (payload := self._slots[0].payload) is not None:
                self._slots.popleft()
                ready.append(payload)
            if ready:
                self._sending = True
                await self._send(b"".join(ready) if len(ready) > 1 else ready[0])
                self._sending = False
                self._room.set()

    async def _send(self, data: bytes) -> None:
        for start in range(0, len(data), SEND_BYTES):
            piece = memoryview(data)[start : start + SEND_BYTES]
            with trio.move_on_after(self._limits.max_idle_seconds) as patience:
                await self._stream.send_all(piece)
            if patience.cancelled_caught:
                log.info("connection closed: it reads nothing", peer=self._address)
                self._scope.cancel()
                await trio.lowlevel.checkpoint()
            self._unsent_bytes -= len(piece)


def _peer_address(stream: trio.SocketStream) -> str:
    try:
        host, port, *_ = stream.socket.getpeername()
    except OSError as error:
        return f"unknown ({error.strerror})"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
