"""The careful encoder: write any generated message from its field table, and report which field is wrong.

The generated encoders call it when they fail, as the decoders call careful_decode. Tests compare the two.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NoReturn

from kraft_wire.protocol.errors import EncodeError, UnsupportedVersion
from kraft_wire.protocol.schema import (
    MAX_STRING_BYTES,
    NO_VERSIONS,
    Field,
    Structure,
    UnknownTags,
    defaults_of,
)
from kraft_wire.protocol.text import encode_utf8, shown
from kraft_wire.protocol.varint import uvarint

_INTEGERS: Final = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q"}
_HIGHEST_TAG: Final = 2**31 - 2


def encode_carefully(value: Structure, name: str, out: list[bytes], version: int) -> None:
    """Append the bytes of ``value``, which belongs to message ``name``.

    Raises EncodeError or UnsupportedVersion.
    """
    _Encoder(name, out, version).structure(value)


def is_default(value: object, field: Field, defaults: Structure) -> bool:
    """Whether a field holds its default. An empty array counts as the default unless the default is null."""
    default = getattr(defaults, field.name)
    if field.array and default is not None:
        return value is not None and not value
    return bool(value == default)


class _Encoder:
    def __init__(self, name: str, out: list[bytes], version: int) -> None:
        self.name = name
        self.out = out
        self.version = version
        self.path: list[str] = []

    def structure(self, value: Structure) -> None:
        cls = type(value)
        defaults = defaults_of(cls)
        tagged: list[Field] = []
        for field in cls.FIELDS:
            self.path.append(field.name)
            member = getattr(value, field.name)
            if not field.is_present(self.version):
                if not field.ignorable and not is_default(member, field, defaults):
                    self.absent(member, field)
            elif not field.is_tagged(self.version):
                self.field(member, field, tagged=False)
            elif not is_default(member, field, defaults):
                tagged.append(field)
            self.path.pop()
        unknown = self.unknown_tags(value)
        if self.version >= cls.FLEXIBLE_FROM:
            self.tag_section(value, sorted(tagged, key=lambda field: field.tag), unknown)
        elif unknown:
            self.path.append("unknown_tagged_fields")
            self.unsupported("there are no tagged fields at this version")

    def unknown_tags(self, value: Structure) -> UnknownTags:
        """Return a structure's unknown tagged fields after checking their types; tag_section checks the
        tags."""
        unknown: UnknownTags = getattr(value, "unknown_tagged_fields", ())
        self.path.append("unknown_tagged_fields")
        if not isinstance(unknown, tuple | list):
            self.fail(f"is a {type(unknown).__name__} instead of a tuple of tags with their bytes")
        for each in unknown:
            match each:
                case (int(), bytes() | bytearray() | memoryview()):
                    continue
            self.fail(f"{shown(each)} is not a tag with its bytes")
        self.path.pop()
        return unknown

    def absent(self, member: Any, field: Field) -> NoReturn:
        """Refuse a value at a version without the field. None is always wrong for a field that is never
        nullable."""
        if member is None and field.nullable == NO_VERSIONS:
            self.fail("is None, and must not be")
        self.unsupported("has a value, and does not exist at this version")

    def tag_section(self, value: Structure, known: list[Field], unknown: UnknownTags) -> None:
        self.out.append(uvarint(len(known) + len(unknown)))
        for field in known:
            self.path.append(field.name)
            around, self.out = self.out, []
            self.field(getattr(value, field.name), field, tagged=True)
            payload = b"".join(self.out)
            self.out = around
            self.out += (uvarint(field.tag), uvarint(len(payload)), payload)
            self.path.pop()
        names = {field.tag: field.name for field in type(value).FIELDS if field.tag >= 0}
        previous = -1
        for tag, content in unknown:
            raw = bytes(content)
            if not previous < tag <= _HIGHEST_TAG:
                self.path.append("unknown_tagged_fields")
                self.fail(f"tag {shown(tag)} {_tag_problem(tag, previous)}")
            if tag in names:
                self.path.append("unknown_tagged_fields")
                self.fail(f"tag {tag} is known: it is that of {names[tag]}")
            self.out += (uvarint(tag), uvarint(len(raw)), raw)
            previous = tag

    def field(self, member: Any, field: Field, *, tagged: bool) -> None:
        nullable = field.is_nullable(self.version)
        if member is None:
            self.null(field, nullable, tagged)
        elif field.array:
            self.length(self.count(member), field, 4)
            for index, element in enumerate(member):
                self.path.append(f"[{index}]")
                self.element(element, field)
                self.path.pop()
        else:
            if field.struct is not None and nullable:
                self.out.append(b"\x01")
            self.element(member, field)

    def count(self, member: Any) -> int:
        try:
            return len(member)
        except TypeError:
            self.fail(f"is a {type(member).__name__} instead of an array")

    def null(self, field: Field, nullable: bool, tagged: bool) -> None:
        if not nullable:
            self.fail("is None, and must not be")
        if field.struct is not None and not field.array:
            self.out.append(b"\0" if tagged else b"\xff")
        elif self.version >= field.flexible_from:
            self.out.append(b"\0")
        else:
            self.out.append(b"\xff" * (2 if field.kind == "string" and not field.array else 4))

    def element(self, member: Any, field: Field) -> None:
        if field.struct is not None:
            if not isinstance(member, field.struct):
                self.fail(f"is a {type(member).__name__} instead of a {field.struct.__name__}")
            self.structure(member)
        elif field.kind in _INTEGERS:
            self.integer(member, field.kind)
        elif field.kind == "bool":
            self.boolean(member)
        elif field.kind == "float64":
            self.float64(member)
        elif field.kind == "uuid":
            if not isinstance(member, bytes) or len(member) != 16:
                self.fail(f"{shown(member)} is not a 16-byte id")
            self.out.append(member)
        elif field.kind == "string":
            self.string(member, field)
        else:
            self.binary(member, field)

    def boolean(self, member: Any) -> None:
        """Write a boolean. Any integer except 0 is true, here and in Java."""
        try:
            self.out.append(struct.pack(">b", member))
        except struct.error:
            self.fail(f"{shown(member)} is neither True nor False")

    def integer(self, member: Any, kind: str) -> None:
        try:
            self.out.append(struct.pack(_INTEGERS[kind], member))
        except struct.error:
            self.fail(f"{shown(member)} does not fit {kind}")

    def float64(self, member: Any) -> None:
        try:
            self.out.append(struct.pack(">d", member))
        except struct.error:
            self.fail(f"{shown(member)} is not a number")

    def string(self, member: Any, field: Field) -> None:
        if not isinstance(member, str):
            self.fail(f"is a {type(member).__name__} instead of a str")
        raw = encode_utf8(member)
        if len(raw) > MAX_STRING_BYTES:
            self.fail(f"is a string of {len(raw)} bytes, at most {MAX_STRING_BYTES} are allowed")
        self.length(len(raw), field, 2)
        self.out.append(raw)

    def binary(self, member: Any, field: Field) -> None:
        if not isinstance(member, bytes | bytearray | memoryview):
            self.fail(f"is a {type(member).__name__} instead of bytes")
        raw = bytes(member)
        self.length(len(raw), field, 4)
        self.out.append(raw)

    def length(self, count: int, field: Field, fixed_bytes: int) -> None:
        if self.version >= field.flexible_from:
            self.out.append(uvarint(count + 1))
        else:
            self.out.append(count.to_bytes(fixed_bytes))

    def fail(self, reason: str) -> NoReturn:
        raise EncodeError(self.name, self.where(), reason)

    def unsupported(self, reason: str) -> NoReturn:
        raise UnsupportedVersion(self.name, self.version, reason, self.where())

    def where(self) -> str:
        return ".".join(self.path).replace(".[", "[")


def _tag_problem(tag: int, previous: int) -> str:
    """Return why an unknown tag can't follow the previous one, which is -1 for the first."""
    if tag > _HIGHEST_TAG:
        return f"is above {_HIGHEST_TAG}"
    return "is negative" if tag < 0 else f"follows tag {previous}, but tags must ascend"
