"""Convert our messages to and from the judge's OBJECT, which has every field under Java's name, at any
version.

A float is the hexadecimal text of its bits, bytes and ids are hexadecimal, "?" lists the unknown tagged
fields.
"""

from __future__ import annotations

import struct
from typing import Any

from kraft_wire.protocol.schema import Field, Structure
from kraft_wire.protocol.uuid import Uuid

UNKNOWN = "?"
_AS_IT_IS = ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "string")


class Misfit(Exception):
    """The fields of Java's object or bytes are not ours."""


def to_object(value: Structure) -> dict[str, Any]:
    """Return the OBJECT that Java would show for the same values."""
    made = {field.json_name: _show(getattr(value, field.name), field) for field in value.FIELDS}
    made[UNKNOWN] = [[tag, raw.hex()] for tag, raw in getattr(value, "unknown_tagged_fields", ())]
    return made


def from_object(cls: type[Structure], shown: dict[str, Any]) -> Any:
    """Return our message with the values of an OBJECT, even if it can't be encoded."""
    names = [*(field.json_name for field in cls.FIELDS), UNKNOWN]
    if list(shown) != names:
        raise Misfit(f"{cls.__name__} has the fields {', '.join(names)}; Java's has {', '.join(shown)}")
    values = {field.name: _read(shown[field.json_name], field) for field in cls.FIELDS}
    if shown[UNKNOWN]:
        values["unknown_tagged_fields"] = tuple((tag, bytes.fromhex(raw)) for tag, raw in shown[UNKNOWN])
    return cls(**values)


def _show(value: Any, field: Field) -> Any:
    if value is None:
        return None
    if field.array:
        return [_show_element(element, field) for element in value]
    return _show_element(value, field)


def _show_element(value: Any, field: Field) -> Any:
    if value is None or field.kind in _AS_IT_IS:
        return value
    if field.struct is not None:
        return to_object(value)
    if field.kind == "float64":
        return struct.pack(">d", value).hex()
    return bytes(value).hex()


def _read(shown: Any, field: Field) -> Any:
    if shown is None:
        return None
    if not field.array:
        return _read_element(shown, field)
    values = [_read_element(element, field) for element in shown]
    return values if field.struct is not None else tuple(values)


def _read_element(shown: Any, field: Field) -> Any:
    if shown is None or field.kind in _AS_IT_IS:
        return shown
    if field.struct is not None:
        return from_object(field.struct, shown)
    raw = bytes.fromhex(shown)
    if field.kind == "float64":
        return struct.unpack(">d", raw)[0]
    return Uuid(raw) if field.kind == "uuid" else raw
