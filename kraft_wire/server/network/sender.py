"""Send the responses of one connection: at once if the socket takes them, otherwise by a task."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

import trio

from kraft_wire.server.network.turns import Turns
from kraft_wire.wire.server_side import ServerSide

SEND_BYTES: Final = 256 * 1024


class Sender:
    """The responses of a connection on their way to its socket.

    ``moved`` is called when responses have been passed to the socket. ``sent_at_s`` is the time at which the
    socket last took something, or was given something to take.
    """

    def __init__(
        self, stream: trio.SocketStream, wire: ServerSide, turns: Turns, moved: Callable[[], None]
    ) -> None:
        self.is_sending = False
        self.sent_at_s = trio.current_time()
        self._stream = stream
        self._wire = wire
        self._turns = turns
        self._moved = moved
        self._left = memoryview(b"")
        self._wanted = trio.Event()

    def send_ready(self) -> None:
        """Send the responses that may leave. Never waits: the task sends what the socket doesn't take.

        The only response of a client that waits for it leaves at once, which saves a turn of the event loop.
        Several responses leave together.
        """
        if self._wire.has_one_slot and not self.is_sending and self._wire.next_unencoded() is None:
            self._left = self._write(memoryview(self._wire.take_ready()))
            if not self._left and not self._wire.has_ready:
                return
            self.is_sending = True
        self._wanted.set()

    def close(self) -> None:
        """Forget what wasn't sent: the connection is over."""
        self._left = memoryview(b"")

    async def run(self) -> None:
        """Send what ``send_ready`` leaves, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            self.is_sending = True
            await self._encode_large()
            while data := (self._left or memoryview(self._wire.take_ready())):
                self._left = memoryview(b"")
                await self._send(data)
                await self._encode_large()
            self.is_sending = False
            self._moved()

    async def _encode_large(self) -> None:
        """Encode the next response if it is large. Others have their turn in between."""
        if (slot := self._wire.next_unencoded()) is None:
            return
        for _ in slot.encode_in_pieces():
            self.sent_at_s = trio.current_time()
            self._moved()
            await self._turns.pause()

    def _write(self, data: memoryview) -> memoryview:
        """Write as much as the socket takes, and return the rest."""
        try:
            # The descriptor isn't kept: that of a closed socket may be another connection's by now.
            size = os.write(self._stream.socket.fileno(), data)
        except OSError:
            return data  # the socket is full, or broken: then the task meets the error
        self._count(size)
        return data[size:] if size < len(data) else memoryview(b"")  # an empty slice would keep all of it

    async def _send(self, data: memoryview) -> None:
        for start in range(0, len(data), SEND_BYTES):
            piece = data[start : start + SEND_BYTES]
            self.sent_at_s = trio.current_time()
            await self._stream.send_all(piece)
            self._count(len(piece))
        self.sent_at_s = trio.current_time()

    def _count(self, size: int) -> None:
        self.sent_at_s = trio.current_time()
        self._wire.sent(size)
        self._moved()
