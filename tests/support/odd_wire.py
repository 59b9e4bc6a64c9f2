"""Write messages as a careless or hostile peer would, from a field table and a seeded generator.

``OddWriter`` follows the schema and adds oddities: wrong lengths, forbidden nulls, varints with unnecessary
bytes, tag sections out of order. ``mutate`` damages any bytes without knowing a schema.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Final

from kraft_wire.protocol.schema import MAX_STRING_BYTES, Field, Structure
from kraft_wire.protocol.varint import uvarint

NUMBER_BYTES: Final = {
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
TEXTS: Final = (b"", b"a", b"topic-1", "ä€\N{GRINNING FACE}".encode(), b"x" * 127, b"y" * 130)
ODD_TEXTS: Final = (
    b"\xff",
    b"a\xc3",
    b"\xed\xa0\x80",
    b"\xed\xa0",
    b"\xed\xbf\xbf\xed\xa0\x80",
    b"\xf0\x9f\x98",
    b"\xc0\x80",
    b"\xf4\x90\x80\x80",
    b"\xed\x9f\xbf",
    bytes(3),
)
ODD_LENGTHS: Final = (
    -1,
    -2,
    0,
    1,
    2,
    17,
    18,
    127,
    128,
    32767,
    32768,
    1_000_000,
    1_000_001,
    2**31 - 1,
    -(2**31),
)
ODD_TAGS: Final = (0, 1, 2, 3, 9, 127, 128, 10_000, 2**31 - 2, 2**31 - 1, 2**31, 2**32 - 1)
EXTREMES: Final = (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0", b"\0\x0f\x42\x40")
DEEPEST_REPETITION: Final = 3


def stretched(value: int, more_bytes: int) -> bytes:
    """Encode an unsigned varint with ``more_bytes`` unnecessary bytes."""
    raw = uvarint(value)
    if not more_bytes:
        return raw
    return raw[:-1] + bytes((raw[-1] | 0x80,)) + b"\x80" * (more_bytes - 1) + b"\0"


class OddWriter:
    """A writer of one message at one version; ``oddity`` is the probability of an oddity at every possible
    place."""

    def __init__(self, random: Random, version: int, oddity: float) -> None:
        self._random = random
        self._version = version
        self._oddity = oddity
        self._out = bytearray()
        self._may_be_long = random.random() < 0.1
        self._may_repeat = random.random() < 0.2

    def write(self, cls: type[Structure]) -> bytes:
        self._structure(cls, 0)
        return bytes(self._out)

    def _odd(self) -> bool:
        return self._random.random() < self._oddity

    def _structure(self, cls: type[Structure], depth: int) -> None:
        for field in cls.FIELDS:
            if field.is_present(self._version) and not field.is_tagged(self._version):
                self._value(field, depth, tagged=False)
        if self._version >= cls.FLEXIBLE_FROM:
            self._tag_section(cls, depth)

    def _value(self, field: Field, depth: int, *, tagged: bool) -> None:
        is_null = field.is_nullable(self._version) and self._random.random() < 0.2
        if field.array:
            self._array(field, depth, is_null)
        elif field.struct is not None and field.is_nullable(self._version):
            self._out += self._presence(is_null, tagged)
            if not is_null:
                self._structure(field.struct, depth + 1)
        else:
            self._element(field, depth, is_null)

    def _presence(self, is_null: bool, tagged: bool) -> bytes:
        if self._odd():
            return self._random.choice((b"\x80", b"\x7f", b"\x02", b"\0", b"\xfe", stretched(1, 2)))
        if tagged:
            return b"\0" if is_null else b"\x01"
        return b"\xff" if is_null else b"\x01"

    def _array(self, field: Field, depth: int, is_null: bool) -> None:
        count = self._random.choice((0, 1, 1, 2, 3) if depth < DEEPEST_REPETITION else (0, 1))
        if field.struct is None and self._random.random() < 0.05:
            count = self._random.choice((16, 17, 18, 127, 128))
        elements: list[bytes] = []
        if not is_null:
            elements = [self._apart(partial(self._element, field, depth + 1, False)) for _ in range(count)]
            if field.struct is not None and elements and self._may_repeat and self._random.random() < 0.5:
                self._may_repeat = False
                elements = self._alike(elements)
        self._length(-1 if is_null else len(elements), field, 4)
        for element in elements:
            self._out += element

    def _alike(self, elements: list[bytes]) -> list[bytes]:
        """Repeat an element, because the elements of most arrays are similar; a few copies are damaged."""
        alike = elements[:1] * self._random.choices((4, 5, 9, 130), (20, 20, 20, 1))[0]
        for element in elements[1:]:
            alike.insert(self._random.randrange(len(alike) + 1), element)
        if self._odd():
            alike[self._random.randrange(len(alike))] = mutate(self._random, elements[0], elements)
        return alike

    def _apart(self, write: Callable[[], None]) -> bytes:
        """Return what ``write`` writes, without adding it to the output."""
        around, self._out = self._out, bytearray()
        write()
        written, self._out = bytes(self._out), around
        return written

    def _element(self, field: Field, depth: int, is_null: bool) -> None:
        if field.struct is not None:
            self._structure(field.struct, depth + 1)
        elif field.kind in NUMBER_BYTES:
            self._out += self._number(field.kind)
        elif is_null:
            self._length(-1, field, 2 if field.kind == "string" else 4)
        else:
            raw = self._odd_text() if self._odd() else self._random.choice(TEXTS)
            self._length(len(raw), field, 2 if field.kind == "string" else 4)
            self._out += raw

    def _odd_text(self) -> bytes:
        if self._may_be_long:
            self._may_be_long = False
            return b"z" * self._random.choice((300, 16_383, MAX_STRING_BYTES, MAX_STRING_BYTES + 1))
        return self._random.choice(ODD_TEXTS)

    def _number(self, kind: str) -> bytes:
        size = NUMBER_BYTES[kind]
        if self._random.random() < 0.3:
            small = bytes(size - 1) + b"\x01"
            return self._random.choice((bytes(size), small, b"\xff" * size, b"\x7f" * size, b"\x80" * size))
        if kind == "bool" and not self._odd():
            return self._random.choice((b"\0", b"\x01"))
        return self._random.randbytes(size)

    def _length(self, length: int, field: Field, fixed_bytes: int) -> None:
        if self._odd():
            length = self._random.choice((*ODD_LENGTHS, length + 1, length - 1))
        if self._version >= field.flexible_from:
            self._out += self._uvarint((length + 1) % 2**32)
        else:
            self._out += (length % (1 << 8 * fixed_bytes)).to_bytes(fixed_bytes)

    def _uvarint(self, value: int) -> bytes:
        if not self._odd():
            return uvarint(value)
        wrapped = b"\x82\x80\x80\x80\x70"  # bits above the 32nd
        return self._random.choice((stretched(value, self._random.randrange(1, 5)), wrapped))

    def _tag_section(self, cls: type[Structure], depth: int) -> None:
        entries = [
            (field.tag, self._apart(partial(self._value, field, depth, tagged=True)))
            for field in cls.FIELDS
            if field.tag >= 0
            and (field.is_tagged(self._version) or self._odd())
            and self._random.random() < 0.6
        ]
        entries.sort()
        if self._random.random() < 0.1:
            first = 1 + max((field.tag for field in cls.FIELDS), default=-1)
            tags = {first + self._random.choice((0, 1, 200, 70_000)) for _ in range(2)}
            entries += [(tag, self._random.randbytes(self._random.choice((0, 1, 5)))) for tag in sorted(tags)]
        if self._odd():
            self._random.choice((self._duplicate, self._random.shuffle, self._strange_tag))(entries)
        self._out += self._uvarint(self._random.choice(ODD_LENGTHS) % 2**32 if self._odd() else len(entries))
        for tag, payload in entries:
            size = self._random.choice((0, 1, len(payload) + 1, 2**31 - 1)) if self._odd() else len(payload)
            self._out += self._uvarint(tag) + self._uvarint(size) + payload

    def _duplicate(self, entries: list[tuple[int, bytes]]) -> None:
        if entries:
            entries.append(self._random.choice(entries))

    def _strange_tag(self, entries: list[tuple[int, bytes]]) -> None:
        entries.append((self._random.choice(ODD_TAGS), self._random.randbytes(3)))


def mutate(random: Random, raw: bytes, others: Sequence[bytes]) -> bytes:
    """Return ``raw`` damaged in one to three places; it may be spliced with one of ``others``."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        raw = random.choice(_MUTATORS)(random, raw, others)
    return raw


def _flip_bit(random: Random, raw: bytes, _: Sequence[bytes]) -> bytes:
    at = _place(random, raw)
    return raw[:at] + bytes(byte ^ 1 << random.randrange(8) for byte in raw[at : at + 1]) + raw[at + 1 :]


def _extreme_byte(random: Random, raw: bytes, _: Sequence[bytes]) -> bytes:
    at = _place(random, raw)
    return raw[:at] + bytes((random.choice((0, 1, 2, 126, 127, 128, 129, 255)),)) + raw[at + 1 :]


def _extreme_length(random: Random, raw: bytes, _: Sequence[bytes]) -> bytes:
    at, extreme = _place(random, raw), random.choice(EXTREMES)
    extreme = extreme[: random.choice((2, 4))]
    return raw[:at] + extreme + raw[at + len(extreme) :]


def _stretch_varint(random: Random, raw: bytes, _: Sequence[bytes]) -> bytes:
    at = _place(random, raw)
    if not raw or raw[at] >= 0x80:
        return raw
    return raw[:at] + stretched(raw[at], random.randrange(1, 6)) + raw[at + 1 :]


def _truncate(random: Random, raw: bytes, _: Sequence[bytes]) -> bytes:
    return raw[: _place(random, raw)]


def _extend(random: Random, raw: bytes, _: Sequence[bytes]) -> bytes:
    return raw + random.randbytes(random.randrange(1, 9))


def _cut_out(random: Random, raw: bytes, _: Sequence[bytes]) -> bytes:
    at = _place(random, raw)
    return raw[:at] + raw[at + random.randrange(1, 9) :]


def _repeat(random: Random, raw: bytes, _: Sequence[bytes]) -> bytes:
    at, size = _place(random, raw), random.randrange(1, 17)
    return raw[: at + size] + raw[at:]


def _splice(random: Random, raw: bytes, others: Sequence[bytes]) -> bytes:
    other = random.choice(others)
    return raw[: _place(random, raw)] + other[_place(random, other) :]


def _place(random: Random, raw: bytes) -> int:
    return random.randrange(len(raw)) if raw else 0


Mutator = Callable[[Random, bytes, Sequence[bytes]], bytes]
_MUTATORS: Final[tuple[Mutator, ...]] = (
    _flip_bit,
    _extreme_byte,
    _extreme_length,
    _stretch_varint,
    _truncate,
    _extend,
    _cut_out,
    _repeat,
    _splice,
)
