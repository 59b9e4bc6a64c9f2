"""Read Kafka's own schema files: JSON with comments."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from codegen.schema.errors import SchemaError
from codegen.schema.model import FIXED_SIZES, KINDS, VARIABLE_TYPES, Field, Message, Struct, Type
from codegen.schema.versions import NONE, Versions

MESSAGE_KEYS = (
    "apiKey", "type", "name", "validVersions", "deprecatedVersions", "flexibleVersions", "listeners",
    "latestVersionUnstable", "commonStructs", "fields",
)  # fmt: skip
STRUCT_KEYS = ("name", "versions", "deprecatedVersions", "fields")
FIELD_KEYS = (
    "name", "type", "versions", "nullableVersions", "tag", "taggedVersions", "flexibleVersions", "default",
    "mapKey", "ignorable", "entityType", "zeroCopy", "fields",
)  # fmt: skip
PROSE_KEYS = ("about",)
"""Keys that are allowed in fields, and dropped."""
_TYPE = re.compile(r"\s*(?P<array>\[\]\s*)?(?P<base>[A-Za-z][A-Za-z0-9]*)\s*")
_INTEGER_TEXT = re.compile(r"-?[0-9]+")
_COMMENT_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)

Node = dict[str, Any]


def load(text: str, where: str) -> Node:
    """Read one JSON object with comments. Contradictions and text after it are errors."""
    try:
        node = json.loads(
            _without_comments(text), object_pairs_hook=_unique_keys, parse_constant=_no_constant
        )
    except ValueError as error:
        raise SchemaError(where, f"not one JSON object: {error}") from error
    if not isinstance(node, dict):
        raise SchemaError(where, "a schema is one JSON object")
    return node


def parse(text: str, where: str) -> Message:
    """Read a schema file; ``where`` names it in errors. Rules about several values are in check.py."""
    node = load(text, where)
    _only_known_keys(node, MESSAGE_KEYS, where)
    name = _required_text(node, "name", where)
    kind = _required_text(node, "type", name)
    if kind not in KINDS:
        raise SchemaError(name, f"type {kind!r} is none of {', '.join(KINDS)}")
    return Message(
        name=name,
        kind=kind,
        api_key=_integer(node, "apiKey", name),
        versions=_versions(node, "validVersions", name, required=True),
        flexible=_versions(node, "flexibleVersions", name) if "flexibleVersions" in node else None,
        fields=_fields(node, name),
        common_structs=tuple(_struct(each, name) for each in many(node, "commonStructs")),
        listeners=tuple(str(each) for each in many(node, "listeners")),
        latest_version_unstable=_flag(node, "latestVersionUnstable", name),
        deprecated=_versions(node, "deprecatedVersions", name),
    )


def _struct(node: Any, where: str) -> Struct:
    _expect_object(node, where)
    _only_known_keys(node, STRUCT_KEYS, where)
    name = _required_text(node, "name", where)
    here = f"{where}.{name}"
    fields = _fields(node, here)
    for field in fields:
        # Kafka's generator finds inline structs only below the message's own fields.
        if field.fields:
            raise SchemaError(f"{here}.{field.name}", "a struct inside a common struct is common too")
    return Struct(name, _versions(node, "versions", here, required=True), fields)


def _fields(node: Node, where: str) -> tuple[Field, ...]:
    return tuple(_field(each, where) for each in many(node, "fields"))


def _field(node: Any, where: str) -> Field:
    _expect_object(node, where)
    name = _required_text(node, "name", where)
    here = f"{where}.{name}"
    _only_known_keys(node, FIELD_KEYS + PROSE_KEYS, here)
    tagged = _versions(node, "taggedVersions", here)
    return Field(
        name=name,
        type=_type(_required_text(node, "type", here), here),
        versions=_versions(node, "versions", here, required=tagged.empty, default=tagged),
        nullable=_versions(node, "nullableVersions", here),
        default=_default_text(node),
        tag=_integer(node, "tag", here),
        tagged=tagged,
        ignorable=_flag(node, "ignorable", here),
        map_key=_flag(node, "mapKey", here),
        entity_type=_text(node, "entityType"),
        zero_copy=_flag(node, "zeroCopy", here),
        flexible=_versions(node, "flexibleVersions", here) if node.get("flexibleVersions") else None,
        fields=_fields(node, here),
    )


def _type(text: str, where: str) -> Type:
    match = _TYPE.fullmatch(text)
    if match is None:
        raise SchemaError(where, f"{text!r} is not a type; arrays of arrays don't exist")
    base, is_array = match["base"], match["array"] is not None
    if base in FIXED_SIZES or base in VARIABLE_TYPES:
        if is_array and base == "records":
            raise SchemaError(where, "arrays of records don't exist")
        return Type(base, "", is_array)
    if not base[0].isupper():
        raise SchemaError(
            where, f"{base!r} is not a primitive type, and a struct's name starts with a capital"
        )
    return Type("struct", base, is_array)


def _default_text(node: Node) -> str | None:
    value = node.get("default")
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def many(node: Node, key: str) -> list[Any]:
    """Return the values of a key: none, one or a list of them."""
    value = node.get(key)
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _versions(
    node: Node, key: str, where: str, *, required: bool = False, default: Versions = NONE
) -> Versions:
    text = _text(node, key)
    if not text:
        if required:
            raise SchemaError(where, f"{key} is missing")
        return default
    try:
        return Versions.parse(text)
    except ValueError as error:
        raise SchemaError(where, f"{key}: {error}") from None


def _flag(node: Node, key: str, where: str) -> bool:
    value = node.get(key)
    if value is None:
        return False
    if isinstance(value, str) and value in ("true", "false"):
        return value == "true"
    if not isinstance(value, bool):
        raise SchemaError(where, f"{key} is {value!r} instead of true or false")
    return value


def _integer(node: Node, key: str, where: str) -> int | None:
    value = node.get(key)
    if isinstance(value, str) and _INTEGER_TEXT.fullmatch(value):
        # Kafka 3.9's own schemas quote some tags.
        return int(value)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise SchemaError(where, f"{key} is {value!r} instead of an integer")
    return value


def _text(node: Node, key: str) -> str | None:
    value = node.get(key)
    return None if value is None else str(value)


def _required_text(node: Node, key: str, where: str) -> str:
    text = _text(node, key)
    if not text:
        raise SchemaError(where, f"{key} is missing")
    return text


def _expect_object(node: Any, where: str) -> None:
    if not isinstance(node, dict):
        raise SchemaError(where, f"{node!r} instead of an object")


def _only_known_keys(node: Node, known: tuple[str, ...], where: str) -> None:
    unknown = sorted(set(node) - set(known))
    if unknown:
        raise SchemaError(where, f"unknown key {', '.join(unknown)}")


def _unique_keys(pairs: list[tuple[str, Any]]) -> Node:
    node: Node = {}
    for key, value in pairs:
        # Kafka 3.9's own schemas have some keys twice; Java takes the last.
        if node.setdefault(key, value) != value:
            raise ValueError(f"{key!r} occurs twice in one object, with different values")
    return node


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _without_comments(text: str) -> str:
    return _COMMENT_OR_STRING.sub(_keep_string, text)


def _keep_string(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else " "
