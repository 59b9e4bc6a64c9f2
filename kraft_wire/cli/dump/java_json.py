"""Print messages in JSON as Java does: compact, with Jackson's escapes and Java's floating point.

The text is that of ``Message.to_json``. A printer for each class and version builds it from the field tables,
without a tree in between, because a log has millions of records.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from json.encoder import ESCAPE
from operator import attrgetter
from typing import Any

from kraft_wire.configs.types import format_value
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.schema import Field, Structure

Printer = Callable[[Any], str]
"""Returns the JSON text of a value of the kind that the printer was made for."""

_NAMED_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", "\b": "\\b"}
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
TEXTS_REMEMBERED = 16_384
SETS = ("int32", "uuid")
"""Kinds whose arrays are mostly sets of brokers or of directories.

Floating point can't be one of them: 0.0 and -0.0 are equal, but print differently.
"""
LARGEST_REMEMBERED = 16


def metadata_json(message: Message, version: int) -> str:
    """Return a metadata record with its type and version around it, as DumpLogSegments does."""
    return f"{_record_head(type(message), version)}{message_json(message, version)}}}"


def message_json(message: Message, version: int) -> str:
    """Return a message alone, as its JsonConverter prints it: its records are always empty."""
    return _structure_printer(type(message), version, _no_records)(message)


def whole_message_json(message: Message, version: int) -> str:
    """Return a message with its records in base64, as JsonConverter reads them."""
    return _structure_printer(type(message), version, _bytes)(message)


@cache
def _record_head(cls: type[Message], version: int) -> str:
    kind = _CAPITAL.sub("_", cls.NAME).upper()
    return f'{{"type":"{kind}","version":{version},"data":'


@cache
def _structure_printer(cls: type[Structure], version: int, records: Printer) -> Printer:
    """Build one template for the whole structure. Every member begins with a comma; the first is cut off."""
    fields = [field for field in cls.FIELDS if field.is_present(version)]
    if not fields:
        return lambda _: "{}"
    get_members = _members_getter([field.name for field in fields])
    template = "".join("%s" if field.is_tagged(version) else f",{_head(field)}%s" for field in fields)
    printers = [
        (place, printer)
        for place, field in enumerate(fields)
        if (printer := _member_printer(field, cls(), version, records)) is not str
    ]

    def text(value: Structure) -> str:
        members = get_members(value)
        for place, printer in printers:
            members[place] = printer(members[place])
        return f"{{{(template % tuple(members))[1:]}}}"

    return text


def _members_getter(names: list[str]) -> Callable[[Structure], list[Any]]:
    get = attrgetter(*names)
    if len(names) == 1:
        return lambda value: [get(value)]
    return lambda value: list(get(value))


def _member_printer(field: Field, defaults: Structure, version: int, records: Printer) -> Printer:
    """Return the printer of a member's value; for a tagged field, of its name as well unless it has its
    default."""
    text = _element_printer(field, version, records)
    if field.array:
        text = _array_printer(text, repeats=field.kind in SETS)
    if field.is_nullable(version):
        text = _nullable_printer(text)
    if field.is_tagged(version):
        text = _tagged_printer(f",{_head(field)}", text, getattr(defaults, field.name))
    return text


def _head(field: Field) -> str:
    return f"{_quoted(field.json_name)}:"


def _array_printer(element: Printer, *, repeats: bool) -> Printer:
    """Return the printer of an array. ``repeats`` means that short arrays have few different values."""

    def text(members: Iterable[Any]) -> str:
        return "[" + ",".join(map(element, members)) + "]"

    if not repeats:
        return text
    remembered = lru_cache(TEXTS_REMEMBERED)(text)
    return lambda members: remembered(members) if len(members) <= LARGEST_REMEMBERED else text(members)


def _nullable_printer(present: Printer) -> Printer:
    return lambda member: "null" if member is None else present(member)


def _tagged_printer(head: str, text: Printer, default: object) -> Printer:
    return lambda member: "" if member == default else head + text(member)


def _element_printer(field: Field, version: int, records: Printer) -> Printer:
    if field.struct is not None:
        return _structure_printer(field.struct, version, records)
    if field.kind == "records":
        return records
    return _PRINTERS.get(field.kind, str)


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _float(value: float) -> str:
    text = format_value(value)
    return text if text[-1].isdigit() else f'"{text}"'


@lru_cache(TEXTS_REMEMBERED)
def _uuid(value: object) -> str:
    return f'"{value}"'


def _bytes(value: bytes) -> str:
    return f'"{b64encode(value).decode("ascii")}"'


def _no_records(_: object) -> str:
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
}
"""By the schema's kind; the integers are their decimal digits."""
