"""What generated decoders are made of: prebuilt readers of number arrays, and the less common cases.

Sizes are as compact types write them: one more than the length, 0 for null. Where a size's first byte has
been read already, it is passed on, and the position is the one behind it. Whatever is wrong or unusual raises
one of DECODE_FAULTS.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NoReturn

from kraft_wire.protocol.fault import Fault
from kraft_wire.protocol.schema import MAX_ARRAY_LENGTH, MAX_STRING_BYTES, MAX_TAGGED_FIELDS, UnknownTags
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.protocol.varint import read_uvarint

SHORT: Final = 18
"""Arrays of numbers whose compact size is below this have prebuilt readers."""

ReadArray = Callable[[bytes, int], tuple[Any, ...]]

as_uuid: Final[Callable[[type[Uuid], bytes], Uuid]] = bytes.__new__
"""An id from bytes that are known to be 16."""


def refuse(*_: object) -> NoReturn:
    """Stand in for what does not exist, such as the reader of a null array."""
    raise Fault


@cache
def array_readers(code: str) -> tuple[ReadArray, ...]:
    """By compact size, how to unpack an array of the struct code's numbers."""
    return (refuse, *(struct.Struct(">" + count * code).unpack_from for count in range(SHORT - 1)))


_READ_IDS: Final = array_readers("16s")


def long_size(data: bytes, pos: int, size: int) -> tuple[int, int]:
    """The size whose first byte is ``size``, the others at ``pos``, and the position behind; 0 is a Fault."""
    if size > 127:
        size, pos = read_uvarint(data, pos - 1)
    if not 0 < size < 2**31:
        raise Fault
    return size, pos


def long_count(data: bytes, pos: int, size: int) -> tuple[int, int]:
    """An array's size, as long_size, within the limits."""
    size, pos = long_size(data, pos, size)
    return check_count(data, pos, size - 1) + 1, pos


ROUNDS: Final = tuple(range(size - 1) for size in range(128))
"""By compact size, what to loop over; 0 is not asked for."""


def long_rounds(data: bytes, pos: int, size: int) -> tuple[range, int]:
    """What to loop over for an array of structs of any size, and the position behind its size."""
    size, pos = long_count(data, pos, size)
    return range(size - 1), pos


def check_count(data: bytes, pos: int, count: int) -> int:
    """An array's count, if it is possible in what remains of the data."""
    if not 0 <= count <= min(MAX_ARRAY_LENGTH, len(data) - pos):
        raise Fault
    return count


def long_string(data: bytes, pos: int, size: int) -> tuple[str, int]:
    """The string whose size begins with ``size``, and the position behind it."""
    size, pos = long_size(data, pos, size)
    end = pos + size - 1
    if size > MAX_STRING_BYTES + 1 or end > len(data):
        raise Fault
    return data[pos:end].decode(), end


def long_array(data: bytes, pos: int, size: int, code: str) -> tuple[tuple[Any, ...], int]:
    """An array of numbers of any size, and the position behind it."""
    size, pos = long_count(data, pos, size)
    return read_numbers(data, pos, size - 1, code)


def read_numbers(data: bytes, pos: int, count: int, code: str) -> tuple[tuple[Any, ...], int]:
    """So many numbers, and the position behind them."""
    layout = struct.Struct(f">{check_count(data, pos, count)}{code}")
    return layout.unpack_from(data, pos), pos + layout.size


def read_compact_strings(data: bytes, pos: int, size: int) -> tuple[tuple[str, ...], int]:
    """An array of compact strings whose size begins with ``size``, and the position behind it."""
    size, pos = long_count(data, pos, size)
    found = []
    for _ in range(size - 1):
        length = data[pos]
        if 0 < length < 128:
            end = pos + length
            found.append(data[pos + 1 : end].decode())
            pos = end
        else:
            text, pos = long_string(data, pos + 1, length)
            found.append(text)
    return tuple(found), pos


def read_strings(data: bytes, pos: int, count: int) -> tuple[tuple[str, ...], int]:
    """So many strings with two bytes of length, and the position behind them."""
    found = []
    for _ in range(check_count(data, pos, count)):
        end = pos + 2 + int.from_bytes(data[pos : pos + 2], signed=True)
        if not pos + 2 <= end <= len(data):
            raise Fault
        found.append(data[pos + 2 : end].decode())
        pos = end
    return tuple(found), pos


def read_compact_byte_strings(data: bytes, pos: int, size: int) -> tuple[tuple[bytes, ...], int]:
    """An array of compact byte strings whose size begins with ``size``, and the position behind it."""
    size, pos = long_count(data, pos, size)
    found = []
    for _ in range(size - 1):
        length, pos = long_size(data, pos + 1, data[pos])
        found.append(data[pos : pos + length - 1])
        pos += length - 1
    return tuple(found), pos


def read_byte_strings(data: bytes, pos: int, count: int) -> tuple[tuple[bytes, ...], int]:
    """So many byte strings with four bytes of length, and the position behind them."""
    found = []
    for _ in range(check_count(data, pos, count)):
        end = pos + 4 + check_count(data, pos + 4, int.from_bytes(data[pos : pos + 4]))
        found.append(data[pos + 4 : end])
        pos = end
    return tuple(found), pos


def read_compact_uuids(data: bytes, pos: int, size: int) -> tuple[tuple[Uuid, ...], int]:
    """An array of ids whose size begins with ``size``, and the position behind it."""
    if 0 < size < SHORT:
        return tuple([as_uuid(Uuid, raw) for raw in _READ_IDS[size](data, pos)]), pos + 16 * size - 16
    size, pos = long_count(data, pos, size)
    return read_uuids(data, pos, size - 1)


def read_uuids(data: bytes, pos: int, count: int) -> tuple[tuple[Uuid, ...], int]:
    """So many ids, and the position behind them."""
    end = pos + 16 * check_count(data, pos, count)
    if end > len(data):
        raise Fault
    return tuple([as_uuid(Uuid, data[at : at + 16]) for at in range(pos, end, 16)]), end


def check_tag_count(data: bytes, pos: int, count: int) -> tuple[int, int]:
    """The number of tagged fields, which begins with ``count``, and the position behind it."""
    if count > 127:
        count, pos = read_uvarint(data, pos - 1)
    if count > MAX_TAGGED_FIELDS:
        raise Fault
    return count, pos


def long_tag(data: bytes, pos: int) -> tuple[int, int, int]:
    """A tag and a size at ``pos``, and the position behind both."""
    tag, pos = read_uvarint(data, pos)
    size, pos = read_uvarint(data, pos)
    if tag >= 2**31:
        raise Fault
    return tag, size, pos


def read_unknown_tags(data: bytes, pos: int, count: int) -> tuple[UnknownTags, int]:
    """A tag section without a known tag, whose count begins with ``count``; and the position behind it."""
    count, pos = check_tag_count(data, pos, count)
    found = []
    for _ in range(count):
        tag, size, pos = long_tag(data, pos)
        end = pos + size
        if end > len(data):
            raise Fault
        found.append((tag, data[pos:end]))
        pos = end
    return tuple(found), pos
