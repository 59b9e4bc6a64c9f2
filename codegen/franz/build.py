"""Build the generator's messages from definitions in franz-go's language."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.franz.definitions import Definition, Definitions, FieldDefinition
from codegen.franz.lines import Line
from codegen.franz.notes import error_notes, listed_error_notes, plain_notes
from codegen.franz.types import WITHOUT_EQUIVALENT
from codegen.schema.model import Field, Message, Notes, Struct, Type
from codegen.schema.versions import ALL, NONE, OPEN_END, Versions


class Builder:
    """Builds one message. ``lines`` says where each part is defined, by the path that check.py gives it."""

    def __init__(self, definition: Definition, definitions: Definitions) -> None:
        self.definition = definition
        self.definitions = definitions
        self.lines: dict[str, Line] = {definition.name: definition.line}
        self._structs: dict[str, Struct] = {}

    def message(self) -> Message:
        """Return the message. check.py checks the rules of the schema language. Raises SchemaError."""
        top = self.definition
        fields = self._fields(top.fields, top.name, top.name)
        return Message(
            name=top.name,
            kind=top.kind,
            api_key=top.key,
            versions=Versions(0, top.max_version),
            flexible=self._flexible,
            fields=fields,
            common_structs=tuple(self._structs.values()),
            notes=self._message_notes(),
        )

    @property
    def _flexible(self) -> Versions:
        start = self.definition.flexible_from
        return NONE if start is None else Versions(start, OPEN_END)

    def _message_notes(self) -> Notes:
        top = self.definition
        if top.kind == "response":
            return listed_error_notes(top.line.notes)
        notes = plain_notes(top.line.notes)
        return Notes((*notes.text, f"It goes to {top.sent_to}.")) if top.sent_to else notes

    def _fields(self, fields: tuple[FieldDefinition, ...], path: str, struct: str) -> tuple[Field, ...]:
        return tuple(self._field(each, path, struct) for each in fields)

    def _field(self, found: FieldDefinition, path: str, struct: str) -> Field:
        """Return a field. ``struct`` names the struct that holds it; a struct defined in it is named after
        both."""
        here = f"{path}.{found.name}"
        self.lines[here] = found.line
        kafka_type = self._type(found, struct)
        versions = self._versions(found)
        nullable = NONE
        if found.type.nullable_from is not None:
            nullable = versions.intersect(Versions(found.type.nullable_from, OPEN_END))
        return Field(
            name=found.name,
            type=kafka_type,
            versions=versions,
            nullable=nullable,
            default=_default(found),
            tag=found.mark.tag,
            tagged=NONE if found.mark.tag is None else versions,
            fields=self._fields(found.fields, here, kafka_type.struct),
            notes=self._notes(found),
        )

    def _type(self, found: FieldDefinition, struct: str) -> Type:
        written = found.type
        if written.base in WITHOUT_EQUIVALENT:
            raise found.line.error(
                f"Kafka's schemas of requests and responses have nothing like {written.base}"
            )
        if written.base != "struct":
            return Type(written.base, "", written.array)
        if not written.inline:
            self._use_struct(written.name, found.line)
            return Type("struct", written.name, written.array)
        name = written.name or (singular(found.name) if written.array else found.name)
        return Type("struct", struct + name, written.array)

    def _use_struct(self, name: str, line: Line) -> None:
        if name in self._structs:
            return
        definition = self.definitions.structs[name]
        if definition.has_version_field:
            raise line.error(f"{name} has a version field, which a struct inside a message can't have")
        if definition.flexible_from is None and self.definition.flexible_from is not None:
            raise line.error(f"{name} is never flexible, but {self.definition.name} is")
        path = f"{self.definition.name}.{name}"
        self.lines[path] = definition.line
        fields = self._fields(definition.fields, path, name)
        self._structs[name] = Struct(name, ALL, fields, plain_notes(definition.line.notes))

    def _versions(self, found: FieldDefinition) -> Versions:
        name, last = self.definition.name, self.definition.max_version
        written = found.mark.versions
        if written is None:
            if found.mark.tag is None:
                return ALL
            # A tag alone: at all versions that have tags.
            return self._flexible
        if written.low > last or last < written.high < OPEN_END:
            raise found.line.error(f"v{written} goes beyond max version {last} of {name}")
        return written

    def _notes(self, found: FieldDefinition) -> Notes:
        holds_error = found.name.endswith("ErrorCode") and found.type.base == "int16"
        if holds_error and self.definition.kind == "response":
            return error_notes(found.line.notes)
        notes = plain_notes(found.line.notes)
        return Notes((*notes.text, *_enum_note(found.type.enum, self.definitions.enum_values)))


def singular(name: str) -> str:
    """Return the name of one element of an array: ``Topics`` -> ``Topic``, ``Replicas`` -> ``Replica``."""
    if name.endswith(("us", "ss")):
        return name
    if name.endswith("ies"):
        return name[:-3] + "y"
    if name.endswith(("ches", "shes", "sses", "xes")):
        return name[:-2]
    return name.removesuffix("s")


def _default(found: FieldDefinition) -> str | None:
    """Return the written default, or the one of a field without.

    A struct that may be null is null, and so is a tagged field: its default decides about the wire. Other
    fields start empty, as in Kafka's schemas: a request with defaults asks for nothing, not for everything.
    """
    written = found.type
    if written.default is not None or written.nullable_from is None:
        return written.default
    is_struct = written.base == "struct" and not written.array
    return "null" if is_struct or found.mark.tag is not None else None


def _enum_note(name: str, values: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return (f"{name}: {', '.join(values[name])}.",) if name else ()
