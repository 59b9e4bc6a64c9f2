"""Decode and encode one line of JSON: a message's bytes to its JSON form, and back. No I/O.

``decode`` reads ``{"message", "version", "hex"}`` and writes ``{"message", "version", "data"}``; ``encode``
does the reverse. ``data`` is Kafka's JSON form, with the bytes of records in base64: Kafka prints none, and
reads them in base64. If necessary, ``unknown_tags`` (see ``tags``) and ``unread_bytes`` follow: the number of
bytes after the message, which Java ignores. ``encode`` reads what ``decode`` writes; it doesn't write unread
bytes. Other fields of a line are copied to its answer.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from kraft_wire.cli.codec.tags import UnknownTag, put_unknown_tags, unknown_tags
from kraft_wire.cli.codec.text import LineError, explain, find_class, from_hex
from kraft_wire.cli.dump.java_json import whole_message_json
from kraft_wire.configs.nearest import nearest
from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.schema import Structure


class Answer(NamedTuple):
    """A line to print, and whether it holds a result rather than an error."""

    line: str
    ok: bool


class _DecodeLine(msgspec.Struct, forbid_unknown_fields=True):
    message: str
    version: int
    hex: str


class _EncodeLine(msgspec.Struct, forbid_unknown_fields=True):
    message: str
    version: int
    data: dict[str, Any]
    unknown_tags: list[UnknownTag] = []
    unread_bytes: int = 0


Line = TypeVar("Line", _DecodeLine, _EncodeLine)


class _Names(msgspec.Struct):
    """The message that a line is about, if the line names it."""

    message: str
    version: int


_read_decode_line = msgspec.json.Decoder(_DecodeLine).decode
_read_encode_line = msgspec.json.Decoder(_EncodeLine).decode
_read_names = msgspec.json.Decoder(_Names).decode
_read_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_OURS: Final = frozenset({*_DecodeLine.__struct_fields__, *_EncodeLine.__struct_fields__, "error", "line"})
"""The fields that lines and answers define."""
_OPTIONAL: Final = ("unknown_tags", "unread_bytes")
_TEXTS_OF_FLOATS = ("NaN", "Infinity", "-Infinity")
MOST_SHOWN = 1000
"""The most characters of an error, or of an unknown name, that are shown."""
LONGEST_NUMBER = 24
"""The most characters of a number that are shown."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode_line(line: bytes, number: int) -> Answer:
    """Return the answer to one line of ``decode``; ``number`` counts lines from 1."""
    try:
        asked, others = _read(line, _read_decode_line, _DecodeLine)
        cls = find_class(asked.message, asked.version)
        raw = from_hex(asked.hex)
    except LineError as error:
        return _refusal(line, number, str(error))
    except _NOT_JSON as error:
        return _refusal(line, number, located(line, error))
    try:
        message, end = cls.decode_from(raw, asked.version, 0)
    except ProtocolError as error:
        return _refusal(line, number, explain(error, cls))
    return Answer(f"{{{message_members(message, asked.version, len(raw) - end)}{others}}}", True)


def encode_line(line: bytes, number: int) -> Answer:
    """Return the answer to one line of ``encode``."""
    try:
        asked, others = _read(line, _read_encode_line, _EncodeLine)
        cls = find_class(asked.message, asked.version)
        _prepare(cls, asked.data, cls.NAME)
        try:
            message = cls.from_json(asked.data, asked.version)
            put_unknown_tags(message, asked.unknown_tags)
            raw = message.encode(asked.version)
        except ProtocolError as error:
            return _refusal(line, number, explain(error, cls))
    except LineError as error:
        return _refusal(line, number, str(error))
    except _NOT_JSON as error:
        return _refusal(line, number, located(line, error))
    return Answer(f'{{"message":"{cls.NAME}","version":{asked.version},"hex":"{raw.hex()}"{others}}}', True)


def _read(line: bytes, read: Callable[[bytes], Line], kind: type[Line]) -> tuple[Line, str]:
    """Return a line and the text of its other fields, with a comma before each.

    Raises LineError for a field that only another kind of line has, msgspec.DecodeError and
    UnicodeDecodeError for a malformed line.
    """
    try:
        return read(line), ""
    except msgspec.ValidationError as error:
        if "unknown field" not in str(error):
            raise
    members = _read_members(line)
    own = {name: value for name, value in members.items() if name in kind.__struct_fields__}
    others = {name: value for name, value in members.items() if name not in own}
    for name in others:
        if name in _OURS:
            raise LineError(f"`{name}` is a field of another kind of line: rename it")
        if kind is _EncodeLine and (near := get_close_matches(name, _OPTIONAL, n=1, cutoff=0.8)):
            raise LineError(f"`{name}`: the nearest field is `{near[0]}`")
    return read(msgspec.json.encode(own)), _members_text(others)


def _members_text(members: Mapping[str, msgspec.Raw]) -> str:
    return "".join(f",{to_text(name)}:{bytes(value).decode()}" for name, value in members.items())


def message_members(message: Message, version: int, unread_bytes: int) -> str:
    """Return the members of a line that shows a message, without the braces."""
    text = f'"message":"{message.NAME}","version":{version},"data":{whole_message_json(message, version)}'
    tags = unknown_tags(message)
    if tags:
        text += f',"unknown_tags":{to_text(msgspec.to_builtins(tags))}'
    return text + f',"unread_bytes":{unread_bytes}' if unread_bytes else text


def to_text(value: object) -> str:
    """Return compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def located(line: bytes, error: Exception) -> str:
    """Return what is wrong with a line's JSON, and where, also if msgspec doesn't say where."""
    reason = str(error)
    if reason == "Input data was truncated":
        return f"{reason} (byte {len(line)})"
    if reason.startswith("Number out of range"):
        for found in filter(_is_too_large, _NUMBER.finditer(_STRING.sub(_blank, line))):
            return f"number out of range: {found[0].decode()[:LONGEST_NUMBER]} (byte {found.start()})"
    return reason


def _blank(text: re.Match[bytes]) -> bytes:
    return b" " * len(text[0])


def _is_too_large(number: re.Match[bytes]) -> bool:
    return math.isinf(float(number[0]))


def _refusal(line: bytes, number: int, reason: str) -> Answer:
    error = {"error": _shortened(reason)}
    try:
        members = _read_members(line)
    except _NOT_JSON:
        return Answer(to_text({"line": number} | error), False)
    others = _members_text({name: value for name, value in members.items() if name not in _OURS})
    return Answer(f"{to_text(_place(line, number) | error)[:-1]}{others}}}", False)


def _place(line: bytes, number: int) -> dict[str, object]:
    """Return the message that a line names, or the number of the line if it names none."""
    try:
        names = _read_names(line)
    except _NOT_JSON:
        return {"line": number}
    return {"message": _shortened(names.message), "version": names.version}


def _shortened(text: str) -> str:
    """Keep both ends of a long text: an error about megabytes names the problem first or last."""
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN // 2]}...{text[-MOST_SHOWN // 2 :]}"


def _prepare(cls: type[Structure], node: object, place: str) -> None:
    """Refuse what Java drops silently: members that no version has, and values that are no structures.

    Turn the texts of floating-point numbers that JSON lacks into numbers again.
    """
    if not isinstance(node, dict):
        raise LineError(f"{place}: is {to_text(node)} instead of an object")
    fields = {field.json_name: field for field in cls.FIELDS}
    for name, member in node.items():
        field = fields.get(name)
        if field is None:
            raise LineError(f"{place}.{name}: there is no such field{nearest(name, fields)}")
        if field.kind == "float64" and isinstance(member, str) and member in _TEXTS_OF_FLOATS:
            node[name] = float(member)
        elif field.struct is not None and isinstance(member, list):
            for index, element in enumerate(member):
                _prepare(field.struct, element, f"{place}.{name}[{index}]")
        elif field.struct is not None and not field.array and member is not None:
            _prepare(field.struct, member, f"{place}.{name}")
