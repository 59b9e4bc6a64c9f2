"""Send requests to a peer on one connection, and report what becomes of each.

Requests are pipelined: Kafka answers the requests of a connection in their order. Which versions the peer
serves is asked first on every connection, as the peer may have been upgraded since the last one.
"""

from __future__ import annotations

import math
import os
import select
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import trio

from kraft_wire.protocol.errors import EncodeError, ProtocolError, UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.registry import api_name
from kraft_wire.raft.events import Failure
from kraft_wire.server.logging import get_logger
from kraft_wire.server.network.complaints import PeerLosses
from kraft_wire.server.network.receiver import receive
from kraft_wire.wire.address import MAX_PORT, Address
from kraft_wire.wire.client_side import ClientSide, Event, Ready, Response, ToSend
from kraft_wire.wire.dialect import Dialect
from kraft_wire.wire.traffic import Traffic

RECEIVE_BYTES: Final = 256 * 1024
CONNECT_PATIENCE_S: Final = 0.5
"""After this time an attempt to connect gets no further requests. If its packets were lost, a new attempt
may succeed long before the system sends them again."""
MAX_ANSWER_ENTRIES: Final = 10_000
"""A description of a quorum with all the observers that a leader remembers has 2,000."""

log = get_logger(__name__)


class ClosedByPeer(ConnectionError):
    """The peer closed the connection."""


class Waiting(NamedTuple):
    """A request that hasn't been sent yet."""

    request_id: int
    request: Message


class PeerConnection:
    """A connection from the attempt to open it to its end.

    ``send`` may be called at once. ``run`` opens the connection and returns when it has ended and every
    request without a response has been reported as failed. Only ``run`` calls the callbacks.
    """

    def __init__(
        self,
        address: Address,
        client_id: str,
        max_frame_bytes: int,
        answered: Callable[[int, Message], None],
        failed: Callable[[int, Failure], None],
        unreachable: Callable[[PeerConnection, str], None],
        dialect: Dialect | None = None,
        traffic: Traffic | None = None,
        losses: PeerLosses | None = None,
    ) -> None:
        self.address = address
        self._traffic = Traffic() if traffic is None else traffic
        self._losses = PeerLosses() if losses is None else losses
        self._answered = answered
        self._failed = failed
        self._unreachable = unreachable
        self._wire = ClientSide(
            client_id, max_frame_bytes, dialect=dialect, max_answer_entries=MAX_ANSWER_ENTRIES
        )
        self._waiting: deque[Waiting] = deque()
        self._send_wanted = trio.Event()
        self._arrivals: select.poll | None = None
        self._idle_stream: trio.SocketStream | None = None
        self._unsent = b""
        self._scope = trio.CancelScope()
        self._is_over = False
        self._begun_s = self._used_s = time.monotonic()

    @property
    def was_open(self) -> bool:
        """Whether the peer has accepted it."""
        return self._arrivals is not None

    def takes_requests(self) -> bool:
        """Whether another request may be sent on it.

        If the peer closed the connection while it was idle, this notices it, even before a task of ``run``
        did.
        """
        if self._is_over or self._scope.cancel_called:
            return False
        return not (self._is_late() or self._is_closed_while_idle())

    def close_if_idle(self, after_s: float = math.inf) -> None:
        """Close it unless a request is waiting or in flight, which was sent less than ``after_s`` ago."""
        if not self._unanswered() or time.monotonic() - self._used_s >= after_s:
            self.close()

    def _is_late(self) -> bool:
        return not self.was_open and time.monotonic() - self._begun_s >= CONNECT_PATIENCE_S

    def send(self, request_id: int, request: Message) -> None:
        """Send a request after those before it: at once if the socket takes it, otherwise by a task."""
        self._used_s = time.monotonic()
        self._waiting.append(Waiting(request_id, request))
        if not self._send_at_once():
            self._send_wanted.set()

    def _send_at_once(self) -> bool:
        """Send the waiting request, if it is the only one. Returns whether nothing is left for the task.

        It saves a turn of the event loop.
        """
        stream = self._idle_stream
        if stream is None or self._unsent or len(self._waiting) > 1:
            return False
        request_id, request = self._waiting[0]
        try:
            data = self._wire.send(request, request_id=request_id)
        except (UnsupportedVersion, EncodeError):
            return False  # the task reports it: a callback must not come within ``send``
        self._waiting.clear()
        try:
            size = os.write(stream.socket.fileno(), data)
        except OSError:
            size = 0  # the socket is full, or broken: then the task meets the error
        self._traffic.outgoing_bytes += size
        self._unsent = data[size:]
        return not self._unsent

    def close(self) -> None:
        """Close it at once. Requests without a response fail with TIMED_OUT: closing it ourselves is no
        evidence that the peer is down."""
        self._scope.cancel()

    async def run(self) -> None:
        """Serve the connection until it ends. Exceptions of the callbacks are passed on."""
        failure = Failure.TIMED_OUT
        with self._scope:
            failure = await self._open_and_serve()
        self._is_over = True
        for request_id in self._unanswered():
            self._failed(request_id, failure)

    def _unanswered(self) -> list[int]:
        return self._wire.unanswered() + [waiting.request_id for waiting in self._waiting]

    def _is_closed_while_idle(self) -> bool:
        if self._arrivals is None or self._wire.has_in_flight or self._waiting:
            return False
        return bool(self._arrivals.poll(0))  # an idle peer sends nothing: this is the end of the stream

    async def _open_and_serve(self) -> Failure:
        try:
            stream = await _open(self.address)
        except (OSError, ValueError) as error:  # ValueError: the host isn't even a name
            log.debug("peer unreachable", peer=str(self.address), error=_reason(error))
            self._unreachable(self, _reason(error))
            return Failure.LOST
        log.debug("peer connection opened", peer=str(self.address))
        async with stream:
            self._arrivals = select.poll()
            self._arrivals.register(stream.socket.fileno(), select.POLLIN)
            try:
                return await self._serve(stream)
            finally:
                self._is_over = True  # before another file can get its file descriptor

    async def _serve(self, stream: trio.SocketStream) -> Failure:
        try:
            await self._open_wire(stream)
        except (OSError, trio.BrokenResourceError, ProtocolError) as error:
            return self._ended_by(error)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_sending, stream)
            failure = await self._keep_receiving(stream)
            nursery.cancel_scope.cancel()
        return failure

    async def _open_wire(self, stream: trio.SocketStream) -> None:
        """Open the connection as Kafka's protocol has it, up to its first request."""
        await self._send_all(stream, self._wire.begin())
        while isinstance(event := await self._next_event(stream), ToSend):
            await self._send_all(stream, event.data)
        assert isinstance(event, Ready)

    def _ended_by(self, error: Exception) -> Failure:
        if not isinstance(error, ProtocolError):
            self._losses.lost(str(self.address), _reason(error))
            self._unreachable(self, _reason(error))
            return Failure.LOST
        due = self._wire.due_api_key
        self._losses.dropped(str(self.address), "none" if due is None else api_name(due), str(error))
        return Failure.GARBLED

    # Requests.

    async def _keep_sending(self, stream: trio.SocketStream) -> None:
        while True:
            self._idle_stream = stream
            await self._send_wanted.wait()
            self._idle_stream = None
            self._send_wanted = trio.Event()
            data = self._unsent + self._take_waiting()
            self._unsent = b""
            try:
                await self._send_all(stream, data)
            except trio.BrokenResourceError:
                return  # _keep_receiving gets the same error, and reports it

    async def _send_all(self, stream: trio.SocketStream, data: bytes) -> None:
        await stream.send_all(data)
        self._traffic.outgoing_bytes += len(data)

    def _take_waiting(self) -> bytes:
        """Return the bytes of all waiting requests. A request that can't be sent to this peer fails here."""
        frames = []
        for _ in range(len(self._waiting)):
            request_id, request = self._waiting.popleft()
            try:
                frames.append(self._wire.send(request, request_id=request_id))
            except UnsupportedVersion as error:
                log.debug("request unsupported", peer=str(self.address), error=str(error))
                self._failed(request_id, Failure.UNSUPPORTED)
            except EncodeError as error:
                log.error("request encoding failed", peer=str(self.address), error=str(error))
                self._failed(request_id, Failure.UNSENDABLE)
        return b"".join(frames)

    # Responses.

    async def _keep_receiving(self, stream: trio.SocketStream) -> Failure:
        while True:
            try:
                event = await self._next_event(stream)
            except (OSError, trio.BrokenResourceError, ProtocolError) as error:
                return self._ended_by(error)
            assert isinstance(event, Response), "the connection is open"
            self._answered(event.request_id, event.message)

    async def _next_event(self, stream: trio.SocketStream) -> Event:
        while (event := self._wire.next_event()) is None:
            data = await receive(stream, RECEIVE_BYTES)
            if not data:
                raise ClosedByPeer("closed by the peer")
            self._traffic.incoming_bytes += len(data)
            self._wire.receive(data)
        return event


async def _open(address: Address) -> trio.SocketStream:
    # A port from the wire may be any number.
    if not 0 < address.port <= MAX_PORT:
        raise ValueError(f"{address.port} is not a port")
    return await trio.open_tcp_stream(address.host, address.port)  # trio sets TCP_NODELAY


def _reason(error: Exception) -> str:
    """The system's own words, without what trio wraps around them."""
    cause = error.__cause__
    if isinstance(cause, ExceptionGroup):
        return "; ".join(dict.fromkeys(_system_text(each) for each in cause.exceptions))
    return _system_text(cause or error)


def _system_text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)  # trio's text also has the address
    return (isinstance(error, OSError) and error.strerror) or str(error)
