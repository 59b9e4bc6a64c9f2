"""One line of JSON in, one line of JSON out: a message's bytes and its JSON form. No I/O.

``decode`` reads ``{"message", "version", "hex"}`` and writes ``{"message", "version", "data"}``, ``encode``
the other way round. ``data`` is Kafka's JSON form, with the bytes of records in base64: Kafka prints none,
and reads them so. Beside it stand, where there is something to say, ``unknown_tags`` (see codec_tags) and
``unread_bytes``: how many bytes follow the message, which Java ignores. ``encode`` reads what ``decode``
writes; unread bytes are not written back.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

import msgspec

from kraft_wire.cli.codec_tags import UnknownTag, put_unknown_tags, unknown_tags
from kraft_wire.cli.codec_text import LineError, explain, find_class, from_hex, nearest
from kraft_wire.cli.dump_json import whole_message_json
from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.schema import Structure


class Answer(NamedTuple):
    """A line to print, and whether it is what was asked for."""

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


class _Names(msgspec.Struct):
    """What a line is about, if it says so."""

    message: str
    version: int


_read_decode_line = msgspec.json.Decoder(_DecodeLine).decode
_read_encode_line = msgspec.json.Decoder(_EncodeLine).decode
_read_names = msgspec.json.Decoder(_Names).decode
_TEXTS_OF_FLOATS = ("NaN", "Infinity", "-Infinity")
MOST_TOLD = 1000
"""Characters of an error, or of a name that is none."""
LONGEST_NUMBER = 24
"""So many characters of a number are shown."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode_line(line: bytes, number: int) -> Answer:
    """The answer to one line of ``decode``; ``number`` counts lines from 1."""
    try:
        asked = _read_decode_line(line)
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
    return Answer(f"{{{message_members(message, asked.version, len(raw) - end)}}}", True)


def encode_line(line: bytes, number: int) -> Answer:
    """The answer to one line of ``encode``."""
    try:
        asked = _read_encode_line(line)
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
    return Answer(f'{{"message":"{cls.NAME}","version":{asked.version},"hex":"{raw.hex()}"}}', True)


def message_members(message: Message, version: int, unread_bytes: int) -> str:
    """The members of a line that shows a message, without the braces."""
    text = f'"message":"{message.NAME}","version":{version},"data":{whole_message_json(message, version)}'
    tags = unknown_tags(message)
    if tags:
        text += f',"unknown_tags":{to_text(msgspec.to_builtins(tags))}'
    return text + f',"unread_bytes":{unread_bytes}' if unread_bytes else text


def to_text(value: object) -> str:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def located(line: bytes, error: Exception) -> str:
    """What is wrong with a line's JSON, and where, as far as msgspec doesn't say."""
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
    reason = _shortened(reason)
    try:
        names = _read_names(line)
    except _NOT_JSON:
        return Answer(to_text({"line": number, "error": reason}), False)
    return Answer(
        to_text({"message": _shortened(names.message), "version": names.version, "error": reason}), False
    )


def _shortened(text: str) -> str:
    """A line may hold megabytes that are wrong; what is wrong with them stands first or last."""
    return text if len(text) <= MOST_TOLD else f"{text[: MOST_TOLD // 2]}...{text[-MOST_TOLD // 2 :]}"


def _prepare(cls: type[Structure], node: object, place: str) -> None:
    """Refuse what Java drops without a word: members that no version has, and what is no structure.

    Floating-point numbers that JSON lacks are printed as text; here they become numbers again.
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
