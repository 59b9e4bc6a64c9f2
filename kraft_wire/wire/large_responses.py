"""Encode large responses in pieces, so that the event loop can do other things in between.

A response is large if one of its arrays has many elements, which hold arrays themselves, such as the
configurations of many topics. That array is found by its entries: before the topics of a Metadata response
there are the brokers. The elements are encoded some at a time, each time as a response of their
own; what stands before and after the array is cut off. The same is done with a large array in an element, and
with a response inside an envelope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import takewhile
from typing import Any, Final, TypeVar

import msgspec

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.schema import Field, Structure
from kraft_wire.protocol.varint import uvarint
from kraft_wire.wire.large_envelope import LargeEnvelope

S = TypeVar("S", bound=Structure)

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
    for field in _arrays(type(response)):
        elements = getattr(response, field.name)
        if elements and (len(elements) > LARGE or sum(map(_entries, elements)) > LARGE):
            return True
    return False


def estimated_bytes(response: Message) -> int:
    """Return about how many bytes a large response has, judged by some of its elements."""
    if isinstance(response, LargeEnvelope):
        return estimated_bytes(response.inner)
    return _ENTRY_BYTES * max(_estimated_entries(response, field) for field in _arrays(type(response)))


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
    field = _main_array(response, _arrays_of_version(type(response), version))
    array = _Array(partial(_with, response, field), getattr(response, field.name), version)
    yield array.begin()
    for chunk in _chunks(array.elements):
        inner = _large_array(chunk[0]) if len(chunk) == 1 else None
        if inner is None:
            yield array.encode(chunk)
        else:
            yield from _element_in_pieces(array, chunk[0], inner)
    yield array.after


def _element_in_pieces(outer: _Array, element: Structure, field: Field) -> Iterator[bytes]:
    """Yield the bytes of one element, an array of which is large itself."""
    array = _Array(
        lambda elements: outer.make([_with(element, field, elements)]),
        getattr(element, field.name),
        outer.version,
    )
    yield array.begin()[len(outer.before) + len(outer.count(1)) :]
    for chunk in _chunks(array.elements):
        yield array.encode(chunk)
    yield array.after[: len(array.after) - len(outer.after)]


class _Array:
    """An array of structures in a response. ``make`` returns the response with other elements in the array.

    ``before`` are the bytes of the response before the count of the array, ``after`` those after its last
    element.
    """

    def __init__(self, make: Callable[[list[Any]], Message], elements: list[Any], version: int) -> None:
        self.make = make
        self.elements = elements
        self.version = version
        without, with_one = make([]), make([_without_large_array(each) for each in elements[:1]])
        self._is_flexible = version >= type(without).FLEXIBLE_FROM
        self.before, self.after = self._around(without.encode(version), with_one.encode(version))

    def begin(self) -> bytes:
        """Return what stands before the first element."""
        return self.before + self.count(len(self.elements))

    def encode(self, chunk: list[Any]) -> bytes:
        """Return the bytes of some of the elements."""
        encoded = self.make(chunk).encode(self.version)
        start = len(self.before) + len(self.count(len(chunk)))
        return encoded[start : len(encoded) - len(self.after)]

    def count(self, count: int) -> bytes:
        """Return the count of the array."""
        return uvarint(count + 1) if self._is_flexible else count.to_bytes(_COUNT_BYTES)

    def _around(self, without: bytes, with_one: bytes) -> tuple[bytes, bytes]:
        pairs = zip(without, with_one, strict=False)
        alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        count_bytes = 1 if self._is_flexible else _COUNT_BYTES
        start = alike + 1 - count_bytes  # counts of 0 and 1 differ in their last byte
        return without[:start], without[start + count_bytes :]


@cache
def _arrays(cls: type[Structure]) -> tuple[Field, ...]:
    """Return the arrays of structures that a response or an element has. Those that are tagged are small."""
    return tuple(field for field in cls.FIELDS if field.array and field.struct is not None and field.tag < 0)


@cache
def _arrays_of_version(cls: type[Structure], version: int) -> tuple[Field, ...]:
    return tuple(field for field in _arrays(cls) if field.is_present(version))


def _main_array(response: Message, fields: tuple[Field, ...]) -> Field:
    """Return that of the arrays which has most entries."""
    return max(fields, key=lambda field: _estimated_entries(response, field))


def _estimated_entries(response: Message, field: Field) -> int:
    """Return about how many entries an array has, judged by some of its elements."""
    elements = getattr(response, field.name) or ()
    step = 1 + len(elements) // LARGE
    return step * sum(map(_entries, elements[::step]))


def _large_array(element: Structure) -> Field | None:
    """Return the first array of structures of an element that is large."""
    large = (field for field in _arrays(type(element)) if len(getattr(element, field.name) or ()) > PIECE)
    return next(large, None)


def _without_large_array(element: Structure) -> Structure:
    field = _large_array(element)
    return element if field is None else _with(element, field, [])


def _entries(element: Structure) -> int:
    return 1 + sum(len(getattr(element, name) or ()) for name in _array_names(type(element)))


@cache
def _array_names(cls: type[Structure]) -> tuple[str, ...]:
    return tuple(field.name for field in cls.FIELDS if field.array)


def _chunks(elements: list[Any]) -> Iterator[list[Any]]:
    chunk: list[Any] = []
    size = 0
    for element in elements:
        if chunk and _entries(element) > PIECE:
            yield chunk
            chunk, size = [], 0
        chunk.append(element)
        size += _entries(element)
        if size >= PIECE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _with(structure: S, field: Field, elements: list[Any]) -> S:
    changes: dict[str, Any] = {field.name: elements}
    return msgspec.structs.replace(structure, **changes)
