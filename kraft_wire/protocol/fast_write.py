"""Functions that the generated encoders call: prebuilt writers of number arrays, and the less common cases.

Wrong or unusual values raise one of ENCODE_FAULTS.
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
"""The count of a null array, with four bytes."""
NO_UNKNOWN_TAGS: Final[UnknownTags] = ()
"""Compared by identity, because CPython has one empty tuple. Another empty value is only slower."""
SIZES: Final = tuple(bytes((size,)) for size in range(128))
"""The encoded sizes of one byte."""


@cache
def array_writers(code: str) -> tuple[WriteArray, ...]:
    """Return the functions that pack a compact size and an array of the struct code's numbers, by compact
    size."""
    return (struct.Struct(">B").pack, *(struct.Struct(f">B{count}{code}").pack for count in range(SHORT - 1)))


@cache
def string_writers(codes: str) -> list[WriteString]:
    """Return the functions that pack a compact size, a string's bytes and the fields after it, by compact
    size.

    Each is created when it is first needed. Null has the size 0 and no bytes.
    """

    def make(size: int, *values: Any) -> bytes:
        writers[size] = struct.Struct(f">B{max(size - 1, 0)}s{codes}").pack
        return writers[size](size, *values)

    writers: list[WriteString] = [make] * 128
    return writers


def bytes_of(value: object) -> bytes:
    """Return bytes-like data as bytes. Raises Fault for anything else."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise Fault


def string_size(size: int) -> bytes:
    """Return a compact string's size. Raises Fault above the limit of strings."""
    if size > MAX_STRING_BYTES + 1:
        raise Fault
    return uvarint(size)


def write_long_array(values: Sequence[Any], code: str) -> bytes:
    """Write a compact array of numbers of any size."""
    return uvarint(len(values) + 1) + struct.pack(f">{len(values)}{code}", *values)


def write_numbers(values: Sequence[Any], code: str) -> bytes:
    """Write an array of numbers with four bytes of count."""
    return struct.pack(f">i{len(values)}{code}", len(values), *values)


def write_compact_strings(values: Iterable[str]) -> bytes:
    """Write a compact array of strings."""
    out = [b""]
    for text in values:
        raw = text.encode()
        size = len(raw) + 1
        out += (SIZES[size] if size < 128 else string_size(size), raw)
    out[0] = uvarint((len(out) - 1) // 2 + 1)
    return b"".join(out)


def write_strings(values: Iterable[str]) -> bytes:
    """Write an array of strings with fixed sizes."""
    raws = [text.encode() for text in values]
    out = [struct.pack(">i", len(raws))]
    for raw in raws:
        out += (struct.pack(">h", len(raw)), raw)
    return b"".join(out)


def write_compact_byte_strings(values: Iterable[bytes]) -> bytes:
    """Write a compact array of byte strings."""
    out = [b""]
    for raw in values:
        out += (uvarint(len(raw) + 1), raw)
    out[0] = uvarint((len(out) - 1) // 2 + 1)
    return b"".join(out)


def write_byte_strings(values: Iterable[bytes]) -> bytes:
    """Write an array of byte strings with fixed sizes."""
    raws = list(values)
    out = [struct.pack(">i", len(raws))]
    for raw in raws:
        out += (struct.pack(">i", len(raw)), raw)
    return b"".join(out)


def write_compact_uuids(values: Sequence[Uuid]) -> bytes:
    """Write a compact array of ids."""
    size = len(values) + 1
    return (SIZES[size] if size < 128 else uvarint(size)) + _join_uuids(values)


def write_uuids(values: Sequence[Uuid]) -> bytes:
    """Write an array of ids with four bytes of count."""
    return struct.pack(">i", len(values)) + _join_uuids(values)


def _join_uuids(values: Sequence[Uuid]) -> bytes:
    raw = b"".join(values)
    if len(raw) != 16 * len(values):
        raise Fault
    return raw


def write_tags(known: Sequence[tuple[int, bytes]], unknown: UnknownTags, highest: int = -1) -> bytes:
    """Write a tag section. Raises Fault for more than 127 fields, and for unknown tags that aren't above
    ``highest``."""
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
