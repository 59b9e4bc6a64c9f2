"""Run our codec and describe its results in the judge's format.

``carefully`` selects the table-driven codec, which the generated code also calls for errors and rare cases.
"""

from __future__ import annotations

import json
import math
from importlib import import_module
from typing import Any

import msgspec

from compat.judges.codec.objects import from_object, to_object
from kraft_wire.cli.dump.java_json import message_json
from kraft_wire.protocol.errors import DecodeError, EncodeError, UnsupportedVersion
from kraft_wire.protocol.message import Message, decode_message_carefully, encode_message_carefully

OUR_PACKAGE = "kraft_wire.protocol.messages"


def our_classes(package: str = OUR_PACKAGE) -> dict[str, type[Message]]:
    """Return every generated message that has a version, by the name of Kafka's class."""
    found: dict[str, type[Message]] = {}
    for name, module in import_module(package).MODULES.items():
        cls: type[Message] = getattr(import_module(f"{package}.{module}"), name)
        if cls.MIN_VERSION <= cls.MAX_VERSION:
            found[java_name(cls)] = cls
    return found


def java_name(cls: type[Message]) -> str:
    """Return the name of Kafka's class."""
    return cls.NAME + "Data" if cls.KIND in ("request", "response", "header") else cls.NAME


class Read(msgspec.Struct, frozen=True):
    """A decoded message and the number of unread bytes after it."""

    message: Message
    unread: int


def text_of(tree: Any) -> str:
    """Return JSON as text, equal for equal trees. NaN and infinity are strings, as in Jackson."""
    try:
        return json.dumps(tree, allow_nan=False)
    except ValueError:
        return json.dumps(_named(tree))


def _named(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _named(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_named(value) for value in tree]
    if isinstance(tree, float) and not math.isfinite(tree):
        return "NaN" if math.isnan(tree) else "Infinity" if tree > 0 else "-Infinity"
    return tree


def object_text(message: Message) -> str:
    """Return the message as the text of an OBJECT."""
    return text_of(to_object(message))


def made_from(cls: type[Message], shown: str) -> Any:
    """Return our message with the values of an OBJECT."""
    return from_object(cls, json.loads(shown))


def written(message: Message, version: int, *, carefully: bool) -> str:
    """Return the message's bytes in hexadecimal, or the refusal."""
    out: list[bytes] = []
    try:
        if carefully:
            encode_message_carefully(message, out, version)
        else:
            message.encode_into(out, version)
    except (EncodeError, UnsupportedVersion) as error:
        return refusal(error)
    return b"".join(out).hex()


def json_text(message: Message, version: int) -> str:
    """Return the message's JSON, or the refusal."""
    try:
        return text_of(message.to_json(version))
    except (EncodeError, UnsupportedVersion) as error:
        return refusal(error)


def printed(message: Message, version: int) -> str:
    """Return the message's JSON as the commands print it; they don't build a tree."""
    return text_of(json.loads(message_json(message, version)))


def read(
    cls: type[Message], version: int, raw: bytes, *, carefully: bool, preceding_bytes: int = 0
) -> Read | str:
    """Decode the bytes, or return the refusal. They follow ``preceding_bytes`` others, such as a header."""
    data = b"\xff" * preceding_bytes + raw
    try:
        if carefully:
            message, end = decode_message_carefully(cls, data, version, preceding_bytes)
        else:
            message, end = cls.decode_from(data, version, preceding_bytes)
    except DecodeError as error:
        if not preceding_bytes <= error.offset <= len(data):
            raise AssertionError(f"the error's offset is outside of the message: {error}") from error
        return refusal(error)
    except UnsupportedVersion as error:
        return refusal(error)
    return Read(message, len(data) - end)


def parsed(cls: type[Message], version: int, text: str) -> Message | str:
    """Return the message in the JSON, or the refusal."""
    try:
        return cls.from_json(json.loads(text), version)
    except (DecodeError, UnsupportedVersion) as error:
        return refusal(error)


def refusal(error: Exception) -> str:
    """Return an error in the judge's format."""
    kind = "version" if isinstance(error, UnsupportedVersion) else "error"
    return f"!{kind} {type(error).__name__}: {error}"
