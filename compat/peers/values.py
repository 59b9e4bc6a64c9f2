"""Messages as plain lists, to compare any codec's with ours: the fields' values in their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraft_wire.protocol.schema import Field, Structure
from kraft_wire.protocol.uuid import Uuid


def present_fields(cls: type[Structure], version: int, *, tagged: bool = True) -> list[Field]:
    """The fields that a version has, in the schema's order, without the tagged ones if so wished."""
    return [
        field
        for field in cls.FIELDS
        if field.is_present(version) and (tagged or not field.is_tagged(version))
    ]


def plain(structure: Structure, version: int, *, tagged: bool = True) -> list[Any]:
    """Structures and arrays become lists, ids raw bytes; unknown tagged fields are left out."""
    return [
        _plain(getattr(structure, field.name), version, tagged)
        for field in present_fields(type(structure), version, tagged=tagged)
    ]


def flat(value: Any) -> Iterator[Any]:
    """What is in nested lists and tuples; nothing for a dict, which tagged fields are to some peers."""
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
