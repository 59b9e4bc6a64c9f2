"""Speak Kafka's wire protocol on blocking sockets: frames of any content, or requests and their responses."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self, TypeVar

from kraft_wire.protocol.message import Message
from kraft_wire.wire.client_side import ClientSide, Response
from kraft_wire.wire.framing import FrameReader

HOST = "127.0.0.1"
MAX_FRAME_BYTES = 100 * 1024 * 1024
RECEIVE_BYTES = 1 << 16

R = TypeVar("R", bound=Message)


class ConnectionClosed(ConnectionError):
    """The server closed the connection."""


class FrameClient:
    """A connection for bytes that no client of ours would send, and for the codecs of other clients."""

    def __init__(self, port: int, *, host: str = HOST, timeout_s: float = 30.0) -> None:
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frames = FrameReader(MAX_FRAME_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def fileno(self) -> int:
        """The descriptor of the socket, for ``select``."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    @property
    def local_address(self) -> str:
        """This end's address, as the server names its peer: "127.0.0.1:54321"."""
        host, port = self._socket.getsockname()
        return f"{host}:{port}"

    def send_bytes(self, data: bytes) -> None:
        """Send any bytes."""
        self._socket.sendall(data)

    def half_close(self) -> None:
        """Send nothing more, but go on receiving."""
        self._socket.shutdown(socket.SHUT_WR)

    def receive_frame(self) -> bytes:
        """Return the next frame without its length. Raises ConnectionClosed."""
        while (payload := self._frames.next_frame()) is None:
            self._frames.feed(self._receive_bytes())
        return payload

    def _receive_bytes(self) -> bytes:
        data = self._socket.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionClosed("the server closed the connection")
        return data


class WireClient(FrameClient):
    """A connection for requests at versions that the caller chooses. They may be pipelined.

    ``receive_frame`` is of use only while no request is in flight.
    """

    def __init__(
        self, port: int, *, host: str = HOST, client_id: str = "compat", timeout_s: float = 30.0
    ) -> None:
        super().__init__(port, host=host, timeout_s=timeout_s)
        self._wire = ClientSide(client_id, MAX_FRAME_BYTES)

    def send(self, request: Message, version: int) -> None:
        """Send a request without waiting for its response."""
        self._socket.sendall(self._wire.send(request, version))

    def receive(self, response_class: type[R]) -> R:
        """Return the response to the oldest request in flight.

        Raises ConnectionError, TimeoutError or ProtocolError.
        """
        while (event := self._wire.next_event()) is None:
            self._wire.receive(self._receive_bytes())
        assert isinstance(event, Response), event
        if not isinstance(event.message, response_class):
            raise TypeError(f"expected {response_class.__name__}, received {type(event.message).__name__}")
        return event.message

    def call(self, request: Message, version: int, response_class: type[R]) -> R:
        """Send a request and return its response."""
        self.send(request, version)
        return self.receive(response_class)
