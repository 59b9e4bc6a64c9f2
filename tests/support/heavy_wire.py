"""Write the most expensive inputs for a decoder: long arrays of short elements in otherwise minimal
messages."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final

from kraft_wire.protocol.schema import Field, Structure
from kraft_wire.protocol.varint import uvarint
from tests.support.odd_wire import NUMBER_BYTES

Path = tuple[Field, ...]
"""Fields from a message down to one inside it."""
HEAVY_BYTE: Final = b"\x87"
"""A byte of which no number is made that Python has cached as a small integer."""


class Style(Enum):
    """The content of the elements in the repeated array."""

    NULL = "null where possible, else zero or empty"
    EMPTY = "empty arrays, which cost a list each, and values that cost an object each"
    ONE = "the same with one element in every array"


def array_paths(cls: type[Structure], version: int) -> Iterator[Path]:
    """Yield the path to every array that the message has at this version."""
    for field in cls.FIELDS:
        if field.is_present(version):
            if field.array:
                yield (field,)
            if field.struct is not None:
                yield from ((field, *path) for path in array_paths(field.struct, version))


class HeavyWriter:
    """A writer of a message whose array at the end of ``path`` has ``count`` elements and claims
    ``declared``."""

    def __init__(
        self, version: int, style: Style, path: Path, count: int, declared: int | None = None
    ) -> None:
        self._version = version
        self._style = style
        self._target = path[-1] if path else None
        self._path = path
        self._count = count
        self._declared = count if declared is None else declared

    def write(self, cls: type[Structure]) -> bytes:
        return self._structure(cls, self._path)

    def _structure(self, cls: type[Structure], path: Path) -> bytes:
        out, tags = b"", list[bytes]()
        for field in cls.FIELDS:
            rest = path[1:] if path and path[0] is field else ()
            wanted = bool(path) and path[0] is field
            if not field.is_present(self._version):
                continue
            if not field.is_tagged(self._version):
                out += self._value(field, rest, wanted, tagged=False)
            elif wanted:
                payload = self._value(field, rest, wanted, tagged=True)
                tags.append(uvarint(field.tag) + uvarint(len(payload)) + payload)
        if self._version >= cls.FLEXIBLE_FROM:
            out += uvarint(len(tags)) + b"".join(tags)
        return out

    def _value(self, field: Field, rest: Path, wanted: bool, *, tagged: bool) -> bytes:
        is_null = self._style is Style.NULL and field.is_nullable(self._version) and not wanted
        if field.array:
            return self._array(field, rest, wanted, is_null)
        if field.struct is None:
            return self._element(field, (), is_null)
        if is_null:
            return b"\0" if tagged else b"\xff"
        present = b"\x01" if field.is_nullable(self._version) else b""
        return present + self._structure(field.struct, rest)

    def _array(self, field: Field, rest: Path, wanted: bool, is_null: bool) -> bytes:
        if is_null:
            return self._length(-1, field, 4)
        if wanted and field is self._target:
            return self._length(self._declared, field, 4) + self._element(field, ()) * self._count
        if wanted or self._style is Style.ONE:
            return self._length(1, field, 4) + self._element(field, rest)
        return self._length(0, field, 4)

    def _element(self, field: Field, rest: Path, is_null: bool = False) -> bytes:
        if field.struct is not None:
            return self._structure(field.struct, rest)
        if field.kind in NUMBER_BYTES:
            return (b"\0" if self._style is Style.NULL else HEAVY_BYTE) * NUMBER_BYTES[field.kind]
        raw: bytes = b"" if self._style is Style.NULL else b"\xff" if field.kind == "string" else b"ab"
        return self._length(-1 if is_null else len(raw), field, 2 if field.kind == "string" else 4) + raw

    def _length(self, length: int, field: Field, fixed_bytes: int) -> bytes:
        if self._version >= field.flexible_from:
            return uvarint((length + 1) % 2**32)
        return length.to_bytes(fixed_bytes, signed=True)
