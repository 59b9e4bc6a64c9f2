"""Convert messages to and from Kafka's own JSON form, that of its generated JsonConverter classes.

kafka-dump-log prints this form. Keys are Kafka's names with the first letter in lower case. Ids are base64
text without padding, bytes are base64 with padding. A tagged field that holds its default is left out;
unknown tagged fields and the bytes of ``records`` are never shown.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, Final, NoReturn, TypeVar

from kraft_wire.protocol.careful_encode import is_default
from kraft_wire.protocol.errors import DecodeError, EncodeError, UnsupportedVersion
from kraft_wire.protocol.schema import NO_VERSIONS, Field, Structure, defaults_of, versions_of
from kraft_wire.protocol.text import shown
from kraft_wire.protocol.uuid import Uuid

S = TypeVar("S", bound=Structure)

_INTEGER_RANGES: Final = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}

_PYTHON_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(_INTEGER_RANGES, int),
    "bool": (bool, int),
    "float64": (float, int),
    "uuid": bytes,
    "string": str,
    "bytes": (bytes, bytearray, memoryview),
    "records": (bytes, bytearray, memoryview),
}
"""The Python types that a field of each kind may hold, the same as for the codec."""

_BASE64: Final = re.compile(r"(?:[\0- ]*[A-Za-z0-9+/]{2}(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|==))*[\0- ]*")
"""Base64 as Jackson reads it: white space between groups of four, and padding at the end of each group."""
_BASE64_RUN: Final = re.compile(r"[A-Za-z0-9+/]+=*")


def structure_to_json(value: Structure, name: str, version: int) -> dict[str, Any]:
    """Return the JSON form of ``value``, which belongs to message ``name``.

    Raises EncodeError or UnsupportedVersion, with the field.
    """
    return _Writer(name, version).structure(value)


class _Writer:
    def __init__(self, name: str, version: int) -> None:
        self.name = name
        self.version = version
        self.path: list[str] = []

    def structure(self, value: Structure) -> dict[str, Any]:
        defaults = defaults_of(type(value))
        node: dict[str, Any] = {}
        for field in value.FIELDS:
            self.path.append(field.name)
            member = getattr(value, field.name)
            if not field.is_present(self.version):
                if not field.ignorable and not is_default(member, field, defaults):
                    self.absent(member, field)
            elif not field.is_tagged(self.version) or not is_default(member, field, defaults):
                node[field.json_name] = self.field(member, field)
            self.path.pop()
        return node

    def absent(self, member: object, field: Field) -> NoReturn:
        if member is None and field.nullable == NO_VERSIONS:
            self.fail("is None, and must not be")
        reason = "has a value, and does not exist at this version"
        raise UnsupportedVersion(self.name, self.version, reason, joined_path(self.path))

    def field(self, member: Any, field: Field) -> Any:
        if member is None:
            if field.kind == "records" and field.nullable == NO_VERSIONS:
                return ""
            if not _shows_null(field, self.version):
                self.fail("is None, and must not be")
            return None
        if not field.array:
            return self.element(member, field)
        if not isinstance(member, Sequence) or isinstance(member, str | bytes):
            self.fail(f"is a {type(member).__name__} instead of an array")
        elements: list[Any] = []
        for index, element in enumerate(member):
            self.path.append(f"[{index}]")
            if element is None and field.kind == "string":
                elements.append(None)
            else:
                elements.append(self.element(element, field))
            self.path.pop()
        return elements

    def element(self, member: Any, field: Field) -> Any:
        wanted: Any = field.struct or _PYTHON_TYPES[field.kind]
        if member is None:
            self.fail("is None, and must not be")
        if not isinstance(member, wanted):
            self.fail(f"is a {type(member).__name__} instead of {_name(wanted)}")
        if field.struct is not None:
            return self.structure(member)
        if field.kind == "uuid":
            return self.identifier(member)
        if field.kind == "bytes":
            return b64encode(member).decode("ascii")
        if field.kind == "bool":
            return bool(member)
        # Java's converter always shows records as empty.
        return "" if field.kind == "records" else member

    def identifier(self, member: bytes) -> str:
        try:
            return str(Uuid(member))
        except ValueError as error:
            self.fail(str(error))

    def fail(self, reason: str) -> NoReturn:
        raise EncodeError(self.name, joined_path(self.path), reason)


def _name(wanted: type | tuple[type, ...]) -> str:
    return wanted[0].__name__ if isinstance(wanted, tuple) else wanted.__name__


def _shows_null(field: Field, version: int) -> bool:
    """Whether Java's converter shows null at this version instead of failing.

    At the versions at which the field isn't tagged it does for every string, and for every field that may be
    null at any of these versions.
    """
    if field.is_tagged(version):
        return field.is_nullable(version)
    if field.kind == "string" and not field.array:
        return True
    return field.nullable != NO_VERSIONS and field.nullable[0] < field.tagged_from


def structure_from_json(cls: type[S], node: object, name: str, version: int) -> S:
    """Read the JSON form of a ``cls``. ``name`` is the name of the message. Raises DecodeError, which names
    the field."""
    return _Reader(name, version).structure(cls, node)


class _Reader:
    def __init__(self, name: str, version: int) -> None:
        self.name = name
        self.version = version
        self.path: list[str] = []

    def structure(self, cls: type[S], node: object) -> S:
        if not isinstance(node, dict):
            self.fail(f"is {_kind(node)} instead of an object")
        values: dict[str, Any] = {}
        for field in cls.FIELDS:
            self.path.append(field.json_name)
            if field.json_name in node:
                values[field.name] = self.field(field, node[field.json_name])
            elif field.is_present(self.version) and not field.is_tagged(self.version):
                self.fail(f"is missing, and mandatory at version {self.version}")
            self.path.pop()
        return cls(**values)

    def field(self, field: Field, node: object) -> Any:
        if node is None and field.nullable != NO_VERSIONS:
            return None
        if not field.array:
            return self.element(field, node)
        if not isinstance(node, list):
            self.fail(f"is {_kind(node)} instead of an array")
        values = []
        for index, element in enumerate(node):
            self.path.append(f"[{index}]")
            values.append(self.element(field, element))
            self.path.pop()
        return values if field.struct is not None else tuple(values)

    def element(self, field: Field, node: object) -> Any:
        if field.struct is not None:
            self.check_struct_version(field.struct)
            return self.structure(field.struct, node)
        if field.kind in _INTEGER_RANGES:
            return self.integer(field.kind, node)
        if field.kind == "bool":
            return self.expect(bool, node, "true or false")
        if field.kind == "float64":
            return self.expect(float, node, "a number with a fraction")
        text = self.expect(str, node, "a string")
        if field.kind == "string":
            return text
        return self.identifier(text) if field.kind == "uuid" else self.binary(text)

    def check_struct_version(self, cls: type[Structure]) -> None:
        """Refuse a struct that has no form at this version, even if its field would be ignored."""
        low, high = versions_of(cls)
        if not low <= self.version <= high:
            reason = f"{cls.__name__} exists at versions {low} to {high}"
            raise UnsupportedVersion(self.name, self.version, reason, joined_path(self.path))

    def integer(self, kind: str, node: object) -> int:
        if isinstance(node, bool) or not isinstance(node, int):
            self.fail(f"is {_kind(node)} instead of an integer")
        low, high = _INTEGER_RANGES[kind]
        if kind == "int8" and high < node <= 256:
            # MessageUtil.jsonNodeToByte subtracts 128, and its cast wraps 256 around.
            return -128 if node == 256 else node - 128
        if not low <= node <= high:
            self.fail(f"{shown(node)} does not fit {kind}")
        return node

    def identifier(self, text: str) -> Uuid:
        try:
            return Uuid.parse(text)
        except ValueError as error:
            self.fail(str(error))

    def binary(self, text: str) -> bytes:
        if not _BASE64.fullmatch(text):
            self.fail("is not base64")
        return b"".join(b64decode(run) for run in _BASE64_RUN.findall(text))

    def expect(self, kind: type, node: object, wanted: str) -> Any:
        if not isinstance(node, kind):
            self.fail(f"is {_kind(node)} instead of {wanted}")
        return node

    def fail(self, reason: str) -> NoReturn:
        raise DecodeError(self.name, joined_path(self.path), -1, reason)


def joined_path(path: Sequence[str]) -> str:
    """Return ``topics``, ``[0]``, ``partitions`` as ``topics[0].partitions``."""
    return ".".join(path).replace(".[", "[")


def _kind(node: object) -> str:
    return {dict: "an object", list: "an array", str: "a string", type(None): "null"}.get(
        type(node), shown(node)
    )
