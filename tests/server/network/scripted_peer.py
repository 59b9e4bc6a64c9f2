"""A peer on a real socket whose answers, right or wrong, each test writes itself."""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

import trio

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraft_wire.protocol.registry import request_class
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.wire.framing import FrameReader, frame
from kraft_wire.wire.headers import (
    API_VERSIONS_KEY,
    decode_request_header,
    encode_response,
)

HOST = "127.0.0.1"
GIVE_UP_S = 30.0

ApiRanges = Mapping[int, tuple[int, int]]
OURS: ApiRanges = {1: (4, 18), 18: (0, 5), 52: (0, 2), 53: (0, 1), 55: (0, 2), 59: (0, 1)}


class Asked(NamedTuple):
    """A request as it came."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    request: Message


class Accepted:
    """One accepted connection."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.frames = FrameReader(1 << 24)

    async def receive(self) -> Asked:
        """The next request."""
        while (whole := self.frames.next_frame()) is None:
            data = await self.stream.receive_some()
            assert data, "the connection was closed"
            self.frames.feed(data)
        header, start = decode_request_header(whole)
        api_key, version = header.request_api_key, header.request_api_version
        request, _ = request_class(api_key).decode_from(whole, version, start)
        return Asked(api_key, version, header.correlation_id, header.client_id, request)

    async def answer(self, asked: Asked, response: Message) -> None:
        payload = encode_response(asked.api_key, asked.version, asked.correlation_id, response)
        await self.stream.send_all(frame(payload))

    async def answer_versions(self, apis: ApiRanges = OURS) -> Asked:
        """Receive the question for versions, and answer it."""
        asked = await self.receive()
        assert asked.api_key == API_VERSIONS_KEY
        await self.answer(asked, versions_response(apis))
        return asked

    async def is_silent(self) -> bool:
        """Whether nothing more comes for a while."""
        with trio.move_on_after(0.05):
            await self.stream.receive_some()
            return False
        return self.frames.buffered_bytes == 0

    async def is_closed_by_peer(self) -> bool:
        """Wait for the end of the stream; what still comes is dropped."""
        try:
            while await self.stream.receive_some():
                pass
        except trio.BrokenResourceError:
            pass
        return True

    def send_now(self, data: bytes) -> None:
        """Send without giving any other task a turn."""
        with socket.fromfd(self.stream.socket.fileno(), socket.AF_INET, socket.SOCK_STREAM) as same:
            assert same.send(data) == len(data)

    def close_now(self) -> None:
        """End the stream without giving any other task a turn."""
        self.stream.socket.close()

    def reset(self) -> None:
        """End it with RST."""
        self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_now()


def versions_response(apis: ApiRanges, error_code: int = 0) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=error_code, api_keys=[ApiVersion(key, low, high) for key, (low, high) in apis.items()]
    )


class ScriptedPeer:
    """A listener; connections are accepted as the test asks for them."""

    def __init__(self, listener: trio.SocketListener) -> None:
        self._listener = listener
        self._accepted: list[Accepted] = []
        self.peer = Peer(1, HOST, listener.socket.getsockname()[1])

    @property
    def address(self) -> str:
        return f"{self.peer.host}:{self.peer.port}"

    async def accept(self) -> Accepted:
        accepted = Accepted(await self._listener.accept())
        self._accepted.append(accepted)
        return accepted

    async def connected(self, apis: ApiRanges = OURS) -> Accepted:
        """The next connection, past the question for versions."""
        accepted = await self.accept()
        await accepted.answer_versions(apis)
        return accepted

    async def aclose(self) -> None:
        """Close the listener and every connection."""
        await self._listener.aclose()
        for accepted in self._accepted:
            await accepted.stream.aclose()


@asynccontextmanager
async def listening() -> AsyncIterator[ScriptedPeer]:
    """A peer that listens, for a limited time."""
    (listener,) = await trio.open_tcp_listeners(0, host=HOST)
    scripted = ScriptedPeer(listener)
    with trio.fail_after(GIVE_UP_S):
        try:
            yield scripted
        finally:
            with trio.CancelScope(shield=True):
                await scripted.aclose()
