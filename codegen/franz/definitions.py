"""Read the definitions of a file in franz-go's language: requests, responses, structs, enums, as written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.franz.lines import Line, read_lines
from codegen.franz.types import FieldType, Mark, parse_mark, parse_type
from codegen.schema.model import INTEGER_RANGES
from codegen.schema.versions import OPEN_END

SENT_TO = {
    "admin": "the controller",
    "group coordinator": "the group's coordinator",
    "txn coordinator": "the transaction's coordinator",
    "share coordinator": "the share group's coordinator",
}
_STRUCT = "not top level"
_DEFAULT_TIMEOUT = "15000"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_NUMBER = re.compile(r"(?P<what>key|max version) (?P<number>\d{1,5})")
_FLEXIBLE = re.compile(r"flexible v(?P<number>\d{1,5})\+")
_SHORTHAND = re.compile(r"(?P<name>ThrottleMillis|TimeoutMillis)(?:\((?P<number>\d+)\))?")
_ENUM = re.compile(rf"(?P<name>[A-Za-z][A-Za-z0-9]*) (?P<type>{'|'.join(INTEGER_RANGES)})(?: camelcase)? \(")
_ENUM_VALUE = re.compile(r"-?\d+: [A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class FieldDefinition:
    """A field with the fields that are defined below it."""

    line: Line
    name: str
    type: FieldType
    mark: Mark
    fields: tuple[FieldDefinition, ...] = ()


@dataclass(frozen=True, slots=True)
class Definition:
    """A request, a response, or a struct that they may name, which has no key and no versions of its own."""

    line: Line
    name: str
    kind: str
    fields: tuple[FieldDefinition, ...]
    key: int = -1
    max_version: int = -1
    flexible_from: int | None = None
    has_version_field: bool = False
    sent_to: str = ""


@dataclass(slots=True)
class _Header:
    """The text after ``Name =>``."""

    key: int = -1
    max_version: int = -1
    flexible_from: int | None = None
    is_struct: bool = False
    has_version_field: bool = False
    sent_to: str = ""


class Definitions:
    """The definitions of several files. A file may name structs and enums of files that were read before
    it."""

    def __init__(self) -> None:
        self.structs: dict[str, Definition] = {}
        self.enums: dict[str, str] = {}
        self.enum_values: dict[str, tuple[str, ...]] = {}
        self._seen: dict[str, Line] = {}

    def read(self, text: str, file: str) -> Iterator[Definition]:
        """Return the requests and responses of one file, in its order. Raises SchemaError with file and
        line."""
        request: Definition | None = None
        lines = iter(read_lines(text, file))
        for line in lines:
            if line.text.endswith(" ("):
                self._read_enum(line, next(lines, None))
                request = None
                continue
            found = self._read_definition(line, request)
            request = found if found.kind == "request" else None
            if found.kind == "struct":
                self.structs[found.name] = found
            else:
                yield found

    def _read_enum(self, line: Line, end: Line | None) -> None:
        match = _ENUM.fullmatch(line.text)
        if match is None:
            raise line.error(f"{line.text!r} is not an enum; write Name int8 (")
        if end is None or end.text != ")" or end.below:
            raise line.error(f"enum {match['name']} has no ')' below its values")
        for value in line.below:
            if not _ENUM_VALUE.fullmatch(value.text) or value.below:
                raise value.error(f"{value.text!r} is not a value of an enum; write 1: WORD")
        self._remember(match["name"], line)
        self.enums[match["name"]] = match["type"]
        self.enum_values[match["name"]] = tuple(value.text.replace(":", "") for value in line.below)

    def _read_definition(self, line: Line, request: Definition | None) -> Definition:
        name, arrow, rest = line.text.partition(" =>")
        if not arrow or not _NAME.fullmatch(name):
            raise line.error(f"{line.text!r} does not start a definition; write Name =>")
        if not rest:
            return self._read_response(line, name, request)
        header = _read_header(rest.removeprefix(" ").split(", "), line)
        kind = "struct" if header.is_struct else "request"
        if kind == "request" and (not name.endswith("Request") or header.key < 0 or header.max_version < 0):
            raise line.error("a request is written NameRequest => key N, max version N")
        if max(header.key, header.max_version) >= OPEN_END:
            raise line.error(f"keys and versions are below {OPEN_END}")
        return Definition(
            line, self._remember(name, line), kind, self._read_fields(line),
            header.key, header.max_version, header.flexible_from, header.has_version_field, header.sent_to,
        )  # fmt: skip

    def _read_response(self, line: Line, name: str, request: Definition | None) -> Definition:
        if not name.endswith("Response"):
            raise line.error(f"{name} => must be followed by a key or {_STRUCT!r}")
        wanted = name.removesuffix("Response") + "Request"
        if request is None or request.name != wanted:
            raise line.error(f"{name} does not directly follow {wanted}")
        return Definition(
            line, self._remember(name, line), "response", self._read_fields(line),
            request.key, request.max_version, request.flexible_from,
        )  # fmt: skip

    def _remember(self, name: str, line: Line) -> str:
        if name in self._seen:
            first = self._seen[name]
            raise line.error(f"{name} is defined in {first.file}:{first.number} already")
        self._seen[name] = line
        return name

    def _read_fields(self, above: Line) -> tuple[FieldDefinition, ...]:
        return tuple(self._read_field(line) for line in above.below)

    def _read_field(self, line: Line) -> FieldDefinition:
        text, _, mark_text = line.text.partition(" // ")
        mark = parse_mark(mark_text, line)
        name, colon, type_text = text.partition(": ")
        if not colon:
            return _read_shorthand(text, mark, line)
        found = parse_type(type_text, line, self.structs, self.enums)
        if line.below and not found.inline:
            raise line.below[0].error(f"{name} is not a struct defined here, so it has no fields")
        if found.inline and not line.below:
            raise line.error(f"the struct {name} has no fields")
        return FieldDefinition(line, name, found, mark, self._read_fields(line))


def _read_header(parts: list[str], line: Line) -> _Header:
    header = _Header()
    for number, part in enumerate(parts):
        counted, flexible = _NUMBER.fullmatch(part), _FLEXIBLE.fullmatch(part)
        if counted and not header.is_struct:
            if counted["what"] == "key":
                header.key = int(counted["number"])
            else:
                header.max_version = int(counted["number"])
        elif flexible:
            header.flexible_from = int(flexible["number"])
        elif part in SENT_TO and not header.is_struct:
            header.sent_to = SENT_TO[part]
        elif part == _STRUCT and not number:
            header.is_struct = True
        elif part in ("no encoding", "with version field") and header.is_struct:
            header.has_version_field = part == "with version field"
        else:
            raise line.error(
                f"{part!r} is not an attribute of a {'struct' if header.is_struct else 'request'}"
            )
    return header


def _read_shorthand(text: str, mark: Mark, line: Line) -> FieldDefinition:
    """Read ``ThrottleMillis(4)`` or ``TimeoutMillis(60000)``: fields whose type and meaning are known.

    The throttle's number is the version since which brokers answer before they throttle. It isn't on the
    wire.
    """
    match = _SHORTHAND.fullmatch(text)
    if match is None:
        raise line.error(f"{text!r} is not a field; write Name: type")
    if line.notes or line.below:
        raise line.error(f"{match['name']} can have neither notes nor fields, because its meaning is fixed")
    default = (match["number"] or _DEFAULT_TIMEOUT) if match["name"] == "TimeoutMillis" else None
    return FieldDefinition(line, match["name"], FieldType("int32", default=default), mark)
