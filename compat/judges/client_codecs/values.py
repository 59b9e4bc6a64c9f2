"""Convert our messages to plain lists of values, to compare them with those of other codecs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraft_wire.protocol.schema import Field, Structure
from kraft_wire.protocol.uuid import Uuid


def present_fields(cls: type[Structure], version: int, *, tagged: bool = True) -> list[Field]:
    """Return the fields of a version in the schema's order, with or without the tagged ones."""
    return [
        field
        for field in cls.FIELDS
        if field.is_present(version) and (tagged or not field.is_tagged(version))
    ]


def plain(structure: Structure, version: int, *, tagged: bool = True) -> list[Any]:
    """Return the values in the schema's order: structures and arrays as lists, ids as bytes, no unknown
    tags."""
    return [
        _plain(getattr(structure, field.name), version, tagged)
        for field in present_fields(type(structure), version, tagged=tagged)
    ]


def flat(value: Any) -> Iterator[Any]:
    """Yield the values in nested lists and tuples, but nothing of a dict, which holds some codecs' tagged
    fields."""
    if isinstance(value, (list, tuple)):
        for element in value:
            yield from flat(element)
    elif not isinstance(value, dict):
        yield value


def _plain(value: Any, version: int, tagged: bool) -> Any:
    if isinstance(value, Structure):
        return plain(value, version, tagged=tagged)
    if isinstance(value, (list, tuple)):
        return [_plain(element, version, tagged) for element in value]
    return bytes(value) if isinstance(value, Uuid) else value
