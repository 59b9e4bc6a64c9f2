"""Plan a checked message for the emitter: structs in order, Python names, clipped ranges."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from dataclasses import dataclass
from math import isfinite

from codegen.schema.check import parse_integer
from codegen.schema.model import INTEGER_RANGES, NO_NOTES, Field, Message, Notes, Struct, Type
from codegen.schema.naming import field_name, json_name, snake_case
from codegen.schema.versions import Versions

NEVER = 32768
"""A first version that no message reaches."""
NOT_A_NUMBER = "float('nan')"
"""The only default that does not equal itself."""
_PYTHON_TYPES = {
    "bool": "bool",
    "float64": "float",
    "uuid": "Uuid",
    "string": "str",
    "bytes": "bytes",
    "records": "bytes",
}


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """A field: ``present``, ``nullable`` and ``tagged`` are clipped to the versions that can occur."""

    kafka_name: str
    name: str
    json_name: str
    type: Type
    present: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    flexible_from: int
    ignorable: bool
    default: str
    """Python source of the default; "struct" for a new struct."""
    notes: Notes = NO_NOTES

    @property
    def is_nullable(self) -> bool:
        return not self.nullable.empty

    @property
    def can_be_none(self) -> bool:
        """Whether the value may be None; records are None by default, even if they can't be null on the
        wire."""
        return self.is_nullable or self.default == "None"

    @property
    def annotation(self) -> str:
        """The Python type as source."""
        base = self.type.struct or _PYTHON_TYPES.get(self.type.base, "int")
        if self.type.is_array:
            base = f"list[{base}]" if self.type.is_struct else f"tuple[{base}, ...]"
        return f"{base} | None" if self.can_be_none else base


@dataclass(frozen=True, slots=True)
class StructPlan:
    """A class: ``versions`` are those at which it can occur."""

    name: str
    versions: Versions
    fields: tuple[FieldPlan, ...]
    can_be_flexible: bool
    notes: Notes = NO_NOTES


@dataclass(frozen=True, slots=True)
class MessagePlan:
    """A module: ``structs`` in the order of definition, the message's own last."""

    message: Message
    flexible_from: int
    structs: tuple[StructPlan, ...]
    own_module: str = ""
    """The module's name if it isn't derived from the message's."""

    @property
    def module(self) -> str:
        return self.own_module or snake_case(self.message.name)

    def struct(self, name: str) -> StructPlan:
        return next(each for each in self.structs if each.name == name)


def plan(message: Message) -> MessagePlan:
    """Plan a checked message."""
    planner = _Planner(message)
    planner.add(Struct(message.name, message.versions, message.fields, message.notes), message.versions)
    return MessagePlan(message, planner.flexible_from, tuple(planner.done.values()))


class _Planner:
    def __init__(self, message: Message) -> None:
        self.message = message
        self.flexible_from = NEVER if message.flexible_versions.empty else message.flexible_versions.low
        self.can_be_flexible = not message.flexible_versions.intersect(message.versions).empty
        self.commons = {each.name: each for each in message.common_structs}
        self.done: dict[str, StructPlan] = {}

    def add(self, struct: Struct, above: Versions) -> None:
        """Plan the structs inside ``struct``, then ``struct`` itself. ``above`` are the versions of its
        parents."""
        if struct.name in self.done:
            return
        versions = above.intersect(struct.versions)
        for field in struct.fields:
            name = field.type.struct
            if name in self.commons:
                # A common struct is planned once, for every version at which it may occur.
                self.add(self.commons[name], self.message.versions)
            elif name:
                self.add(Struct(name, field.versions, field.fields), versions)
        fields = tuple(self._field(field, versions) for field in struct.fields)
        self.done[struct.name] = StructPlan(struct.name, versions, fields, self.can_be_flexible, struct.notes)

    def _field(self, field: Field, above: Versions) -> FieldPlan:
        present = above.intersect(field.versions)
        flexible_from = self.flexible_from
        if field.flexible is not None:
            flexible_from = NEVER if field.flexible.empty else field.flexible.low
        return FieldPlan(
            kafka_name=field.name,
            name=field_name(field.name),
            json_name=json_name(field.name),
            type=field.type,
            present=present,
            nullable=present.intersect(field.nullable),
            tagged=present.intersect(field.tagged),
            tag=-1 if field.tag is None else field.tag,
            flexible_from=flexible_from,
            ignorable=field.ignorable,
            default=default_source(field),
            notes=field.notes,
        )


def default_source(field: Field) -> str:
    """Return the default as Python source, the same for all spellings in a schema; "struct" for a new
    struct."""
    text, base = field.default or "", field.type.base
    if base == "records" or (text == "null" and field.type.can_be_nullable):
        return "None"
    if field.type.is_array:
        return "[]" if field.type.is_struct else "()"
    if field.type.is_struct:
        return "struct"
    if base == "uuid":
        return f"Uuid({urlsafe_b64decode(text + '=' * (-len(text) % 4))!r})" if text else "Uuid.ZERO"
    if base in INTEGER_RANGES:
        return str(parse_integer(text)) if text else "0"
    if base == "float64":
        return _float_source(float(text or 0))
    if base == "bool":
        return str(text.lower() == "true")
    return repr(text) if base == "string" else "b''"


def _float_source(value: float) -> str:
    return repr(value) if isfinite(value) else f"float({str(value)!r})"
