"""Compute the layout of a message on the wire at one version, without names, and compare two layouts.

Two messages have the same bytes at a version if every value that both can hold is written the same. A tagged
field that only one of them knows doesn't matter, because the other keeps it as an unknown one. A struct is
its fields in order, and in flexible versions a section of tagged fields after them; the struct itself is not
visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codegen.emit.plan import default_source
from codegen.schema.model import Field, Message


@dataclass(frozen=True, slots=True)
class Value:
    """A value without parts: a primitive's name, and whether its length is a varint."""

    kind: str
    compact: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    """A length, and as many elements."""

    element: tuple[Item, ...]
    compact: bool


@dataclass(frozen=True, slots=True)
class Optional:
    """A byte that says whether the parts follow: a struct that may be null."""

    parts: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Tagged:
    """A tagged field. It is left out if it equals the default (Python source)."""

    parts: tuple[Item, ...]
    default: str


@dataclass(frozen=True, slots=True)
class Tags:
    """A section of tagged fields by tag. ``refused`` are tags that readers know, but not at this version."""

    known: tuple[tuple[int, Tagged], ...]
    refused: frozenset[int]


Item = Value | Array | Optional | Tags


def layout(message: Message, version: int) -> tuple[Item, ...]:
    """Return the layout of a message at a version that it has."""
    return _Layout(message, version).of_struct(message.fields)


def field_layout(message: Message, field: Field, version: int) -> tuple[Item, ...]:
    """Return the layout of one field of a message at a version that it is present at."""
    return _Layout(message, version).of_field(field)


def same_bytes(one: Sequence[Item], other: Sequence[Item]) -> bool:
    """Whether two layouts write values that both can hold the same."""
    return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))


class _Layout:
    def __init__(self, message: Message, version: int) -> None:
        self.version = version
        self.flexible = version in message.flexible_versions
        self.commons = {each.name: each.fields for each in message.common_structs}

    def of_struct(self, fields: tuple[Field, ...]) -> tuple[Item, ...]:
        items: list[Item] = []
        known: dict[int, Tagged] = {}
        refused: set[int] = set()
        for field in fields:
            if field.tag is not None and self.version in field.tagged:
                known[field.tag] = Tagged(self.of_field(field), default_source(field))
            elif self.version in field.versions:
                items += self.of_field(field)
            elif field.tag is not None:
                refused.add(field.tag)
        if self.flexible:
            items.append(Tags(tuple(sorted(known.items())), frozenset(refused)))
        return tuple(items)

    def of_field(self, field: Field) -> tuple[Item, ...]:
        if not field.type.is_array:
            parts = self._of_one(field)
            nullable = field.type.is_struct and self.version in field.nullable
            return (Optional(parts),) if nullable else parts
        return (Array(self._of_one(field), self.flexible),)

    def _of_one(self, field: Field) -> tuple[Item, ...]:
        kind = field.type.base
        if kind == "struct":
            return self.of_struct(field.fields or self.commons[field.type.struct])
        if kind not in ("string", "bytes", "records"):
            return (Value(kind),)
        flexible = self.flexible if field.flexible is None else self.version in field.flexible
        return (Value("bytes" if kind == "records" else kind, flexible),)


def _same(one: Item, other: Item) -> bool:
    if isinstance(one, Array) and isinstance(other, Array):
        return one.compact == other.compact and same_bytes(one.element, other.element)
    if isinstance(one, Optional) and isinstance(other, Optional):
        return same_bytes(one.parts, other.parts)
    if isinstance(one, Tags) and isinstance(other, Tags):
        return _same_tags(one, other)
    return one == other


def _same_tags(one: Tags, other: Tags) -> bool:
    mine, theirs = dict(one.known), dict(other.known)
    if mine.keys() & other.refused or theirs.keys() & one.refused:
        return False
    return all(
        mine[tag].default == theirs[tag].default and same_bytes(mine[tag].parts, theirs[tag].parts)
        for tag in mine.keys() & theirs.keys()
    )
