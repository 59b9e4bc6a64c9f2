"""Encode large responses in pieces, so that the event loop can do other things in between.

A response is large if the array that makes it large has many elements, which hold arrays themselves, such as
the configurations of many topics. The elements are encoded some at a time, each time as a response of their
own; what stands before and after the array is cut off. So is the response inside an envelope.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from typing import Any, Final

import msgspec

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.schema import Field, Structure
from kraft_wire.protocol.varint import uvarint
from kraft_wire.wire.large_envelope import LargeEnvelope

LARGE: Final = 5_000
"""A response of more entries is large."""
PIECE: Final = 1_000
"""The entries that are encoded at a time, about. They take two milliseconds."""
_ENTRY_BYTES: Final = 50
_COUNT_BYTES: Final = 4
"""The size of an array's count in versions that aren't flexible."""


def is_large(response: Message) -> bool:
    """Whether a response should be encoded in pieces."""
    if isinstance(response, LargeEnvelope):
        return True
    field = _main_array(type(response))
    if field is None:
        return False
    elements = getattr(response, field.name) or ()
    return len(elements) > LARGE or sum(map(_entries, elements)) > LARGE


def estimated_bytes(response: Message) -> int:
    """Return about how many bytes a large response has, judged by some of its elements."""
    if isinstance(response, LargeEnvelope):
        return estimated_bytes(response.inner)
    field = _main_array(type(response))
    assert field is not None, "a large response has an array"
    elements = getattr(response, field.name)
    step = 1 + len(elements) // LARGE
    return _ENTRY_BYTES * step * sum(map(_entries, elements[::step]))


def encode_in_pieces(response: Message, version: int) -> Iterator[bytes]:
    """Yield the bytes of a large response, in its version. Raises EncodeError or UnsupportedVersion.

    Some pieces of an envelope are empty: the length of the response inside stands before it.
    """
    if isinstance(response, LargeEnvelope):
        yield from _envelope_in_pieces(response)
    else:
        yield from _array_in_pieces(response, version)


def _envelope_in_pieces(envelope: LargeEnvelope) -> Iterator[bytes]:
    pieces = [envelope.header()]
    for piece in _array_in_pieces(envelope.inner, envelope.inner_version):
        pieces.append(piece)
        yield b""
    yield b"".join(envelope.around(pieces))


def _array_in_pieces(response: Message, version: int) -> Iterator[bytes]:
    field = _main_array(type(response))
    assert field is not None, "a large response has an array"
    elements = getattr(response, field.name)
    before, after = _around(response, field, version)
    is_flexible = version >= type(response).FLEXIBLE_FROM
    yield before + _count(len(elements), flexible=is_flexible)
    for chunk in _chunks(elements):
        encoded = _with(response, field, chunk).encode(version)
        start = len(before) + len(_count(len(chunk), flexible=is_flexible))
        yield encoded[start : len(encoded) - len(after)]
    yield after


@cache
def _main_array(cls: type[Message]) -> Field | None:
    """Return the first array of structures of a response; None if it has none."""
    return next((field for field in cls.FIELDS if field.array and field.struct is not None), None)


def _entries(element: Structure) -> int:
    return 1 + sum(len(getattr(element, name) or ()) for name in _array_names(type(element)))


@cache
def _array_names(cls: type[Structure]) -> tuple[str, ...]:
    return tuple(field.name for field in cls.FIELDS if field.array)


def _chunks(elements: list[Any]) -> Iterator[list[Any]]:
    chunk: list[Any] = []
    size = 0
    for element in elements:
        chunk.append(element)
        size += _entries(element)
        if size >= PIECE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _around(response: Message, field: Field, version: int) -> tuple[bytes, bytes]:
    """Return the bytes before the count of the array and after its last element."""
    without = _with(response, field, []).encode(version)
    with_one = _with(response, field, getattr(response, field.name)[:1]).encode(version)
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(without, with_one, strict=False)))
    is_flexible = version >= type(response).FLEXIBLE_FROM
    count_bytes = 1 if is_flexible else _COUNT_BYTES
    start = alike + 1 - count_bytes  # counts of 0 and 1 differ in their last byte
    return without[:start], without[start + count_bytes :]


def _with(response: Message, field: Field, elements: list[Any]) -> Message:
    changes: dict[str, Any] = {field.name: elements}
    return msgspec.structs.replace(response, **changes)


def _count(count: int, *, flexible: bool) -> bytes:
    return uvarint(count + 1) if flexible else count.to_bytes(_COUNT_BYTES)
