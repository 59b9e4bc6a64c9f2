"""Receive what the other side of a connection sends."""

from __future__ import annotations

import os

import trio

RECEIVE_BYTES = 64 * 1024


async def receive(stream: trio.SocketStream, most_bytes: int = RECEIVE_BYTES) -> bytes:
    """Wait for bytes, and return them; none at the end of the stream. Raises BrokenResourceError.

    Most clients wait for a response before they send again. ``SocketStream.receive_some`` tries to read
    before it waits, which costs such a client's every request a failing call.
    """
    while True:
        await trio.lowlevel.wait_readable(stream.socket)
        try:
            return os.read(stream.socket.fileno(), most_bytes)
        except BlockingIOError:
            continue  # another pass saw the readiness, as after a checksum error
        except OSError as error:
            raise trio.BrokenResourceError(f"the connection broke: {error}") from error
