"""Read the types, defaults and version marks of fields in franz-go's definition language."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from codegen.franz.lines import Line
from codegen.schema.model import FIXED_SIZES
from codegen.schema.versions import OPEN_END, Versions

WITHOUT_EQUIVALENT = ("varint", "varlong", "varint-string", "varint-bytes", "length-field-minus")
"""Types of records in record batches. Messages that Kafka's schemas describe have none of them."""
_PRIMITIVES = (*FIXED_SIZES, "string", "bytes", *WITHOUT_EQUIVALENT[:-1])
_DEFAULTS = (*(base for base in FIXED_SIZES if base != "uuid"), "varint", "varlong")
_NAME = "[A-Za-z][A-Za-z0-9]*"
_ARRAY = re.compile(
    r"(?P<kind>nullable(?:-v(?P<since>\d{1,5})\+)?|varint)?\[(?P<element>.*)\](?P<name>[A-Za-z0-9]*)"
)
_DEFAULT = re.compile(r"(?P<type>[^()]+)\((?P<default>[^()]+)\)")
_NULLABLE = re.compile(r"nullable-(?P<base>string|bytes)(?:-v(?P<since>\d{1,5})\+)?")
_MARK = re.compile(
    r"v(?P<low>\d{1,5})(?:\+|-v(?P<high>\d{1,5}))(?:, tag (?P<tag>\d{1,5}))?|tag (?P<only>\d{1,5})"
)


@dataclass(frozen=True, slots=True)
class FieldType:
    """A type as it is written. ``base`` is a primitive, an entry of WITHOUT_EQUIVALENT, or "struct".

    A struct is either defined below the field (``inline``), with ``name`` as a hint for its name if there is
    one, or it is the one called ``name``. ``nullable_from`` is the first version that knows null.
    """

    base: str
    name: str = ""
    inline: bool = False
    array: bool = False
    nullable_from: int | None = None
    default: str | None = None
    enum: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """The versions of a field; ``versions`` is None if there is no mark, or only a tag."""

    versions: Versions | None = None
    tag: int | None = None


def parse_mark(text: str, line: Line) -> Mark:
    """Read the text after ``//``: ``v1+``, ``v3-v5``, ``tag 0``, ``v5+, tag 0``, or nothing."""
    if not text:
        return Mark()
    match = _MARK.fullmatch(text)
    if match is None:
        raise line.error(f"{text!r} is not a mark of versions; write v1+, v3-v5, tag 0, or v1+, tag 0")
    if match["only"]:
        return Mark(None, int(match["only"]))
    low, high = int(match["low"]), int(match["high"] or OPEN_END)
    if low > high or max(low, high) > OPEN_END:
        raise line.error(f"{text!r} is not a range within 0 to {OPEN_END}")
    return Mark(Versions(low, high), int(match["tag"]) if match["tag"] else None)


def parse_type(text: str, line: Line, structs: Collection[str], enums: dict[str, str]) -> FieldType:
    """Read a type. ``structs`` and ``enums`` are those defined so far, enums with their primitive."""
    match = _DEFAULT.fullmatch(text)
    default = match["default"] if match else None
    reader = _TypeReader(line, structs, enums)
    found = reader.read(match["type"] if match else text)
    if default is not None:
        _check_default(found, default, line)
    return replace(found, default=default)


@dataclass(frozen=True, slots=True)
class _TypeReader:
    line: Line
    structs: Collection[str]
    enums: dict[str, str]

    def read(self, text: str) -> FieldType:
        match = _ARRAY.fullmatch(text)
        return self._array(match) if match else self._single(text)

    def _array(self, match: re.Match[str]) -> FieldType:
        element, hint = match["element"], match["name"]
        if "[" in element:
            raise self.line.error("arrays of arrays don't exist in Kafka's schemas")
        if "(" in element:
            raise self.line.error("a default comes after the array, not in it")
        found = self._single(element)
        if hint and not (found.inline and not found.name):
            raise self.line.error(f"{hint!r} names the struct of an array that isn't defined here, or twice")
        if found.nullable_from is not None:
            raise self.line.error("an array's elements are never null in Kafka's schemas")
        if match["kind"] == "varint":
            # Only record batches have arrays with such a length.
            return FieldType("varint", array=True)
        nullable = int(match["since"] or 0) if match["kind"] else None
        return replace(found, array=True, name=found.name or hint, nullable_from=nullable)

    def _single(self, text: str) -> FieldType:
        struct = re.fullmatch(rf"(nullable)?=>({_NAME})?", text)
        if struct:
            return FieldType("struct", struct[2] or "", inline=True, nullable_from=0 if struct[1] else None)
        if text in _PRIMITIVES:
            return FieldType(text)
        nullable = _NULLABLE.fullmatch(text)
        if nullable:
            return FieldType(nullable["base"], nullable_from=int(nullable["since"] or 0))
        if text.startswith("length-field-minus =>"):
            return FieldType("length-field-minus")
        return self._named(text)

    def _named(self, text: str) -> FieldType:
        if text.startswith("enum-"):
            name = text.removeprefix("enum-")
            if name not in self.enums:
                raise self.line.error(f"there is no enum {name!r}")
            return FieldType(self.enums[name], enum=name)
        if text in self.structs:
            return FieldType("struct", text)
        raise self.line.error(f"{text!r} is neither a type nor a struct that is defined above")


def _check_default(type: FieldType, default: str, line: Line) -> None:
    """Check that a type can have a default. check.py checks the value."""
    if type.array or type.base not in _DEFAULTS:
        if type.nullable_from is None:
            raise line.error("only numbers, bools and nullable types can have a default")
        if default != "null":
            raise line.error(f"the only default that is possible here is null, not {default!r}")
