"""Functions that the generated decoders call: prebuilt readers of number arrays, and the less common cases.

Sizes are those of compact types: one more than the length, 0 for null. If a size's first byte was read
already, it is an argument, and the position is the one after it. Wrong or unusual input raises one of
DECODE_FAULTS.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from operator import itemgetter
from typing import Any, Final, NoReturn

from kraft_wire.protocol.fault import Fault
from kraft_wire.protocol.schema import MAX_ARRAY_LENGTH, MAX_STRING_BYTES, MAX_TAGGED_FIELDS, UnknownTags
from kraft_wire.protocol.uuid import SIZE_BYTES, Uuid
from kraft_wire.protocol.varint import read_uvarint

SHORT: Final = 18
"""Arrays of numbers with a compact size below this have prebuilt readers."""
MOST_UUIDS: Final = 256
"""The maximum number of cached ids."""

Read = Callable[[bytes, int], tuple[Any, ...]]


def refuse(*_: object) -> NoReturn:
    """Raise Fault. It takes the place of functions that don't exist, such as the reader of a null array."""
    raise Fault


class _Uuids(dict[bytes, Uuid]):
    """A cache of ids by their bytes: a cluster repeats few ids, and creating one is slower than looking it
    up."""

    def __missing__(self, raw: bytes) -> Uuid:
        if len(raw) != SIZE_BYTES:
            raise Fault
        if len(self) >= MOST_UUIDS:
            self.clear()
        made = self[raw] = _new_uuid(Uuid, raw)
        return made


_new_uuid: Final[Callable[[type[Uuid], bytes], Uuid]] = bytes.__new__
"""Create an id without checking the length again."""
UUIDS: Final = _Uuids()


@cache
def array_readers(code: str) -> tuple[Read, ...]:
    """Return the functions that unpack an array of the struct code's numbers, by compact size."""
    return (refuse, *(struct.Struct(">" + count * code).unpack_from for count in range(SHORT - 1)))


_READ_UUIDS: Final = array_readers("16s")


@cache
def string_readers(codes: str) -> list[Read]:
    """Return the functions that unpack a string's bytes together with the fields after it, by compact size.

    Each is created when it is first needed. The position is that of the string, after its size.
    """

    def make(data: bytes, pos: int) -> tuple[Any, ...]:
        size = data[pos - 1]
        readers[size] = struct.Struct(f">{size - 1}s{codes}").unpack_from
        return readers[size](data, pos)

    readers: list[Read] = [refuse] + [make] * 127
    return readers


@cache
def nullable_string_readers(codes: str) -> list[Read]:
    """Return the same as string_readers, but null is read as None."""
    following = struct.Struct(">" + codes).unpack_from

    def make(data: bytes, pos: int) -> tuple[Any, ...]:
        size = data[pos - 1]
        readers[size] = struct.Struct(f">{size - 1}s{codes}").unpack_from
        return readers[size](data, pos)

    readers: list[Read] = [lambda data, pos: (None, *following(data, pos))] + [make] * 127
    return readers


def long_size(data: bytes, pos: int, size: int) -> tuple[int, int]:
    """Return the size whose first byte is ``size`` and whose other bytes are at ``pos``, and the position
    after it.

    Raises Fault for 0.
    """
    if size > 127:
        size, pos = read_uvarint(data, pos - 1)
    if not 0 < size < 2**31:
        raise Fault
    return size, pos


def long_count(data: bytes, pos: int, size: int) -> tuple[int, int]:
    """Return an array's size as long_size does, after checking the limits."""
    size, pos = long_size(data, pos, size)
    return check_count(data, pos, size - 1) + 1, pos


def check_count(data: bytes, pos: int, count: int) -> int:
    """Return an array's count if the remaining data can hold as many elements, else raise Fault."""
    if not 0 <= count <= min(MAX_ARRAY_LENGTH, len(data) - pos):
        raise Fault
    return count


def long_string(data: bytes, pos: int, size: int, codes: str) -> tuple[tuple[Any, ...], int]:
    """Return a string of any size with the fields after it, as string_readers do, and the position after
    both."""
    size, pos = long_size(data, pos, size)
    end = pos + size - 1
    if size > MAX_STRING_BYTES + 1 or end > len(data):
        raise Fault
    following = struct.Struct(">" + codes)
    return (data[pos:end], *following.unpack_from(data, end)), end + following.size


def long_array(data: bytes, pos: int, size: int, code: str) -> tuple[tuple[Any, ...], int]:
    """Return an array of numbers of any size, and the position after it."""
    size, pos = long_count(data, pos, size)
    return read_numbers(data, pos, size - 1, code)


def read_numbers(data: bytes, pos: int, count: int, code: str) -> tuple[tuple[Any, ...], int]:
    """Return ``count`` numbers, and the position after them."""
    layout = struct.Struct(f">{check_count(data, pos, count)}{code}")
    return layout.unpack_from(data, pos), pos + layout.size


def read_compact_strings(data: bytes, pos: int, size: int) -> tuple[tuple[str, ...], int]:
    """Return an array of compact strings whose size begins with ``size``, and the position after it."""
    size, pos = long_count(data, pos, size)
    found = []
    for _ in range(size - 1):
        length = data[pos]
        if 0 < length < 128:
            end = pos + length
            found.append(data[pos + 1 : end].decode())
            pos = end
        else:
            (raw,), pos = long_string(data, pos + 1, length, "")
            found.append(raw.decode())
    return tuple(found), pos


def read_strings(data: bytes, pos: int, count: int) -> tuple[tuple[str, ...], int]:
    """Return ``count`` strings with two bytes of length each, and the position after them."""
    found = []
    for _ in range(check_count(data, pos, count)):
        end = pos + 2 + int.from_bytes(data[pos : pos + 2], signed=True)
        if not pos + 2 <= end <= len(data):
            raise Fault
        found.append(data[pos + 2 : end].decode())
        pos = end
    return tuple(found), pos


def read_compact_byte_strings(data: bytes, pos: int, size: int) -> tuple[tuple[bytes, ...], int]:
    """Return an array of compact byte strings whose size begins with ``size``, and the position after it."""
    size, pos = long_count(data, pos, size)
    found = []
    for _ in range(size - 1):
        length, pos = long_size(data, pos + 1, data[pos])
        found.append(data[pos : pos + length - 1])
        pos += length - 1
    return tuple(found), pos


def read_byte_strings(data: bytes, pos: int, count: int) -> tuple[tuple[bytes, ...], int]:
    """Return ``count`` byte strings with four bytes of length each, and the position after them."""
    found = []
    for _ in range(check_count(data, pos, count)):
        end = pos + 4 + check_count(data, pos + 4, int.from_bytes(data[pos : pos + 4]))
        found.append(data[pos + 4 : end])
        pos = end
    return tuple(found), pos


def read_compact_uuids(data: bytes, pos: int, size: int) -> tuple[tuple[Uuid, ...], int]:
    """Return an array of ids whose size begins with ``size``, and the position after it."""
    if 2 < size < SHORT:
        # itemgetter looks up several ids at once, which is fastest.
        return itemgetter(*_READ_UUIDS[size](data, pos))(UUIDS), pos + 16 * size - 16
    size, pos = long_count(data, pos, size)
    return read_uuids(data, pos, size - 1)


def read_uuids(data: bytes, pos: int, count: int) -> tuple[tuple[Uuid, ...], int]:
    """Return ``count`` ids, and the position after them."""
    end = pos + 16 * check_count(data, pos, count)
    return tuple([UUIDS[data[at : at + 16]] for at in range(pos, end, 16)]), end


def skip_long_size(data: bytes, pos: int) -> int:
    """Return where a one-byte tag at ``pos`` would be if the size after it had one byte, too."""
    return read_uvarint(data, pos + 1)[1] - 2


def read_unknown_tags(data: bytes, pos: int, count: int, known: int = 0) -> tuple[UnknownTags, int]:
    """Return the tagged fields whose count begins with ``count``, and the position after them.

    Raises Fault for a tag below ``known``.
    """
    if count > 127:
        count, pos = read_uvarint(data, pos - 1)
    if count > MAX_TAGGED_FIELDS:
        raise Fault
    found = []
    for _ in range(count):
        tag, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        end = pos + size
        if not known <= tag < 2**31 or end > len(data):
            raise Fault
        found.append((tag, data[pos:end]))
        pos = end
    return tuple(found), pos
