"""The careful decoder: read any generated message from its field table, one field at a time.

The generated decoders handle the common case in straight-line code. If one of them fails, it calls this
decoder. This one either reports the error with its field and offset, or reads input that is unusual but
legal: malformed UTF-8, unknown tagged fields, lengths that are longer than necessary. Tests compare the two.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NoReturn, TypeVar

from kraft_wire.protocol.errors import DecodeError
from kraft_wire.protocol.schema import (
    MAX_ARRAY_LENGTH,
    MAX_STRING_BYTES,
    MAX_TAGGED_FIELDS,
    Field,
    Structure,
    UnknownTags,
)
from kraft_wire.protocol.text import decode_utf8
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.protocol.varint import VarintTooLong, read_uvarint

S = TypeVar("S", bound=Structure)

_NUMBERS: Final = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "uint32": struct.Struct(">I"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
}


def decode_carefully(cls: type[S], name: str, data: bytes, version: int, pos: int) -> tuple[S, int]:
    """Read a ``cls`` that begins at ``pos``. ``name`` is the name of the message. Raises DecodeError."""
    decoder = _Decoder(name, data, version, pos)
    return decoder.structure(cls), decoder.pos


def decode_element(field: Field, name: str, data: bytes, version: int, pos: int) -> tuple[Any, int]:
    """Read the value of a field of the message ``name``, or one of its values if it is an array.

    Returns it and the position after it. Raises DecodeError.
    """
    decoder = _Decoder(name, data, version, pos)
    nullable = not field.array and field.is_nullable(version)
    return decoder.element(field, nullable=nullable), decoder.pos


class _Decoder:
    def __init__(self, name: str, data: bytes, version: int, pos: int) -> None:
        self.name = name
        self.data = data
        self.version = version
        self.pos = pos
        self.path: list[str] = []

    def structure(self, cls: type[S]) -> S:
        values: dict[str, Any] = {}
        for field in cls.FIELDS:
            if field.is_present(self.version) and not field.is_tagged(self.version):
                self.path.append(field.name)
                values[field.name] = self.value(field, tagged=False)
                self.path.pop()
        if self.version >= cls.FLEXIBLE_FROM:
            unknown = self.tagged_fields(cls.FIELDS, values)
            if unknown:
                values["unknown_tagged_fields"] = unknown
        return cls(**values)

    def value(self, field: Field, *, tagged: bool) -> Any:
        if field.array:
            return self.array(field)
        if field.struct is not None and field.is_nullable(self.version) and self.struct_is_null(tagged):
            return None
        return self.element(field, nullable=field.is_nullable(self.version))

    def struct_is_null(self, tagged: bool) -> bool:
        if tagged:
            return not 0 < self.uvarint() < 2**31
        return self.take(1)[0] >= 0x80

    def element(self, field: Field, *, nullable: bool) -> Any:
        """Read one value that is not an array: a field or an array's element."""
        if field.struct is not None:
            return self.structure(field.struct)
        number = _NUMBERS.get(field.kind)
        if number is not None:
            return number.unpack(self.take(number.size))[0]
        if field.kind == "bool":
            return self.take(1) != b"\0"
        if field.kind == "uuid":
            return Uuid(self.take(16))
        start = self.pos
        length = self.length(field, 2 if field.kind == "string" else 4)
        if length < 0:
            return self.null(nullable, start)
        if field.kind == "string":
            if length > MAX_STRING_BYTES:
                self.fail(f"string of {length} bytes, at most {MAX_STRING_BYTES} are allowed")
            return decode_utf8(self.take(length))
        return self.take(length)

    def array(self, field: Field) -> Any:
        start = self.pos
        length = self.length(field, 4)
        if length < 0:
            return self.null(field.is_nullable(self.version), start)
        left = len(self.data) - self.pos
        if length > left:
            self.fail(f"array of {length} elements in {left} remaining bytes")
        if length > MAX_ARRAY_LENGTH:
            self.fail(f"array of {length} elements, at most {MAX_ARRAY_LENGTH} are allowed")
        values = []
        for index in range(length):
            self.path.append(f"[{index}]")
            values.append(self.element(field, nullable=False))
            self.path.pop()
        return values if field.struct is not None else tuple(values)

    def tagged_fields(self, fields: tuple[Field, ...], values: dict[str, Any]) -> UnknownTags:
        """Read a tag section: store known fields in ``values`` and return the others."""
        count = self.uvarint()
        left = len(self.data) - self.pos
        if count > min(left, MAX_TAGGED_FIELDS):
            self.fail(f"{count} tagged fields in {left} bytes, at most {MAX_TAGGED_FIELDS} are allowed")
        known = {field.tag: field for field in fields if field.tag >= 0}
        unknown = []
        for _ in range(count):
            tag = _signed(self.uvarint())
            size = self.uvarint()
            field = known.get(tag)
            if field is None:
                unknown.append((tag, self.take(size)))
                continue
            self.path.append(field.name)
            if not field.is_tagged(self.version):
                self.fail(f"tag {tag} is not valid at version {self.version}")
            # The size of a known field is redundant; Java ignores it too.
            values[field.name] = self.value(field, tagged=True)
            self.path.pop()
        return tuple(unknown)

    def length(self, field: Field, fixed_bytes: int) -> int:
        """Read a length or count; negative for null."""
        if self.version >= field.flexible_from:
            # Java subtracts one in 32 bits, so the lowest integer wraps to the highest.
            return _signed(self.uvarint() - 1)
        return int.from_bytes(self.take(fixed_bytes), signed=True)

    def null(self, nullable: bool, start: int) -> None:
        if not nullable:
            self.pos = start
            self.fail("is null, and must not be")

    def uvarint(self) -> int:
        try:
            value, self.pos = read_uvarint(self.data, self.pos)
        except VarintTooLong as error:
            self.fail(f"varint has {error}")
        except IndexError:
            self.fail("ends inside a varint")
        return value

    def take(self, size: int) -> bytes:
        end = self.pos + size
        if end > len(self.data):
            self.fail(f"needs {size} bytes, {len(self.data) - self.pos} remain")
        raw = self.data[self.pos : end]
        self.pos = end
        return raw

    def fail(self, reason: str) -> NoReturn:
        field = ".".join(self.path).replace(".[", "[")
        raise DecodeError(self.name, field, self.pos, reason)


def _signed(value: int) -> int:
    """Return the signed integer with the same 32 bits, as in Java; -1 stays -1."""
    return value - 2**32 if value >= 2**31 else value
