"""Cut a stream of bytes into frames: four bytes of length, big-endian, then as many bytes of payload."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from kraft_wire.protocol.errors import FrameTooLarge

__all__ = ["FrameReader", "FrameTooLarge", "frame"]

MAX_FRAME_BYTES: Final = 100 * 1024 * 1024
"""The limit of Kafka's brokers and controllers by default (socket.request.max.bytes)."""

_SIZE: Final = struct.Struct(">i")
_COMPACT_ABOVE_BYTES: Final = 64 * 1024


class FrameReader:
    """The frames in a stream of bytes. After FrameTooLarge it can't be used any more."""

    def __init__(self, max_frame_bytes: int) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()
        self._start = 0

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Take bytes that arrived."""
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """Return the next frame's payload, or None until more bytes arrive.

        Raises FrameTooLarge as soon as a length is known to be negative or above the limit.
        """
        buffer, start = self._buffer, self._start
        if len(buffer) - start < _SIZE.size:
            return None
        (size,) = _SIZE.unpack_from(buffer, start)
        if not 0 <= size <= self._max_frame_bytes:
            raise FrameTooLarge(size, self._max_frame_bytes)
        end = start + _SIZE.size + size
        if end > len(buffer):
            return None
        payload = bytes(memoryview(buffer)[start + _SIZE.size : end])
        self._advance(end)
        return payload

    @property
    def buffered_bytes(self) -> int:
        """The number of bytes that were fed and not yet returned. At the end of a complete stream it is 0."""
        return len(self._buffer) - self._start

    def _advance(self, end: int) -> None:
        if end == len(self._buffer):
            self._buffer.clear()
            self._start = 0
        elif end > _COMPACT_ABOVE_BYTES:
            del self._buffer[:end]
            self._start = 0
        else:
            self._start = end


def frame(payload: bytes) -> bytes:
    """Return a frame of a payload."""
    return _SIZE.pack(len(payload)) + payload


def frame_header(size_bytes: int) -> bytes:
    """Return what stands before a payload of this size."""
    return _SIZE.pack(size_bytes)


def frame_pieces(pieces: Sequence[bytes]) -> bytes:
    """Return a frame of a payload that is in pieces."""
    return b"".join((_SIZE.pack(sum(map(len, pieces))), *pieces))
