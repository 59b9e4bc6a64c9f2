"""Read names, versions and hexadecimal digits in the codec's lines, and explain what is wrong with them."""

from __future__ import annotations

import re
from functools import lru_cache

from kraft_wire.configs.nearest import nearest
from kraft_wire.protocol.errors import DecodeError, EncodeError, ProtocolError, UnsupportedVersion
from kraft_wire.protocol.message import Message, check_version
from kraft_wire.protocol.messages import MODULES
from kraft_wire.protocol.registry import message_class
from kraft_wire.protocol.schema import Structure

MOST_BEGUN = 3
"""The most messages to offer whose names start with the unknown one."""
_NO_DIGIT = re.compile(r"[^0-9A-Fa-f\s]")


class LineError(Exception):
    """One line or one frame is wrong; the others are still answered."""


def find_class(name: str, version: int) -> type[Message]:
    """Return a message's class by its schema's name. Raises LineError for an unknown name or version."""
    try:
        cls = message_class(name)
    except KeyError:
        raise LineError(f"there is no message {name!r}{_nearest_message(name)}") from None
    try:
        check_version(cls, version)
    except UnsupportedVersion as error:
        raise LineError(str(error)) from None
    return cls


@lru_cache(1000)
def _nearest_message(name: str) -> str:
    """Name the nearest message, or those that start with the name: "vote" isn't near to "VoteRequest"."""
    begun = [each for each in MODULES if name and each.lower().startswith(name.lower())]
    return nearest(name, MODULES) or (f"; there is {', '.join(begun[:MOST_BEGUN])}" if begun else "")


def from_hex(text: str) -> bytes:
    """Return the bytes of hexadecimal digits; space between bytes is allowed. Raises LineError."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        pass
    wrong = _NO_DIGIT.search(text)
    if wrong is not None:
        raise LineError(f"hex: {wrong[0]!r} at character {wrong.start()} is not a hexadecimal digit")
    raise LineError("hex: a byte has two digits, and one is missing")


def explain(error: ProtocolError, cls: type[Message], *, moved_bytes: int = 0) -> str:
    """Return the error's text with the field's name as in the JSON form.

    ``moved_bytes`` is added to offsets: the position of the decoded data in its stream.
    """
    where = json_place(cls, getattr(error, "field", ""))
    if isinstance(error, UnsupportedVersion):
        return str(UnsupportedVersion(error.message, error.version, error.reason, where))
    if isinstance(error, DecodeError):
        offset = error.offset if error.offset < 0 else error.offset + moved_bytes
        return str(DecodeError(error.message, where, offset, error.reason))
    if isinstance(error, EncodeError):
        return str(EncodeError(error.message, where, error.reason))
    return str(error)


def json_place(cls: type[Structure], place: str) -> str:
    """Return ``topics[0].topic_name`` as in the JSON form: ``topics[0].topicName``. Unknown names stay."""
    steps = place.split(".")
    inside: type[Structure] | None = cls
    for index, step in enumerate(steps):
        name, bracket, rest = step.partition("[")
        fields = {field.name: field for field in (inside.FIELDS if inside is not None else ())}
        if name not in fields:
            break
        steps[index] = fields[name].json_name + bracket + rest
        inside = fields[name].struct
    return ".".join(steps)
