"""The schema language as values. Both front ends produce them, and everything after them reads them."""

from __future__ import annotations

from dataclasses import dataclass, field

from codegen.schema.versions import NONE, Versions

KINDS = ("request", "response", "header", "metadata", "data", "coordinator-key", "coordinator-value")

INTEGER_RANGES: dict[str, tuple[int, int]] = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
FIXED_SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
VARIABLE_TYPES = ("string", "bytes", "records")
ENTITY_TYPES = {
    "transactionalId": "string",
    "producerId": "int64",
    "groupId": "string",
    "topicName": "string",
    "brokerId": "int32",
}


@dataclass(frozen=True, slots=True)
class Type:
    """A field's type. ``base`` is a primitive's name, or "struct" with the struct's name in ``struct``."""

    base: str
    struct: str = ""
    is_array: bool = False

    @property
    def is_struct(self) -> bool:
        return self.base == "struct"

    @property
    def fixed_size(self) -> int | None:
        """The bytes on the wire if their number is the same for every value and version, else None."""
        return None if self.is_array else FIXED_SIZES.get(self.base)

    @property
    def can_be_nullable(self) -> bool:
        return self.is_array or self.is_struct or self.base in VARIABLE_TYPES

    def __str__(self) -> str:
        return ("[]" if self.is_array else "") + (self.struct or self.base)


@dataclass(frozen=True, slots=True)
class ErrorNote:
    """An error code that a response may hold, and its cause, as far as the schema says."""

    name: str
    when: str = ""


@dataclass(frozen=True, slots=True)
class Notes:
    """A schema's texts for readers: paragraphs, and errors. Kafka's JSON is imported without any."""

    text: tuple[str, ...] = ()
    errors: tuple[ErrorNote, ...] = ()


NO_NOTES = Notes()


@dataclass(frozen=True, slots=True)
class Field:
    """A field as its schema states it. ``default`` is the schema's text, None if there is none."""

    name: str
    type: Type
    versions: Versions
    nullable: Versions = NONE
    default: str | None = None
    tag: int | None = None
    tagged: Versions = NONE
    ignorable: bool = False
    map_key: bool = False
    entity_type: str | None = None
    zero_copy: bool = False
    flexible: Versions | None = None
    fields: tuple[Field, ...] = ()
    notes: Notes = field(default=NO_NOTES, compare=False)


@dataclass(frozen=True, slots=True)
class Struct:
    """A named group of fields. A message's own struct has the message's name."""

    name: str
    versions: Versions
    fields: tuple[Field, ...]
    notes: Notes = field(default=NO_NOTES, compare=False)


@dataclass(frozen=True, slots=True)
class Message:
    """One schema file."""

    name: str
    kind: str
    api_key: int | None
    versions: Versions
    flexible: Versions | None
    fields: tuple[Field, ...]
    common_structs: tuple[Struct, ...] = ()
    listeners: tuple[str, ...] = ()
    latest_version_unstable: bool = False
    deprecated: Versions = NONE
    notes: Notes = field(default=NO_NOTES, compare=False)

    @property
    def flexible_versions(self) -> Versions:
        """The flexible versions, NONE if the file does not say."""
        return NONE if self.flexible is None else self.flexible


def walk_fields(fields: tuple[Field, ...], path: str) -> list[tuple[str, Field]]:
    """Yield every field below ``fields`` with its dotted path."""
    found: list[tuple[str, Field]] = []
    for each in fields:
        here = f"{path}.{each.name}"
        found.append((here, each))
        found.extend(walk_fields(each.fields, here))
    return found
