"""What the codec's lines say in words: names, versions, hexadecimal digits, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from kraft_wire.protocol.errors import DecodeError, EncodeError, ProtocolError, UnsupportedVersion
from kraft_wire.protocol.message import Message, check_version
from kraft_wire.protocol.messages import MODULES
from kraft_wire.protocol.registry import message_class
from kraft_wire.protocol.schema import Structure

MOST_BEGUN = 3
"""So many messages are offered whose names begin with what was asked for."""
_NO_DIGIT = re.compile(r"[^0-9A-Fa-f\s]")


class LineError(Exception):
    """What is wrong with one line or one frame; the others go on."""


def find_class(name: str, version: int) -> type[Message]:
    """A message's class by its schema's name. Raises LineError for an unknown name or version."""
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
    """The nearest, or those that begin so: an API's name alone is not near to its request's."""
    begun = [each for each in MODULES if name and each.lower().startswith(name.lower())]
    return nearest(name, MODULES) or (f"; there is {', '.join(begun[:MOST_BEGUN])}" if begun else "")


def nearest(name: str, names: Iterable[str]) -> str:
    """ "; the nearest is …", where one is near, for the end of a complaint."""
    from difflib import get_close_matches

    by_lower_case = {each.lower(): each for each in names}
    found = get_close_matches(name.lower(), by_lower_case, n=1)
    return f"; the nearest is {by_lower_case[found[0]]}" if found else ""


def from_hex(text: str) -> bytes:
    """The bytes of hexadecimal digits; space between bytes is allowed. Raises LineError."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        pass
    wrong = _NO_DIGIT.search(text)
    if wrong is not None:
        raise LineError(f"hex: {wrong[0]!r} at character {wrong.start()} is no hexadecimal digit")
    raise LineError("hex: a byte has two digits, and one of them is missing")


def explain(error: ProtocolError, cls: type[Message], *, moved_bytes: int = 0) -> str:
    """The error's text with the field's name as in the JSON form.

    Offsets are counted from ``moved_bytes`` before the data that was decoded; JSON has none.
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
    """``topics[0].topic_name`` as the JSON form has it: ``topics[0].topicName``; what is no field stays."""
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
