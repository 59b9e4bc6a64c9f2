"""A second implementation of Kafka's message schemas: parsers, built at test time directly from the JSON.

It shares no code with codegen and kraft_wire.protocol, so a rule that those misread shows as a difference. It
is also written as documentation: this file has all of Kafka's wire format in one place.

A message is a dict from the schema's field names to values: int, bool, float, str, bytes (also for ids),
list, dict for a struct, None for null. Fields that a version lacks are missing. In flexible versions every
struct has all its tagged fields, and under UNKNOWN the tags that the schema doesn't know, as pairs of tag and
bytes.
"""

from __future__ import annotations

import codecs
import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from construct import (
    Array,
    Bytes,
    Construct,
    ExprAdapter,
    Flag,
    Float64b,
    Int8sb,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    ValidationError,
    stream_read,
    stream_size,
    stream_tell,
    stream_write,
)  # fmt: skip

Node = dict[str, Any]
UNKNOWN = "_unknown"
LONGEST_STRING = 32767
MOST_ELEMENTS = 1_000_000
MOST_TAGS = 10_000
ZEROS = {"bool": False, "float64": 0.0, "uuid": bytes(16), "string": "", "bytes": b""}
FIXED = {
    "bool": Flag,
    "int8": Int8sb,
    "int16": Int16sb,
    "uint16": Int16ub,
    "int32": Int32sb,
    "uint32": Int32ub,
    "int64": Int64sb,
    "float64": Float64b,
    "uuid": Bytes(16),
}

# --- the schema language


def load(path: Path) -> Node:
    """Return a schema file: JSON with lines of comments."""
    node = json.loads(re.sub(r"^\s*//.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert isinstance(node, dict)
    return node


def span(versions: str | None) -> range:
    """Return the versions of "3", "1-4", "2+" or "none"."""
    if not versions or versions == "none":
        return range(0)
    low, _, high = versions.rstrip("+").partition("-")
    return range(int(low), 32768 if versions.endswith("+") else int(high or low) + 1)


class Reading:
    """One message at one version."""

    def __init__(self, schema: Node, version: int) -> None:
        self.fields: list[Node] = schema["fields"]
        self.version = version
        self.flexible = version in span(schema["flexibleVersions"])
        self.commons: dict[str, list[Node]] = {
            each["name"]: each["fields"] for each in schema.get("commonStructs", ())
        }
        self.parser = self.struct(self.fields)

    def decode(self, raw: bytes) -> tuple[Node, int]:
        """Return the message at the beginning of ``raw``, and its length. Raises ConstructError."""
        stream = BytesIO(raw)
        return self.parser.parse_stream(stream), stream.tell()

    def encode(self, message: Node) -> bytes:
        """Return the message's bytes. Raises ConstructError."""
        return bytes(self.parser.build(message))

    # Fields at a version.

    def present(self, fields: list[Node]) -> Iterator[Node]:
        """Return the fields that exist."""
        return (
            each for each in fields if self.version in span(each.get("versions") or each["taggedVersions"])
        )

    def is_tagged(self, field: Node) -> bool:
        return self.version in span(field.get("taggedVersions"))

    def is_nullable(self, field: Node) -> bool:
        return self.version in span(field.get("nullableVersions"))

    def is_compact(self, field: Node) -> bool:
        """Whether lengths are varints; one field of Kafka's overrides this."""
        own = field.get("flexibleVersions")
        return self.flexible if own is None else self.version in span(own)

    def inside(self, field: Node) -> list[Node]:
        """Return the fields of a field's struct, which is its own or a common one."""
        fields: list[Node] = self.commons.get(base(field)) or field["fields"]
        return fields

    def default(self, field: Node) -> Any:
        """Return a field's default."""
        kind, text = field["type"], str(field.get("default", ""))
        if kind == "records" or (text == "null" and field.get("nullableVersions")):
            return None
        if kind.startswith("[]"):
            return []
        if is_struct(field):
            values = {each["name"]: self.default(each) for each in self.present(self.inside(field))}
            return values | {UNKNOWN: []} if self.flexible else values
        if not text:
            return ZEROS.get(kind, 0)
        if kind == "bool":
            return text.lower() == "true"
        if kind == "uuid":
            return urlsafe_b64decode(text + "==")
        if kind in ("string", "float64"):
            return text if kind == "string" else float(text)
        return int(text, 0)

    # The wire.

    def struct(self, fields: list[Node]) -> Construct:
        """Return the fields in their order, then the tags if the message is flexible."""
        here = list(self.present(fields))
        places = {each["name"]: self.field(each) for each in here if not self.is_tagged(each)}
        if not self.flexible:
            return Fields(places)
        tags = {
            each["tag"]: (each["name"], self.field(each), self.default(each))
            for each in here
            if self.is_tagged(each)
        }
        return Fields(places, tags, refused={each["tag"] for each in fields if "tag" in each} - tags.keys())

    def field(self, field: Node) -> Construct:
        """Return the parser of a field's value: single or an array, perhaps null."""
        kind = field["type"]
        if kind.startswith("[]"):
            element = self.element(field, nullable=False)
            size = COMPACT if self.is_compact(field) else Int32sb
            return Measured(size, self.is_nullable(field), lambda count: Array(count, element), check_count)
        if is_struct(field) and self.is_nullable(field):
            # Written like a size: -1 for null and 1 for a struct; in a tag a varint of 0 or 1.
            struct = self.struct(self.inside(field))
            presence = TAGGED_PRESENCE if self.is_tagged(field) else Int8sb
            return Measured(presence, True, lambda _: struct, measure=lambda _: 1)
        return self.element(field, nullable=self.is_nullable(field))

    def element(self, field: Node, *, nullable: bool) -> Construct:
        """Return the parser of one value, a field's or an array's."""
        if is_struct(field):
            return self.struct(self.inside(field))
        kind = base(field)
        if kind in FIXED:
            return FIXED[kind]
        compact = self.is_compact(field)
        if kind == "string":
            size = COMPACT if compact else Int16sb
            return ExprAdapter(Measured(size, nullable, Bytes, check_string), to_text, from_text)
        return Measured(COMPACT if compact else Int32sb, nullable, Bytes)


def base(field: Node) -> str:
    """Return a field's type, or that of an array's elements."""
    name: str = field["type"].removeprefix("[]")
    return name


def is_struct(field: Node) -> bool:
    return base(field)[0].isupper()


# --- the wire's parts


class UVarint(Construct):  # type: ignore[misc]
    """Seven bits a byte, lowest first, the eighth for "more follows"; at most five bytes; 32 bits, signed."""

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = stream_read(stream, 1, path)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return wrapped(value)
        raise ValidationError("a varint does not end", path=path)

    def _build(self, obj: int, stream: Any, context: Any, path: str) -> int:
        value = obj
        while value >= 0x80:
            stream_write(stream, bytes((value & 0x7F | 0x80,)), 1, path)
            value >>= 7
        stream_write(stream, bytes((value,)), 1, path)
        return obj


def wrapped(value: int) -> int:
    """Return the lowest 32 bits as a signed integer, like Java's arithmetic."""
    return (value + 2**31) % 2**32 - 2**31


UVARINT = UVarint()
COMPACT = ExprAdapter(UVARINT, lambda obj, _: wrapped(obj - 1), lambda obj, _: obj + 1)
"""A length plus one, so that 0 is null."""
TAGGED_PRESENCE = ExprAdapter(UVARINT, lambda obj, _: obj if obj > 0 else -1, lambda obj, _: max(obj, 0))
"""1 for a struct, 0 for null."""


class Measured(Construct):  # type: ignore[misc]
    """A size, then that many bytes or elements; any negative size is null."""

    def __init__(
        self,
        size: Construct,
        nullable: bool,
        content: Callable[[int], Construct],
        check: Callable[[int, int], str] = lambda size, left: "",
        measure: Callable[[Any], int] = len,
    ) -> None:
        super().__init__()
        self.size, self.nullable, self.content = size, nullable, content
        self.check, self.measure = check, measure

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        size = self.size._parsereport(stream, context, path)
        if size < 0:
            self.refuse_null(path)
            return None
        problem = self.check(size, remaining(stream))
        if problem:
            raise ValidationError(problem, path=path)
        return self.content(size)._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if obj is None:
            self.refuse_null(path)
            return self.size._build(-1, stream, context, path)
        size = self.measure(obj)
        self.size._build(size, stream, context, path)
        return self.content(size)._build(obj, stream, context, path)

    def refuse_null(self, path: str) -> None:
        if not self.nullable:
            raise ValidationError("null where it must not be", path=path)


def check_count(count: int, left: int) -> str:
    return "too many elements" if count > min(left, MOST_ELEMENTS) else ""


def check_string(size: int, left: int) -> str:
    return "too long a string" if size > LONGEST_STRING else ""


def remaining(stream: Any) -> int:
    size: int = stream_size(stream) - stream_tell(stream, "")
    return size


class Fields(Construct):  # type: ignore[misc]
    """A struct: fields in order, then, unless ``tags`` is None, its tagged fields and unknown tags.

    ``tags`` has name, parser and default by tag; ``refused`` are tags that this version doesn't allow.
    """

    def __init__(
        self,
        places: dict[str, Construct],
        tags: dict[int, tuple[str, Construct, Any]] | None = None,
        refused: set[int] = frozenset(),  # type: ignore[assignment]
    ) -> None:
        super().__init__()
        self.places, self.tags, self.refused = places, tags, refused

    def _parse(self, stream: Any, context: Any, path: str) -> Node:
        values = {
            name: part._parsereport(stream, context, f"{path}.{name}") for name, part in self.places.items()
        }
        if self.tags is None:
            return values
        values |= {name: default for name, _, default in self.tags.values()} | {UNKNOWN: []}
        count = UVARINT._parse(stream, context, path)
        if not 0 <= count <= min(remaining(stream), MOST_TAGS):
            raise ValidationError("too many tags", path=path)
        for _ in range(count):
            tag, size = UVARINT._parse(stream, context, path), UVARINT._parse(stream, context, path)
            if tag in self.refused:
                raise ValidationError(f"tag {tag} at a version that lacks it", path=path)
            if tag in self.tags:
                # The size of a known field is ignored, and the last one wins.
                name, part, _default = self.tags[tag]
                values[name] = part._parsereport(stream, context, f"{path}.{name}")
            else:
                values[UNKNOWN].append((tag, Bytes(size)._parse(stream, context, path)))
        return values

    def _build(self, obj: Node, stream: Any, context: Any, path: str) -> Node:
        for name, part in self.places.items():
            part._build(obj[name], stream, context, f"{path}.{name}")
        if self.tags is None:
            return obj
        section = [
            (tag, part.build(obj[name]))
            for tag, (name, part, default) in sorted(self.tags.items())
            if obj[name] != default
        ]
        unknown = [tag for tag, _ in obj[UNKNOWN]]
        if unknown != sorted(set(unknown)) or not all(0 <= tag < 2**31 - 1 for tag in unknown):
            raise ValidationError("unknown tags do not ascend", path=path)
        section += obj[UNKNOWN]
        UVARINT._build(len(section), stream, context, path)
        for tag, raw in section:
            for number in (tag, len(raw)):
                UVARINT._build(number, stream, context, path)
            stream_write(stream, raw, len(raw), path)
        return obj


# --- text


def to_text(raw: bytes | None, _: Any) -> str | None:
    return None if raw is None else raw.decode("utf-8", errors="as-java")


def from_text(text: str | None, _: Any) -> bytes | None:
    return None if text is None else text.encode("utf-8")


def replace_as_java(error: UnicodeError) -> tuple[str, int]:
    """Replace malformed input by one U+FFFD; half a surrogate pair, three bytes long, by one and not
    three."""
    assert isinstance(error, UnicodeDecodeError)
    end = error.end
    if re.match(rb"\xed[\xa0-\xbf]", error.object[error.start :]):
        end = error.start + 2
        end += 0x80 <= error.object[end : end + 1].ljust(1)[0] < 0xC0
    return "\N{REPLACEMENT CHARACTER}", end


codecs.register_error("as-java", replace_as_java)
