"""A TCP proxy that keeps what passes through it: each connection's two streams, as a capture has them."""

from __future__ import annotations

import threading
from functools import partial
from types import TracebackType
from typing import Self

import trio

from compat.harness.ports import HOST


class Recording:
    """What the two ends of one connection sent."""

    def __init__(self) -> None:
        self.client = bytearray()
        self.server = bytearray()


class RecordingProxy:
    """Listens on a free port and passes everything on to ``target_port``, from entering to leaving.

    While nobody listens on the target's port, connections are closed at once.
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
        """Close every connection; nothing is recorded any more."""
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
    """Without the last frame's beginning, where its reader closed the connection before it had all come."""
    end = 0
    while end + 4 <= len(stream) and (next_end := end + 4 + int.from_bytes(stream[end : end + 4])) <= len(
        stream
    ):
        end = next_end
    return bytes(stream[:end])
