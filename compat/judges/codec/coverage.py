"""List the special values in an instance, so that a test can check that random instances cover them all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from kraft_wire.protocol.schema import MAX_STRING_BYTES, Field, Structure, defaults_of

INTEGERS: Final = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
UNSIGNED: Final = {"uint16": 16, "uint32": 32}

ALL_TRAITS: Final = frozenset(
    {
        "null", "null where it must not be", "null in an array", "an empty array",
        "an array of more than 126", "a structure that may be null", "a tagged field",
        "a tagged field with its default", "unknown tags", "unknown tags where there are none",
        "an absent field with a value", "an ignorable absent field with a value",
        "an empty string", "a string of more than 16 KiB", "the longest string", "too long a string",
        "characters of several bytes", "half a surrogate pair", "no bytes", "more than 64 KiB", "records",
        "NaN", "infinity", "negative zero", "the zero id", "another id", "true", "false",
        *(f"the {end} {kind}" for kind in (*INTEGERS, *UNSIGNED) for end in ("lowest", "highest")),
    }
)  # fmt: skip


def traits(value: Structure, version: int) -> Iterator[str]:
    """Yield the members of ALL_TRAITS that a structure has; a trait may come several times."""
    for field in value.FIELDS:
        member = getattr(value, field.name)
        default = getattr(defaults_of(type(value)), field.name)
        if not field.is_present(version):
            if member != default:
                yield f"an {'ignorable ' * field.ignorable}absent field with a value"
            continue
        if field.is_tagged(version):
            yield "a tagged field" + " with its default" * (member == default)
        yield from _of_field(member, field, version)
    if getattr(value, "unknown_tagged_fields", ()):
        yield "unknown tags" + " where there are none" * (version < value.FLEXIBLE_FROM)


def _of_field(member: Any, field: Field, version: int) -> Iterator[str]:
    if member is None:
        yield "null" if field.is_nullable(version) else "null where it must not be"
    elif field.array:
        if not member:
            yield "an empty array"
        elif len(member) > 126:
            yield "an array of more than 126"
        for element in member:
            if element is None:
                yield "null in an array"
            else:
                yield from _of_element(element, field, version)
    else:
        if field.struct is not None and field.is_nullable(version):
            yield "a structure that may be null"
        yield from _of_element(member, field, version)


def _of_element(member: Any, field: Field, version: int) -> Iterator[str]:
    if field.struct is not None:
        yield from traits(member, version)
    elif field.kind in INTEGERS:
        yield from _of_range(member, field.kind, -(2 ** INTEGERS[field.kind]), 2 ** INTEGERS[field.kind] - 1)
    elif field.kind in UNSIGNED:
        yield from _of_range(member, field.kind, 0, 2 ** UNSIGNED[field.kind] - 1)
    elif field.kind == "string":
        yield from _of_string(member)
    elif field.kind == "float64":
        yield from _of_number(member)
    elif field.kind == "bool":
        yield "true" if member else "false"
    elif field.kind == "uuid":
        yield "another id" if member else "the zero id"
    else:
        if field.kind == "records":
            yield "records"
        if not member:
            yield "no bytes"
        elif len(member) > 2**16:
            yield "more than 64 KiB"


def _of_range(number: int, kind: str, lowest: int, highest: int) -> Iterator[str]:
    if number == lowest:
        yield f"the lowest {kind}"
    elif number == highest:
        yield f"the highest {kind}"


def _of_string(text: str) -> Iterator[str]:
    if not text:
        yield "an empty string"
    size = len(text.encode(errors="replace"))
    if size > len(text):
        yield "characters of several bytes"
    if size > 2**14:
        yield "a string of more than 16 KiB"
    if size == MAX_STRING_BYTES:
        yield "the longest string"
    elif size > MAX_STRING_BYTES:
        yield "too long a string"
    if any("\ud800" <= character <= "\udfff" for character in text):
        yield "half a surrogate pair"


def _of_number(number: float) -> Iterator[str]:
    if math.isnan(number):
        yield "NaN"
    elif math.isinf(number):
        yield "infinity"
    elif number == 0 and math.copysign(1, number) < 0:
        yield "negative zero"
