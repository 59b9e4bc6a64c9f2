"""The field tables of generated classes, which the JSON form and the careful codec work from."""

from __future__ import annotations

from functools import cache
from typing import ClassVar, Final

import msgspec

NEVER: Final = 32768
"""A version that no message reaches."""
MAX_STRING_BYTES: Final = 32767
MAX_ARRAY_LENGTH: Final = 1_000_000
MAX_TAGGED_FIELDS: Final = 10_000

Versions = tuple[int, int]
"""First and last version, both included; (0, -1) is none."""
NO_VERSIONS: Final[Versions] = (0, -1)
UnknownTags = tuple[tuple[int, bytes], ...]
"""Tagged fields that the schema does not know: tag and raw bytes."""


class Field(msgspec.Struct, frozen=True):
    """A field of a generated class.

    ``kind`` is the schema's: int8 ... float64, uuid, string, bytes, records or struct (then ``struct`` is the
    class). ``present`` includes the versions at which the field is tagged, those from ``tagged_from`` on.
    """

    name: str
    json_name: str
    kind: str
    present: Versions
    array: bool = False
    struct: type[Structure] | None = None
    nullable: Versions = NO_VERSIONS
    tag: int = -1
    tagged_from: int = NEVER
    flexible_from: int = NEVER
    ignorable: bool = False

    def is_present(self, version: int) -> bool:
        return self.present[0] <= version <= self.present[1]

    def is_tagged(self, version: int) -> bool:
        return self.tagged_from <= version <= self.present[1]

    def is_nullable(self, version: int) -> bool:
        return self.nullable[0] <= version <= self.nullable[1]


class Structure(msgspec.Struct, gc=False):
    """The base of every generated class: messages and the structs inside them."""

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    FLEXIBLE_FROM: ClassVar[int] = NEVER
    """The first version with compact lengths and tagged fields; NEVER if there is none."""


@cache
def versions_of(cls: type[Structure]) -> Versions:
    """Return the first and last version at which a struct inside a message has a form: those of its
    fields."""
    spans = [field.present for field in cls.FIELDS if field.present != NO_VERSIONS]
    return min((low for low, _ in spans), default=0), max((high for _, high in spans), default=NEVER)


@cache
def defaults_of(cls: type[Structure]) -> Structure:
    """Return an instance with all defaults, to compare with. It must not be changed."""
    return cls()
