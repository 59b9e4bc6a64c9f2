"""Count the entries of a message, which are the elements of its arrays in all, without decoding it.

A byte or two are enough for an entry, but a decoded one takes a hundred. So a message is counted before it is
decoded, unless it is too short for so many entries. The count stops at a limit: an array counts in full
before its first element is looked at. Of the broker ids that a client assigns to a partition, which are
decoded all at once, ``IDS_AN_ENTRY`` count as one entry.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.schema import MAX_TAGGED_FIELDS, Field, Structure
from kraft_wire.protocol.varint import VarintTooLong, read_uvarint

LIMIT_KEY: Final = "kraft.wire.max.request.entries"
"""The configuration key of the limit."""
MAX_REQUEST_ENTRIES: Final = 20_000
"""The limit by default. Kafka has none, but refuses a request that needs more than 10,000 records."""
_SIZES: Final = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
IDS_AN_ENTRY: Final = 16
"""So a topic of 10,000 partitions, the most that Kafka creates at once, may be assigned to brokers."""
_ASSIGNED: Final = "broker_ids"
_FIXED_LENGTH_BYTES: Final = 2
"""The length of a string in versions that aren't flexible. That of bytes has more."""
_UNKNOWN_TAG_BYTES: Final = 2
"""An unknown tagged field, which is kept and counts as an entry: its tag, and the size of nothing."""
_NO_ENTRIES: Final = 1 << 62
"""The least bytes of an entry if there are no arrays: no message is so long."""
_NULL: Final = 0x80
"""From this first byte on, a struct that can be null is null."""
_NULL_TAGGED: Final = 1 << 31
"""So it is with the varint before one in a tagged field, which is also null if that is 0."""


class TooManyEntries(ProtocolError):
    """A message has more entries than are allowed."""

    def __init__(self, name: str, count: int, limit: int) -> None:
        super().__init__(f"{name} has {count} entries or more in all its arrays, and {limit} are allowed")


def check_entry_count(cls: type[Message], data: bytes, version: int, pos: int, limit: int) -> None:
    """Raise TooManyEntries if the message that begins at ``pos`` has more than ``limit`` entries.

    Of a malformed message those entries count that come before the fault, which the decoder will name.
    """
    size = len(data) - pos
    if size <= limit or size <= limit * _least_entry_bytes(cls, version):
        return
    walk = Walk(cls.NAME, data, limit)
    try:
        for step in steps_over(cls, version):
            pos = step(walk, pos)
    except (IndexError, VarintTooLong):
        return


@cache
def _least_entry_bytes(cls: type[Structure], version: int) -> int:
    """Return how many bytes an entry has at least, in the array of a message with the smallest elements."""
    fields = [field for field in cls.FIELDS if field.is_present(version)]
    own = [_least_element_bytes(field, version) * elements_an_entry(field) for field in fields if field.array]
    inner = [_least_entry_bytes(field.struct, version) for field in fields if field.struct is not None]
    if version >= cls.FLEXIBLE_FROM:
        own.append(_UNKNOWN_TAG_BYTES)
    return max(1, min(own + inner, default=_NO_ENTRIES))


def elements_an_entry(field: Field) -> int:
    """Return how many elements of an array count as one entry."""
    return IDS_AN_ENTRY if field.name == _ASSIGNED else 1


def _least_element_bytes(field: Field, version: int) -> int:
    if field.struct is not None:
        return _least_bytes(field.struct, version)
    if field.kind in _SIZES:
        return _SIZES[field.kind]
    return 1 if version >= field.flexible_from else _FIXED_LENGTH_BYTES


def _least_bytes(cls: type[Structure], version: int) -> int:
    """Return how many bytes a structure has at least."""
    total = 1 if version >= cls.FLEXIBLE_FROM else 0  # the count of its tagged fields
    for field in cls.FIELDS:
        if not field.is_present(version) or field.is_tagged(version):
            continue
        if field.array or (field.struct is not None and field.is_nullable(version)):
            total += 1
        else:
            total += _least_element_bytes(field, version)
    return total


class Walk:
    """A walk through the bytes of one message. ``left`` is how many entries it may still have."""

    __slots__ = ("data", "left", "limit", "name")

    def __init__(self, name: str, data: bytes, limit: int) -> None:
        self.name = name
        self.data = data
        self.limit = self.left = limit

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise TooManyEntries(self.name, self.limit - self.left, self.limit)


Step = Callable[[Walk, int], int]
"""A function that passes over some fields: from the position of the first to the position after the last."""


@cache
def steps_over(cls: type[Structure], version: int) -> tuple[Step, ...]:
    """Return the steps over a structure; fields of known size that follow each other are one step."""
    steps: list[Step] = []
    fixed_bytes = 0
    for field in cls.FIELDS:
        if not field.is_present(version) or field.is_tagged(version):
            continue
        if not field.array and field.kind in _SIZES:
            fixed_bytes += _SIZES[field.kind]
            continue
        if fixed_bytes:
            steps.append(_fixed(fixed_bytes))
            fixed_bytes = 0
        steps.append(step_over(field, version))
    if fixed_bytes:
        steps.append(_fixed(fixed_bytes))
    if version >= cls.FLEXIBLE_FROM:
        steps.append(_tags(cls, version))
    return tuple(steps)


def step_over(field: Field, version: int) -> Step:
    """Return the step over a field that isn't tagged."""
    length = length_of(field, version)
    if field.array:
        return _array(field, version, length)
    if field.struct is not None:
        return _struct(field.struct, version, nullable=field.is_nullable(version))
    return _sized(length)


def _fixed(size: int) -> Step:
    return lambda walk, pos: pos + size


Length = Callable[[bytes, int], tuple[int, int]]
"""A function that reads a length, 0 for null, and returns it with the position after it."""


def length_of(field: Field, version: int) -> Length:
    """Return the function that reads the count of an array, or the length of a string or of bytes."""
    return _compact_length if version >= field.flexible_from else _lengths(field)


def _compact_length(data: bytes, pos: int) -> tuple[int, int]:
    first = data[pos]
    if first < 0x80:
        return (first - 1 if first else 0), pos + 1
    length, pos = read_uvarint(data, pos)
    return max(length - 1, 0), pos


def _lengths(field: Field) -> Length:
    size = 2 if field.kind == "string" and not field.array else 4

    def fixed_length(data: bytes, pos: int) -> tuple[int, int]:
        end = pos + size
        if end > len(data):
            raise IndexError
        return max(int.from_bytes(data[pos:end], signed=True), 0), end

    return fixed_length


def _sized(length: Length) -> Step:
    def step(walk: Walk, pos: int) -> int:
        size, pos = length(walk.data, pos)
        return pos + size

    return step


def _struct(cls: type[Structure], version: int, *, nullable: bool) -> Step:
    steps = steps_over(cls, version)

    def step(walk: Walk, pos: int) -> int:
        if nullable:
            if walk.data[pos] >= _NULL:
                return pos + 1
            pos += 1
        for each in steps:
            pos = each(walk, pos)
        return pos

    return step


def _array(field: Field, version: int, length: Length) -> Step:
    if field.struct is None and field.kind in _SIZES:
        return _fixed_array(_SIZES[field.kind], elements_an_entry(field), length)
    element_length = _compact_length if version >= field.flexible_from else _string_length
    steps = (_sized(element_length),) if field.struct is None else steps_over(field.struct, version)
    plain_bytes = 0 if field.struct is None else _plain_bytes(field.struct, version)

    def step(walk: Walk, pos: int) -> int:
        count, pos = length(walk.data, pos)
        walk.take(count)
        if plain_bytes and _are_plain(walk.data, pos, count, plain_bytes):
            return pos + count * plain_bytes
        for _ in range(count):
            for each in steps:
                pos = each(walk, pos)
        return pos

    return step


def _plain_bytes(cls: type[Structure], version: int) -> int:
    """Return the bytes of a structure without tagged fields; 0 if a field has a variable length."""
    fields = [field for field in cls.FIELDS if field.is_present(version) and not field.is_tagged(version)]
    if version < cls.FLEXIBLE_FROM or any(field.array or field.kind not in _SIZES for field in fields):
        return 0
    return sum(_SIZES[field.kind] for field in fields) + 1  # the count of its tagged fields


def _are_plain(data: bytes, pos: int, count: int, plain_bytes: int) -> bool:
    """Whether this many structures of that size follow each other, none of which has tagged fields."""
    tag_counts = data[pos + plain_bytes - 1 : pos + count * plain_bytes : plain_bytes]
    return len(tag_counts) == tag_counts.count(0) == count


def _fixed_array(element_bytes: int, an_entry: int, length: Length) -> Step:
    def step(walk: Walk, pos: int) -> int:
        count, pos = length(walk.data, pos)
        walk.take(count // an_entry)
        return pos + count * element_bytes

    return step


def _string_length(data: bytes, pos: int) -> tuple[int, int]:
    end = pos + 2
    if end > len(data):
        raise IndexError
    return max(int.from_bytes(data[pos:end], signed=True), 0), end


def _tags(cls: type[Structure], version: int) -> Step:
    """Pass over tagged fields. As in the decoder, a known one ends with its value, whatever its size."""
    steps = {field.tag: _tagged(field, version) for field in cls.FIELDS if field.is_tagged(version)}

    def step(walk: Walk, pos: int) -> int:
        data = walk.data
        count = data[pos]
        if not count:
            return pos + 1
        count, pos = read_uvarint(data, pos)
        if count > MAX_TAGGED_FIELDS:
            raise IndexError  # the decoder refuses them
        for _ in range(count):
            tag, pos = read_uvarint(data, pos)
            size, pos = read_uvarint(data, pos)
            known = steps.get(tag)
            if known is None:
                walk.take(1)
                pos += size
            else:
                pos = known(walk, pos)
        return pos

    return step


def _tagged(field: Field, version: int) -> Step:
    if not field.array and field.kind in _SIZES:
        return _fixed(_SIZES[field.kind])
    if field.array or field.struct is None or not field.is_nullable(version):
        return step_over(field, version)
    inner = _struct(field.struct, version, nullable=False)

    def step(walk: Walk, pos: int) -> int:
        mark, pos = read_uvarint(walk.data, pos)
        return inner(walk, pos) if 0 < mark < _NULL_TAGGED else pos

    return step
