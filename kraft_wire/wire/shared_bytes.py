"""Keep the bytes once that the responses of several connections have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final
from weakref import WeakValueDictionary

from kraft_wire.protocol.message import Message

SHARED_FROM: Final = 16 * 1024
"""The size from which on bytes are shared. Fewer are copied into each response."""


class SharedBytes:
    """Bytes that are part of responses. They are freed with the last response that has them.

    ``uses`` is the number of responses that have them and aren't sent.
    """

    __slots__ = ("__weakref__", "data", "uses")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.uses = 0


Part = bytes | SharedBytes
"""A part of a response, which follows the one before it."""

_shared: WeakValueDictionary[int, SharedBytes] = WeakValueDictionary()


def share(data: bytes) -> SharedBytes:
    """Return the shared bytes of this very object: the same as before, while any response has them."""
    known = _shared.get(id(data))
    if known is not None and known.data is data:
        return known
    shared = _shared[id(data)] = SharedBytes(data)
    return shared


def encode_in_parts(response: Message, version: int) -> list[Part]:
    """Return the bytes of a response. Large blobs in it, such as records, are parts that are shared.

    Raises EncodeError or UnsupportedVersion.
    """
    pieces: list[bytes] = []
    response.encode_into(pieces, version)
    return list(_parts(pieces))


def _parts(pieces: Iterable[bytes]) -> Iterator[Part]:
    small: list[bytes] = []
    for piece in pieces:
        if len(piece) < SHARED_FROM:
            small.append(piece)
            continue
        if small:
            yield _part(b"".join(small))
            small = []
        yield share(piece)
    if small:
        yield _part(b"".join(small))


def _part(data: bytes) -> Part:
    return data if len(data) < SHARED_FROM else share(data)


def size_of(part: Part) -> int:
    """Return the number of bytes of a part."""
    return len(part.data if isinstance(part, SharedBytes) else part)
