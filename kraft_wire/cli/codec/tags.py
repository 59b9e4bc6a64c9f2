"""Show unknown tagged fields next to a message's JSON form, which has no place for them.

Each is ``{"in": "topics[0]", "tag": 5, "hex": "00"}``: the structure's place in the JSON form ("" is the
message itself), the tag, and its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

import msgspec

from kraft_wire.cli.codec.text import LineError, from_hex
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.schema import Field, Structure

_STEP = re.compile(r"(\w+)(?:\[(\d{1,7})\])?")
_MEMBER = "unknown_tagged_fields"


class UnknownTag(msgspec.Struct, forbid_unknown_fields=True, rename={"place": "in"}):
    """An unknown tagged field, as a line shows it."""

    place: str
    tag: int
    hex: str


def unknown_tags(message: Message) -> list[UnknownTag]:
    """Return the unknown tagged fields of a message, structure by structure."""
    return list(_collect(message, ""))


def put_unknown_tags(message: Message, tags: Sequence[UnknownTag]) -> None:
    """Add unknown tagged fields to a message. Raises LineError for a place that the message lacks."""
    for each in tags:
        structure = _find(message, each.place)
        present = getattr(structure, _MEMBER, None)
        if structure is None or present is None:
            raise LineError(f"unknown_tags: the message has no tagged fields at {each.place!r}")
        setattr(structure, _MEMBER, (*present, (each.tag, from_hex(each.hex))))


def _collect(structure: Structure, place: str) -> Iterator[UnknownTag]:
    for tag, raw in getattr(structure, _MEMBER, ()):
        yield UnknownTag(place, tag, raw.hex())
    for field in _structures(type(structure)):
        member = getattr(structure, field.name)
        inside = f"{place}.{field.json_name}" if place else field.json_name
        if field.array:
            for index, element in enumerate(member or ()):
                yield from _collect(element, f"{inside}[{index}]")
        elif member is not None:
            yield from _collect(member, inside)


@cache
def _structures(cls: type[Structure]) -> tuple[Field, ...]:
    return tuple(field for field in cls.FIELDS if field.struct is not None)


def _find(structure: Structure, place: str) -> Structure | None:
    """Return the structure at a place inside this one; None if there is none."""
    if not place:
        return structure
    step, _, rest = place.partition(".")
    match = _STEP.fullmatch(step)
    for field in _structures(type(structure)):
        if match is not None and match[1] == field.json_name:
            member = getattr(structure, field.name)
            if match[2] is not None:
                member = _element(member, int(match[2]))
            return _find(member, rest) if isinstance(member, Structure) else None
    return None


def _element(member: object, index: int) -> object:
    return member[index] if isinstance(member, list) and index < len(member) else None
