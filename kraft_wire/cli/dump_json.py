"""Messages as Java prints them in JSON: compact, with Jackson's escapes and Java's way with floating point.

The text is that of ``Message.to_json``. It is put together from the field tables without the tree between, by
a printer for each class and version, because a log has millions of records.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from functools import cache, lru_cache
from json.encoder import ESCAPE
from operator import attrgetter
from typing import Any, NamedTuple

from kraft_wire.controller.config_types import format_value
from kraft_wire.protocol.careful_encode import is_default
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.schema import Field, Structure

Printer = Callable[[Any], str]
"""The JSON text of a value of the kind that the printer was made for."""

_NAMED_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", "\b": "\\b"}
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_UUIDS_REMEMBERED = 65_536


class _Member(NamedTuple):
    """One field of a structure: its name as JSON has it, and whether its default is left out."""

    head: str
    get: Callable[[Structure], Any]
    text: Printer
    is_left_out: Callable[[Any], bool] | None


def metadata_json(message: Message, version: int) -> str:
    """A metadata record with its type and version around it, as DumpLogSegments composes it."""
    return f"{_record_head(type(message), version)}{message_json(message, version)}}}"


def message_json(message: Message, version: int) -> str:
    """A message alone, as its JsonConverter prints it."""
    return _structure_printer(type(message), version)(message)


@cache
def _record_head(cls: type[Message], version: int) -> str:
    kind = _CAPITAL.sub("_", cls.NAME).upper()
    return f'{{"type":"{kind}","version":{version},"data":'


@cache
def _structure_printer(cls: type[Structure], version: int) -> Printer:
    members = [_member(field, cls(), version) for field in cls.FIELDS if field.is_present(version)]

    def text(value: Structure) -> str:
        parts = []
        for head, get, member_text, is_left_out in members:
            member = get(value)
            if is_left_out is None or not is_left_out(member):
                parts.append(head + member_text(member))
        return "{" + ",".join(parts) + "}"

    return text


def _member(field: Field, defaults: Structure, version: int) -> _Member:
    is_left_out = (lambda member: is_default(member, field, defaults)) if field.is_tagged(version) else None
    text = _element_printer(field, version)
    if field.array:
        text = _array_printer(text)
    if field.is_nullable(version):
        text = _nullable_printer(text)
    return _Member(f"{_quoted(field.json_name)}:", attrgetter(field.name), text, is_left_out)


def _array_printer(element: Printer) -> Printer:
    return lambda members: "[" + ",".join(map(element, members)) + "]"


def _nullable_printer(present: Printer) -> Printer:
    return lambda member: "null" if member is None else present(member)


def _element_printer(field: Field, version: int) -> Printer:
    if field.struct is not None:
        return _structure_printer(field.struct, version)
    return _PRINTERS.get(field.kind, str)


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _float(value: float) -> str:
    text = format_value(value)
    return text if text[-1].isdigit() else f'"{text}"'


@lru_cache(_UUIDS_REMEMBERED)
def _uuid(value: object) -> str:
    return f'"{value}"'


def _bytes(value: bytes) -> str:
    return f'"{b64encode(value).decode("ascii")}"'


def _records(_: object) -> str:
    """Java's converter shows no records, whatever there are."""
    return '""'


def _quoted(text: str) -> str:
    return f'"{ESCAPE.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _NAMED_ESCAPES.get(character) or f"\\u{ord(character):04X}"


_PRINTERS: dict[str, Printer] = {
    "bool": _bool,
    "float64": _float,
    "uuid": _uuid,
    "string": _quoted,
    "bytes": _bytes,
    "records": _records,
}
"""By the schema's kind; the integers are their decimal digits."""
