"""Record both byte streams of TCP connections with a proxy, as a packet capture would."""

from __future__ import annotations

import threading
from functools import partial
from types import TracebackType
from typing import Self

import trio

from compat.harness.ports import HOST


class Recording:
    """The bytes that the client and the server of one connection sent."""

    def __init__(self) -> None:
        self.client = bytearray()
        self.server = bytearray()


class RecordingProxy:
    """A proxy that listens on a free port and forwards to ``target_port`` while its block is entered.

    While nothing listens on the target's port, connections are closed at once.
    """

    def __init__(self, target_port: int) -> None:
        self.recordings: list[Recording] = []
        self.port = 0
        self._target_port = target_port
        self._listening = threading.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._serve,), daemon=True)

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._listening.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection and stop recording."""
        self._token.run_sync_soon(self._scope.cancel)
        self._thread.join()

    async def _serve(self) -> None:
        with trio.CancelScope() as self._scope:
            self._token = trio.lowlevel.current_trio_token()
            async with trio.open_nursery() as nursery:
                serve = partial(trio.serve_tcp, self._connect, 0, host=HOST)
                (listener,) = await nursery.start(serve)
                self.port = listener.socket.getsockname()[1]
                self._listening.set()

    async def _connect(self, client: trio.SocketStream) -> None:
        try:
            server = await trio.open_tcp_stream(HOST, self._target_port)
        except OSError:
            await client.aclose()
            return
        recording = Recording()
        self.recordings.append(recording)
        async with client, server, trio.open_nursery() as nursery:
            scope = nursery.cancel_scope
            nursery.start_soon(_pass_on, client, server, recording.client, scope)
            nursery.start_soon(_pass_on, server, client, recording.server, scope)


async def _pass_on(
    source: trio.SocketStream, sink: trio.SocketStream, kept: bytearray, scope: trio.CancelScope
) -> None:
    try:
        async for data in source:
            kept += data
            await sink.send_all(data)
        await sink.send_eof()
    except trio.BrokenResourceError:
        scope.cancel()


def whole_frames(stream: bytes | bytearray) -> bytes:
    """Return the stream without an incomplete last frame, whose reader closed the connection early."""
    end = 0
    while end + 4 <= len(stream) and (next_end := end + 4 + int.from_bytes(stream[end : end + 4])) <= len(
        stream
    ):
        end = next_end
    return bytes(stream[:end])
