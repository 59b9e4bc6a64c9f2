"""What our codec makes of a message, in the words of the judge.

``carefully`` is by the table-driven codec alone, to which the generated one leaves what it stumbles over.
"""

from __future__ import annotations

import json
import math
from importlib import import_module
from typing import Any

import msgspec

from compat.codec_judge.objects import from_object, to_object
from kraft_wire.cli.dump_json import message_json
from kraft_wire.protocol.errors import DecodeError, EncodeError, UnsupportedVersion
from kraft_wire.protocol.message import Message, decode_message_carefully, encode_message_carefully

OUR_PACKAGE = "kraft_wire.protocol.messages"


def our_classes(package: str = OUR_PACKAGE) -> dict[str, type[Message]]:
    """Every generated message that has a version, by the name that Kafka's class has."""
    found: dict[str, type[Message]] = {}
    for name, module in import_module(package).MODULES.items():
        cls: type[Message] = getattr(import_module(f"{package}.{module}"), name)
        if cls.MIN_VERSION <= cls.MAX_VERSION:
            found[java_name(cls)] = cls
    return found


def java_name(cls: type[Message]) -> str:
    """The name of Kafka's class."""
    return cls.NAME + "Data" if cls.KIND in ("request", "response", "header") else cls.NAME


class Read(msgspec.Struct, frozen=True):
    """What bytes hold."""

    message: Message
    unread: int


def text_of(tree: Any) -> str:
    """JSON as text; the same text for the same tree. Jackson names what JSON has no number for."""
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
    """The message as the judge shows objects."""
    return text_of(to_object(message))


def made_from(cls: type[Message], shown: str) -> Any:
    """Our message with the values of an object that the judge shows."""
    return from_object(cls, json.loads(shown))


def written(message: Message, version: int, *, carefully: bool) -> str:
    """The message's bytes in hexadecimal, or how it is refused."""
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
    """The message's JSON, or how it is refused."""
    try:
        return text_of(message.to_json(version))
    except (EncodeError, UnsupportedVersion) as error:
        return refusal(error)


def printed(message: Message, version: int) -> str:
    """The message's JSON as the commands print it, put together without the tree."""
    return text_of(json.loads(message_json(message, version)))


def read(
    cls: type[Message], version: int, raw: bytes, *, carefully: bool, behind_bytes: int = 0
) -> Read | str:
    """What the bytes hold, or how they are refused; so many others, a header for example, lie before them."""
    data = b"\xff" * behind_bytes + raw
    try:
        if carefully:
            message, end = decode_message_carefully(cls, data, version, behind_bytes)
        else:
            message, end = cls.decode_from(data, version, behind_bytes)
    except DecodeError as error:
        if not behind_bytes <= error.offset <= len(data):
            raise AssertionError(f"an offset outside of the message: {error}") from error
        return refusal(error)
    except UnsupportedVersion as error:
        return refusal(error)
    return Read(message, len(data) - end)


def parsed(cls: type[Message], version: int, text: str) -> Message | str:
    """What the JSON holds, or how it is refused."""
    try:
        return cls.from_json(json.loads(text), version)
    except (DecodeError, UnsupportedVersion) as error:
        return refusal(error)


def refusal(error: Exception) -> str:
    """As the judge shows it."""
    kind = "version" if isinstance(error, UnsupportedVersion) else "error"
    return f"!{kind} {type(error).__name__}: {error}"
