"""Check the rules of the schema language (Kafka's MessageSpec, FieldSpec) on a parsed message.

Each rule yields its problems; ``check`` raises them together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from codegen.schema.errors import SchemaError
from codegen.schema.model import ENTITY_TYPES, INTEGER_RANGES, Field, Message, Struct, walk_fields
from codegen.schema.naming import RESERVED_CLASS_NAMES, field_name
from codegen.schema.versions import Versions

API_KEYS = range(-(2**15), 2**15)
_FIELD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]*)|0x[0-9A-Fa-f]+")
# As Double.parseDouble reads it, except for the hexadecimal form and suffixes.
_FLOAT = re.compile(r"\s*[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)\s*")
_BASE64_ID = re.compile(r"[A-Za-z0-9_-]{22}(==)?")
_LISTENERS = ("zkBroker", "broker", "controller")
"""Until Kafka 3.9 there were brokers of a ZooKeeper cluster."""
MAX_NESTING = 16
"""The maximum depth of structs below the message. They become nested blocks in the generated Python, which
refuses 19 and more."""
FieldRule = Callable[[Field], Iterator[str]]


def check(message: Message) -> None:
    """Raise SchemaError with all problems if the message breaks a rule."""
    problems = list(_message_problems(message))
    problems.extend(_struct_problems(message))
    groups = [(message.name, message.fields)]
    groups.extend((f"{message.name}.{each.name}", each.fields) for each in message.common_structs)
    for where, fields in groups:
        problems.extend(f"{where}: {problem}" for problem in _group_problems(fields))
        for path, field in walk_fields(fields, where):
            problems.extend(f"{path}: {problem}" for rule in FIELD_RULES for problem in rule(field))
            problems.extend(f"{path}: {problem}" for problem in _flexible_problems(field, message))
            problems.extend(f"{path}: {problem}" for problem in _group_problems(field.fields))
    if problems:
        raise SchemaError(message.name, problems)


def _message_problems(message: Message) -> Iterator[str]:
    if message.api_key is not None and message.api_key not in API_KEYS:
        yield f"apiKey {message.api_key} does not fit int16"
    if message.versions.open_ended:
        yield "validVersions has no maximum"
    if message.versions.empty:
        if message.fields:
            yield "validVersions is none, but there are fields"
    elif message.flexible is None:
        yield "flexibleVersions is missing; write 0+ for a new message"
    if not message.flexible_versions.empty and not message.flexible_versions.open_ended:
        yield f"flexibleVersions {message.flexible} is neither none nor open-ended"
    if any(field.map_key for field in message.fields):
        yield "mapKey is not possible at the top level"
    yield from _kind_problems(message)


def _kind_problems(message: Message) -> Iterator[str]:
    """Rules for some kinds of messages."""
    if message.kind != "request":
        if message.listeners:
            yield "listeners are for requests only"
        if message.latest_version_unstable:
            yield "latestVersionUnstable is for requests only"
    for listener in message.listeners:
        if listener not in _LISTENERS:
            yield f"listener {listener!r} is none of {', '.join(_LISTENERS)}"
    if message.kind in ("coordinator-key", "coordinator-value") and message.api_key is None:
        yield f"a {message.kind} needs an apiKey"
    if message.kind == "coordinator-key":
        if message.versions != Versions(0, 0):
            yield "a coordinator-key has validVersions 0"
        if not message.flexible_versions.empty:
            yield "a coordinator-key has flexibleVersions none"


def _struct_problems(message: Message) -> Iterator[str]:
    common = [each.name for each in message.common_structs]
    seen = {message.name}
    for name in common:
        if not name[0].isupper():
            yield f"struct {name} does not start with a capital"
        if name in seen:
            yield f"struct {name} is specified twice"
        seen.add(name)
    for path, field in _all_fields(message):
        name = field.type.struct
        if not name:
            continue
        if name in common:
            if field.fields:
                yield f"{path}: common struct {name} is re-specified"
        elif not field.fields:
            yield f"{path}: struct {name} is not specified"
        elif name in seen:
            yield f"{path}: struct {name} is specified twice"
        seen.add(name)
    for name in sorted(seen & RESERVED_CLASS_NAMES):
        yield f"struct {name} has a name that generated code needs"
    yield from _nesting_problems(message)


def _nesting_problems(message: Message) -> Iterator[str]:
    if _has_cycle(message):
        yield "a common struct contains itself"
        return
    if _nesting(message.fields, message.common_structs) > MAX_NESTING:
        yield f"structs are nested more than {MAX_NESTING} deep"
    yield from _common_version_problems(message)


def _nesting(fields: tuple[Field, ...], commons: tuple[Struct, ...]) -> int:
    parts = {each.name: each.fields for each in commons}
    inside = [field.fields or parts.get(field.type.struct, ()) for field in fields if field.type.is_struct]
    return max((1 + _nesting(each, commons) for each in inside), default=0)


def _common_version_problems(message: Message) -> Iterator[str]:
    """A common struct must exist at every version at which one of its fields does."""
    commons = {each.name: each for each in message.common_structs}

    def walk(fields: tuple[Field, ...], path: str, above: Versions) -> Iterator[str]:
        for field in fields:
            here, used = f"{path}.{field.name}", above.intersect(field.versions)
            common = commons.get(field.type.struct)
            if common is None:
                yield from walk(field.fields, here, used)
            elif not common.versions.contains(used):
                lacking = f"exists at versions {common.versions}, not at all of {used}"
                yield f"{here}: struct {common.name} {lacking}"

    yield from walk(message.fields, message.name, message.versions)
    for each in message.common_structs:
        above = message.versions.intersect(each.versions)
        yield from walk(each.fields, f"{message.name}.{each.name}", above)


def _all_fields(message: Message) -> Iterator[tuple[str, Field]]:
    yield from walk_fields(message.fields, message.name)
    for struct in message.common_structs:
        yield from walk_fields(struct.fields, f"{message.name}.{struct.name}")


def _has_cycle(message: Message) -> bool:
    common = {each.name: each for each in message.common_structs}

    def reaches_itself(struct: Struct, above: frozenset[str]) -> bool:
        inside = {field.type.struct for _, field in walk_fields(struct.fields, "")} & set(common)
        deeper = above | {struct.name}
        return bool(inside & deeper) or any(reaches_itself(common[name], deeper) for name in inside)

    return any(reaches_itself(struct, frozenset()) for struct in message.common_structs)


def _group_problems(fields: tuple[Field, ...]) -> Iterator[str]:
    """Rules about the fields of one struct."""
    names = [field.name for field in fields]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"field {name} is specified twice"
    snakes = [field_name(name) for name in sorted(set(names))]
    for snake in sorted({snake for snake in snakes if snakes.count(snake) > 1}):
        yield f"two fields would be called {snake} in Python"
    tags = sorted(field.tag for field in fields if field.tag is not None)
    if tags != list(range(len(tags))):
        yield f"tags {tags} are not unique and contiguous from 0"


def _name_problems(field: Field) -> Iterator[str]:
    if not _FIELD_NAME.fullmatch(field.name):
        yield "a field's name is a letter, then letters and digits"


def _type_problems(field: Field) -> Iterator[str]:
    if field.fields and not field.type.is_struct:
        yield f"a field of type {field.type} has no fields"
    if not field.nullable.empty and not field.type.can_be_nullable:
        yield f"type {field.type} is never null"
    if field.zero_copy and (field.type.base != "bytes" or field.type.is_array):
        yield "zeroCopy is for bytes only"
    if field.entity_type not in (None, "unknown"):
        expected = ENTITY_TYPES.get(field.entity_type)
        if expected is None:
            yield f"entityType {field.entity_type!r} is none of {', '.join(ENTITY_TYPES)}"
        elif field.type.base != expected:
            yield f"entityType {field.entity_type} is of type {expected}, not {field.type}"


def _tag_problems(field: Field) -> Iterator[str]:
    if field.tag is None:
        if not field.tagged.empty:
            yield "taggedVersions without a tag"
        return
    if field.tag < 0:
        yield f"tag {field.tag} is negative"
    if field.tagged.empty:
        yield "a tag without taggedVersions"
        return
    if not field.tagged.open_ended:
        yield f"taggedVersions {field.tagged} is not open-ended"
    if not field.versions.contains(field.tagged):
        yield f"taggedVersions {field.tagged} is not within versions {field.versions}"
    if field.nullable.intersect(field.tagged) not in (field.tagged, Versions(0, -1)):
        yield "all tagged versions are nullable, or none"
    if field.map_key:
        yield "a mapKey has no tag"
    if field.type.base == "records":
        yield "records have no tag"


def _flexible_problems(field: Field, message: Message) -> Iterator[str]:
    flexible = message.flexible_versions
    if field.flexible is not None:
        if field.type.base not in ("string", "bytes") or field.type.is_array:
            yield "a flexibleVersions override is for string and bytes only"
        if not flexible.contains(field.flexible):
            yield f"flexibleVersions {field.flexible} is not within the message's {flexible}"
        flexible = field.flexible
    if not flexible.contains(field.tagged):
        yield f"taggedVersions {field.tagged} is not within the flexible versions {flexible}"


def _default_problems(field: Field) -> Iterator[str]:
    if not field.default or field.type.base == "records":
        return  # The default of records is always null.
    if field.default == "null" and field.type.can_be_nullable:
        if not field.nullable.contains(field.versions):
            yield "the default is null, but not every version is nullable"
        return
    problem = _default_problem(field, field.default)
    if problem:
        yield f"default {field.default!r} {problem}"


def _default_problem(field: Field, text: str) -> str:
    base = "array" if field.type.is_array else field.type.base
    if base in INTEGER_RANGES:
        return _integer_problem(base, text)
    if base == "bool":
        return "" if text.lower() in ("true", "false") else "is neither true nor false"
    if base == "float64":
        return "" if _FLOAT.fullmatch(text) else "is not a number"
    if base == "uuid":
        return "" if _BASE64_ID.fullmatch(text) else "is not a base64 id of 16 bytes"
    return "" if base == "string" else f"is neither empty nor null, as {base} needs"


def _integer_problem(base: str, text: str) -> str:
    low, high = INTEGER_RANGES[base]
    try:
        value = parse_integer(text)
    except ValueError:
        return "is not an integer"
    return "" if low <= value <= high else f"does not fit {base}"


def parse_integer(text: str) -> int:
    """Return a default's integer, decimal or with 0x. Raises ValueError."""
    if not _INTEGER.fullmatch(text):
        raise ValueError(text)
    return int(text, 16 if text.startswith("0x") else 10)


FIELD_RULES: tuple[FieldRule, ...] = (_name_problems, _type_problems, _tag_problems, _default_problems)
