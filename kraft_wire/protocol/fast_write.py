"""What generated encoders are made of: prebuilt writers of number arrays, and the less common cases.

Whatever is wrong or unusual raises one of ENCODE_FAULTS.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final

from kraft_wire.protocol.fast_read import SHORT
from kraft_wire.protocol.fault import Fault
from kraft_wire.protocol.schema import MAX_STRING_BYTES, UnknownTags
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.protocol.varint import uvarint

WriteArray = Callable[..., bytes]
WriteString = Callable[..., bytes]
NULL_COUNT: Final = b"\xff\xff\xff\xff"
"""An array that is null, with four bytes of count."""
NO_UNKNOWN_TAGS: Final[UnknownTags] = ()
"""Compared with by identity: CPython has one empty tuple. What is another is only slower."""
SIZES: Final = tuple(bytes((size,)) for size in range(128))
"""Sizes of one byte, ready made."""


@cache
def array_writers(code: str) -> tuple[WriteArray, ...]:
    """By compact size, how to pack that size and an array of the struct code's numbers."""
    return (struct.Struct(">B").pack, *(struct.Struct(f">B{count}{code}").pack for count in range(SHORT - 1)))


@cache
def string_writers(codes: str) -> list[WriteString]:
    """By compact size, how to pack that size, a string's bytes and, in the same go, what is behind them.

    Each is made when it is first needed. Null has the size 0 and no bytes.
    """

    def make(size: int, *values: Any) -> bytes:
        writers[size] = struct.Struct(f">B{max(size - 1, 0)}s{codes}").pack
        return writers[size](size, *values)

    writers: list[WriteString] = [make] * 128
    return writers


def bytes_of(value: object) -> bytes:
    """What has bytes, as bytes. Anything else is a Fault."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise Fault


def string_size(size: int) -> bytes:
    """A compact string's size, within the limit of all strings."""
    if size > MAX_STRING_BYTES + 1:
        raise Fault
    return uvarint(size)


def write_long_array(values: Sequence[Any], code: str) -> bytes:
    """A compact array of numbers of any size."""
    return uvarint(len(values) + 1) + struct.pack(f">{len(values)}{code}", *values)


def write_numbers(values: Sequence[Any], code: str) -> bytes:
    """An array of numbers with four bytes of count."""
    return struct.pack(f">i{len(values)}{code}", len(values), *values)


def write_compact_strings(values: Iterable[str]) -> bytes:
    """A compact array of strings."""
    out = [b""]
    for text in values:
        raw = text.encode()
        size = len(raw) + 1
        out += (SIZES[size] if size < 128 else string_size(size), raw)
    out[0] = uvarint((len(out) - 1) // 2 + 1)
    return b"".join(out)


def write_strings(values: Iterable[str]) -> bytes:
    """An array of strings with fixed sizes."""
    raws = [text.encode() for text in values]
    out = [struct.pack(">i", len(raws))]
    for raw in raws:
        out += (struct.pack(">h", len(raw)), raw)
    return b"".join(out)


def write_compact_byte_strings(values: Iterable[bytes]) -> bytes:
    """A compact array of byte strings."""
    out = [b""]
    for raw in values:
        out += (uvarint(len(raw) + 1), raw)
    out[0] = uvarint((len(out) - 1) // 2 + 1)
    return b"".join(out)


def write_byte_strings(values: Iterable[bytes]) -> bytes:
    """An array of byte strings with fixed sizes."""
    raws = list(values)
    out = [struct.pack(">i", len(raws))]
    for raw in raws:
        out += (struct.pack(">i", len(raw)), raw)
    return b"".join(out)


def write_compact_uuids(values: Sequence[Uuid]) -> bytes:
    """A compact array of ids."""
    size = len(values) + 1
    return (SIZES[size] if size < 128 else uvarint(size)) + _join_uuids(values)


def write_uuids(values: Sequence[Uuid]) -> bytes:
    """An array of ids with four bytes of count."""
    return struct.pack(">i", len(values)) + _join_uuids(values)


def _join_uuids(values: Sequence[Uuid]) -> bytes:
    raw = b"".join(values)
    if len(raw) != 16 * len(values):
        raise Fault
    return raw


def write_tags(known: Sequence[tuple[int, bytes]], unknown: UnknownTags, highest: int = -1) -> bytes:
    """A tag section. More than 127 fields are a Fault, and unknown tags that aren't above ``highest``."""
    count = len(known) + len(unknown)
    if count > 127 or not isinstance(unknown, tuple):
        raise Fault
    out = [SIZES[count]]
    for tag, raw in known:
        size = len(raw)
        out += (SIZES[tag] if tag < 128 else uvarint(tag), SIZES[size] if size < 128 else uvarint(size), raw)
    previous = highest
    for tag, raw in unknown:
        if not previous < tag < 2**31 - 1:
            raise Fault
        out += (uvarint(tag), uvarint(len(raw)), bytes_of(raw))
        previous = tag
    return b"".join(out)
