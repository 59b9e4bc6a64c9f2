"""Locate the lengths, texts and tag sections in the bytes of a message."""

from __future__ import annotations

import msgspec

from compat.judges.codec.objects import Misfit
from kraft_wire.protocol.schema import Field, Structure
from kraft_wire.protocol.varint import VarintTooLong, read_uvarint, uvarint

_SIZES = {
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


class Sized(msgspec.Struct, frozen=True):
    """The positions of a length or count, of the content after it, and of the content's end."""

    start: int
    content: int
    end: int
    compact: bool

    def size_bytes(self, size: int) -> bytes:
        """Return the bytes of another length (-1 is null) for the same place; too large ones wrap around."""
        if self.compact:
            return uvarint((size + 1) % 2**32)
        width = self.content - self.start
        return (size % (1 << 8 * width)).to_bytes(width)


class TagEntry(msgspec.Struct, frozen=True):
    """One tagged field, from its tag to the end of its bytes."""

    start: int
    content: int
    end: int
    tag: int


class TagSection(msgspec.Struct, frozen=True):
    """The tagged fields of one structure."""

    start: int
    entries: list[TagEntry]

    @property
    def content(self) -> int:
        """The position of the first entry, after the count."""
        return self.start + len(uvarint(len(self.entries)))

    @property
    def end(self) -> int:
        return self.entries[-1].end if self.entries else self.content


class WireMap:
    """The map of a whole message. Raises Misfit unless the bytes are a message with the shortest lengths."""

    def __init__(self, cls: type[Structure], data: bytes, version: int) -> None:
        self.data = data
        self.sized: list[Sized] = []
        """All lengths and counts except those of tag sections."""
        self.texts: list[Sized] = []
        """The non-empty strings of ``sized``."""
        self.bools: list[int] = []
        self.markers: list[int] = []
        """The positions of the bytes that say whether a structure is null."""
        self.sections: list[TagSection] = []
        self._version = version
        self._pos = 0
        try:
            self._structure(cls)
        except (IndexError, VarintTooLong):
            raise Misfit(f"with our fields, the message is longer than its bytes: {data.hex()}") from None
        if self._pos != len(data):
            raise Misfit(f"with our fields, the message has {self._pos} of {len(data)} bytes: {data.hex()}")

    def _structure(self, cls: type[Structure]) -> None:
        for field in cls.FIELDS:
            if field.is_present(self._version) and not field.is_tagged(self._version):
                self._field(field)
        if self._version >= cls.FLEXIBLE_FROM:
            self._section({field.tag: field for field in cls.FIELDS if field.is_tagged(self._version)})

    def _section(self, known: dict[int, Field]) -> None:
        start, entries = self._pos, []
        for _ in range(self._uvarint()):
            entry_start, tag, size = self._pos, self._uvarint(), self._uvarint()
            content = self._pos
            if tag in known:
                self._field(known[tag])
            else:
                self._pos += size
            entries.append(TagEntry(entry_start, content, self._pos, tag))
        self.sections.append(TagSection(start, entries))

    def _field(self, field: Field) -> None:
        if field.array:
            self._array(field)
        elif field.struct is not None and field.is_nullable(self._version):
            self.markers.append(self._pos)
            self._pos += 1
            if self.data[self._pos - 1] == 1:
                self._structure(field.struct)
        else:
            self._element(field)

    def _array(self, field: Field) -> None:
        start, count = self._pos, self._length(field, 4)
        content = self._pos
        for _ in range(count):
            self._element(field)
        self._add(self.sized, field, start, content)

    def _element(self, field: Field) -> None:
        if field.struct is not None:
            self._structure(field.struct)
        elif field.kind in _SIZES:
            if field.kind == "bool":
                self.bools.append(self._pos)
            self._pos += _SIZES[field.kind]
        else:
            start, size = self._pos, self._length(field, 2 if field.kind == "string" else 4)
            content = self._pos
            self._pos += max(0, size)
            self._add(self.sized, field, start, content)
            if field.kind == "string" and size > 0:
                self._add(self.texts, field, start, content)

    def _add(self, kept: list[Sized], field: Field, start: int, content: int) -> None:
        kept.append(Sized(start, content, self._pos, self._version >= field.flexible_from))

    def _length(self, field: Field, width: int) -> int:
        if self._version >= field.flexible_from:
            return self._uvarint() - 1
        self._pos += width
        return int.from_bytes(self.data[self._pos - width : self._pos], signed=True)

    def _uvarint(self) -> int:
        value, self._pos = read_uvarint(self.data, self._pos)
        return value
