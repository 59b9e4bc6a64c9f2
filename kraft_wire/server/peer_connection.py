"""One connection to a peer, from the attempt to open it to its end: requests out, answers in.

Kafka's rule is that a connection's answers come in the order of its requests, so requests are sent without
waiting for the answers before. What the peer serves is asked first, and holds for this connection: the next
one may reach a peer that was upgraded.
"""

from __future__ import annotations

import os
import select
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec
import trio

from kraft_wire.protocol.errors import EncodeError, ProtocolError, UnsupportedVersion
from kraft_wire.protocol.framing import FrameReader, frame
from kraft_wire.protocol.headers import decode_response, encode_request
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.registry import api_name
from kraft_wire.protocol.served_versions import FIRST_ASKED_VERSION, QUESTION, ServedVersions, read_versions
from kraft_wire.raft.events import Failure
from kraft_wire.server.config_endpoints import MAX_PORT, format_address
from kraft_wire.server.logging import get_logger

RECEIVE_BYTES: Final = 256 * 1024
CONNECT_PATIENCE_S: Final = 0.5
"""An attempt to connect that has lasted so long gets no further requests: where its packets were lost, a new
one may be through long before the system repeats them."""
CORRELATION_ID_LIMIT: Final = 1 << 31
CORRELATION_ID: Final = struct.Struct(">i")

log = get_logger(__name__)


class ClosedByPeer(ConnectionError):
    """The peer ended the stream."""


class UnexpectedAnswer(ProtocolError):
    """An answer to something that wasn't asked."""


class Address(NamedTuple):
    """Where a peer listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return format_address(self.host, self.port)


class Waiting(NamedTuple):
    """A request that hasn't been sent yet."""

    request_id: int
    request: Message


class InFlight(msgspec.Struct, frozen=True, gc=False):
    """What is known of a request when its answer comes; ``request_id`` is None for our own ApiVersions."""

    correlation_id: int
    api_key: int
    version: int
    request_id: int | None


class PeerConnection:
    """``send`` may be called at once; ``run`` opens the connection and returns when it is over and all that
    was not answered has been reported. Reports come out of ``run`` only."""

    def __init__(
        self,
        address: Address,
        client_id: str,
        max_frame_bytes: int,
        answered: Callable[[int, Message], None],
        failed: Callable[[int, Failure], None],
        unreachable: Callable[[Address, str], None],
    ) -> None:
        self._address = address
        self._client_id = client_id
        self._answered = answered
        self._failed = failed
        self._unreachable = unreachable
        self._frames = FrameReader(max_frame_bytes)
        self._waiting: deque[Waiting] = deque()
        self._in_flight: deque[InFlight] = deque()
        self._send_wanted = trio.Event()
        self._correlation_id = 0
        self._arrivals: select.poll | None = None
        self._scope = trio.CancelScope()
        self._is_over = False
        self._begun_s = time.monotonic()

    def takes_requests(self) -> bool:
        """Whether it is of use. A peer that closed it while nothing was asked is noticed here, should no task
        have had the time to."""
        if self._is_over or self._scope.cancel_called:
            return False
        return not (self._is_late() or self._is_closed_while_idle())

    def close_unless_asked(self) -> None:
        """Close it if nobody waits for it."""
        if not self._unanswered():
            self.close()

    def _is_late(self) -> bool:
        return self._arrivals is None and time.monotonic() - self._begun_s >= CONNECT_PATIENCE_S

    def send(self, request_id: int, request: Message) -> None:
        """Send it after those before it."""
        self._waiting.append(Waiting(request_id, request))
        self._send_wanted.set()

    def close(self) -> None:
        """Close it at once, whatever it is doing. What isn't answered yet is TIMED_OUT: that we closed it is
        no evidence of the peer's end."""
        self._scope.cancel()

    async def run(self) -> None:
        """Returns when it is over, for whatever reason. What a report raises is passed on."""
        failure = Failure.TIMED_OUT
        with self._scope:
            failure = await self._open_and_serve()
        self._is_over = True
        for request_id in self._unanswered():
            self._failed(request_id, failure)

    def _unanswered(self) -> list[int]:
        sent = [call.request_id for call in self._in_flight if call.request_id is not None]
        return sent + [waiting.request_id for waiting in self._waiting]

    def _is_closed_while_idle(self) -> bool:
        if self._arrivals is None or self._in_flight or self._waiting:
            return False
        return bool(self._arrivals.poll(0))  # with nothing asked there is nothing to come but the end

    async def _open_and_serve(self) -> Failure:
        try:
            stream = await _open(self._address)
        except (OSError, ValueError) as error:  # a host that isn't even a name is a ValueError
            log.debug("peer can't be reached", peer=str(self._address), error=_reason(error))
            self._unreachable(self._address, _reason(error))
            return Failure.LOST
        log.debug("connection to a peer opened", peer=str(self._address))
        async with stream:
            self._arrivals = select.poll()
            self._arrivals.register(stream.socket.fileno(), select.POLLIN)
            try:
                return await self._serve(stream)
            finally:
                self._is_over = True  # before its file descriptor may be another's

    async def _serve(self, stream: trio.SocketStream) -> Failure:
        try:
            served = await self._ask_versions(stream)
        except (OSError, trio.BrokenResourceError, ProtocolError) as error:
            return self._ended_by(error)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_sending, stream, served)
            failure = await self._keep_receiving(stream)
            nursery.cancel_scope.cancel()
        return failure

    def _ended_by(self, error: Exception) -> Failure:
        if not isinstance(error, ProtocolError):
            log.info("connection to a peer lost", peer=str(self._address), error=_reason(error))
            self._unreachable(self._address, _reason(error))
            return Failure.LOST
        api = api_name(self._in_flight[0].api_key) if self._in_flight else "none"
        log.warning("connection closed: bad answer", peer=str(self._address), api=api, error=str(error))
        return Failure.GARBLED

    # Requests.

    async def _ask_versions(self, stream: trio.SocketStream) -> ServedVersions:
        version = FIRST_ASKED_VERSION
        while True:
            await stream.send_all(self._encode(None, QUESTION, version))
            answer = read_versions(await self._receive(stream), version)
            self._in_flight.popleft()
            if isinstance(answer, ServedVersions):
                return answer
            version = answer

    async def _keep_sending(self, stream: trio.SocketStream, served: ServedVersions) -> None:
        while True:
            await self._send_wanted.wait()
            self._send_wanted = trio.Event()
            data = self._take_waiting(served)
            try:
                await stream.send_all(data)
            except trio.BrokenResourceError:
                return  # whoever receives is told as well, and reports it

    def _take_waiting(self, served: ServedVersions) -> bytes:
        """The frames of all that waits. A request that the peer can't be told fails here."""
        frames = []
        for _ in range(len(self._waiting)):
            request_id, request = self._waiting.popleft()
            try:
                frames.append(self._encode(request_id, request, served.version_of(request)))
            except UnsupportedVersion as error:
                log.debug("request unsupported by a peer", peer=str(self._address), error=str(error))
                self._failed(request_id, Failure.UNSUPPORTED)
            except EncodeError as error:
                log.error("request can't be written", peer=str(self._address), error=str(error))
                self._failed(request_id, Failure.UNSENDABLE)
        return b"".join(frames)

    def _encode(self, request_id: int | None, request: Message, version: int) -> bytes:
        correlation_id = self._correlation_id
        data = frame(encode_request(request.API_KEY, version, correlation_id, self._client_id, request))
        self._in_flight.append(InFlight(correlation_id, request.API_KEY, version, request_id))
        self._correlation_id = (correlation_id + 1) % CORRELATION_ID_LIMIT
        return data

    # Answers.

    async def _keep_receiving(self, stream: trio.SocketStream) -> Failure:
        while True:
            try:
                whole = await self._receive(stream)
                call = self._in_flight[0]
                _, response = decode_response(call.api_key, call.version, whole)
            except (OSError, trio.BrokenResourceError, ProtocolError) as error:
                return self._ended_by(error)
            self._in_flight.popleft()
            assert call.request_id is not None, "ApiVersions is answered before anything else is asked"
            self._answered(call.request_id, response)

    async def _receive(self, stream: trio.SocketStream) -> bytes:
        """The next frame, which is the answer to the oldest request by its correlation id."""
        while (whole := self._frames.next_frame()) is None:
            data = await stream.receive_some(RECEIVE_BYTES)
            if not data:
                raise ClosedByPeer("closed by the peer")
            self._frames.feed(data)
        if not self._in_flight:
            raise UnexpectedAnswer(f"{len(whole)} bytes came with nothing asked")
        if len(whole) < CORRELATION_ID.size:
            raise UnexpectedAnswer(f"{len(whole)} bytes came, too few for an answer")
        (correlation_id,), expected_id = CORRELATION_ID.unpack_from(whole), self._in_flight[0].correlation_id
        if correlation_id != expected_id:
            raise UnexpectedAnswer(f"an answer to request {correlation_id} came, due is {expected_id}")
        return whole


async def _open(address: Address) -> trio.SocketStream:
    # A port that comes from the wire may be any number.
    if not 0 < address.port <= MAX_PORT:
        raise ValueError(f"{address.port} is no port")
    return await trio.open_tcp_stream(address.host, address.port)  # with TCP_NODELAY, as all of trio's


def _reason(error: Exception) -> str:
    """What the system said, below what trio made of it."""
    cause = error.__cause__
    if isinstance(cause, ExceptionGroup):
        return "; ".join(dict.fromkeys(_said(each) for each in cause.exceptions))
    return _said(cause or error)


def _said(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)  # without the address, which the text of trio's errors has
    return (isinstance(error, OSError) and error.strerror) or str(error)
