"""Messages as Java prints them in JSON: compact, Jackson's escapes, Java's way with floating point."""

from __future__ import annotations

import re
from functools import cache
from json.encoder import ESCAPE
from typing import Any

import msgspec

from kraft_wire.controller.config_types import format_value
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.schema import Structure

_NAMED_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", "\b": "\\b"}
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_encode = msgspec.json.Encoder().encode


def metadata_json(message: Message, version: int) -> str:
    """A metadata record with its type and version around it, as DumpLogSegments composes it."""
    return f"{_record_head(type(message), version)}{message_json(message, version)}}}"


def message_json(message: Message, version: int) -> str:
    """A message alone, as its JsonConverter prints it."""
    tree = message.to_json(version)
    if _holds_floats(type(message)):
        return _java_json(tree)
    text = _encode(tree).decode()
    # msgspec writes control characters with small hexadecimal digits, Jackson with capital ones.
    return _java_json(tree) if "\\u00" in text else text


@cache
def _record_head(cls: type[Message], version: int) -> str:
    kind = _CAPITAL.sub("_", cls.NAME).upper()
    return f'{{"type":"{kind}","version":{version},"data":'


@cache
def _holds_floats(cls: type[Structure]) -> bool:
    return any(
        field.kind == "float64" or (field.struct is not None and _holds_floats(field.struct))
        for field in cls.FIELDS
    )


def _java_json(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(name)}:{_java_json(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_java_json, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float):
        text = format_value(value)
        return text if text[-1].isdigit() else f'"{text}"'
    return _encode(value).decode()


def _quoted(text: str) -> str:
    return '"' + ESCAPE.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _NAMED_ESCAPES.get(character) or f"\\u{ord(character):04X}"
