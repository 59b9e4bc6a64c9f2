"""The parts that decoders and encoders have in common: intervals of versions, conditions, runs of fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codegen.emit.plan import FieldPlan, MessagePlan, StructPlan
from codegen.schema.model import FIXED_SIZES, INTEGER_RANGES
from codegen.schema.versions import NONE, Versions

STRUCT_CODES = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
# "?" would pack any object by its truth value; "b" packs integers only.
WRITE_CODES = STRUCT_CODES | {"bool": "b"}
CODE_SIZES = {code: FIXED_SIZES[base] for base, code in STRUCT_CODES.items()} | {"B": 1}
NUMBERS = (*INTEGER_RANGES, "float64", "bool")
ALWAYS = ""
"""The condition that needs no test."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Versions within which every field keeps one style, compact or not."""

    versions: Versions
    flexible: bool

    def is_compact(self, field: FieldPlan) -> bool:
        return self.versions.low >= field.flexible_from

    def condition(self, versions: Versions) -> str | None:
        """Return Python for "this version is one of ``versions``"; ALWAYS for all of the interval, None for
        none."""
        inside = self.versions.intersect(versions)
        if inside.empty:
            return None
        above = inside.low > self.versions.low
        below = inside.high < self.versions.high
        if above and below:
            same = inside.low == inside.high
            return f"version == {inside.low}" if same else f"{inside.low} <= version <= {inside.high}"
        if above:
            return f"version >= {inside.low}"
        return f"version <= {inside.high}" if below else ALWAYS

    @property
    def test(self) -> str:
        """Return Python for "the version is in this interval"."""
        low, high = self.versions.low, self.versions.high
        return f"version == {low}" if low == high else f"{low} <= version <= {high}"

    def narrowed(self, versions: Versions) -> Interval:
        """Return an interval with the same style and fewer versions."""
        return Interval(self.versions.intersect(versions), self.flexible)

    def mandatory(self, field: FieldPlan) -> Versions:
        """Return the versions at which the field has its place among the others."""
        if field.tagged.empty:
            return self.versions.intersect(field.present)
        before = Versions(field.present.low, field.tagged.low - 1)
        return NONE if before.empty else self.versions.intersect(before)

    def tagged(self, field: FieldPlan) -> Versions:
        return self.versions.intersect(field.tagged)

    def absent(self, field: FieldPlan) -> str | None:
        """Return the condition under which the field does not exist."""
        present = self.versions.intersect(field.present)
        if present.empty:
            return ALWAYS
        if present == self.versions:
            return None
        low, high = present.low > self.versions.low, present.high < self.versions.high
        if low and high:
            return f"not {present.low} <= version <= {present.high}"
        return f"version < {present.low}" if low else f"version > {present.high}"


def intervals(plan: MessagePlan) -> list[Interval]:
    """Return the message's versions, cut where a field's style changes, newest first.

    One more cut splits off the newest versions that have the same mandatory fields. They matter most, and
    their code needs no branch.
    """
    versions = plan.message.versions
    if versions.empty:
        return []
    fields = [field for struct in plan.structs for field in struct.fields]
    changes = [change for field in fields for change in _changes(field) if change in versions]
    cuts = {plan.flexible_from, max(changes, default=versions.low)}
    cuts |= {field.flexible_from for field in fields}
    # A struct that may be null has an additional byte before it.
    for field in fields:
        if field.type.is_struct and not field.type.is_array and not field.nullable.empty:
            cuts |= {field.nullable.low, field.nullable.high + 1}
    starts = sorted({versions.low} | {cut for cut in cuts if cut in versions})
    ends = [start - 1 for start in starts[1:]] + [versions.high]
    found = [
        Interval(Versions(low, high), low >= plan.flexible_from)
        for low, high in zip(starts, ends, strict=True)
    ]
    return found[::-1]


def _changes(field: FieldPlan) -> Iterator[int]:
    """Return the versions from which on the field has or lacks a place among the others, or can be null."""
    last = field.present.high if field.tagged.empty else field.tagged.low - 1
    place = field.present.intersect(Versions(field.present.low, last))
    for versions in (place, place.intersect(field.nullable)):
        if not versions.empty:
            yield versions.low
            yield versions.high + 1


def mandatory_runs(struct: StructPlan, interval: Interval) -> Iterator[tuple[Versions, list[FieldPlan]]]:
    """Return fields in order, grouping neighbours that are present at the same versions of the interval."""
    run: list[FieldPlan] = []
    current = NONE
    for field in struct.fields:
        versions = interval.mandatory(field)
        if run and versions != current:
            yield current, run
            run = []
        current = versions
        run.append(field)
    if run:
        yield current, run


def has_loop(plan: MessagePlan) -> bool:
    """Whether the message holds an array of structs anywhere."""
    return any(
        field.type.is_struct and field.type.is_array for struct in plan.structs for field in struct.fields
    )


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The layout of an array's element that holds only numbers, ids and arrays of numbers."""

    codes: str
    """A struct code for each field, "i*" for an array of "i"."""
    fields: tuple[FieldPlan, ...]
    """The fields that are on the wire."""
    straight: bool
    """Whether the values are those of the struct's first fields, unchanged."""


def row_layout(struct: StructPlan, interval: Interval) -> RowLayout | None:
    """Return a struct's layout in an array, if it has one and always has a tag section."""
    present = [field for field in struct.fields if not interval.mandatory(field).empty]
    if not interval.flexible or not present:
        return None
    if not all(_is_in_every_row(field, interval) for field in present):
        return None
    codes = [STRUCT_CODES[field.type.base] + "*" * field.type.is_array for field in present]
    straight = present == list(struct.fields[: len(present)])
    straight = straight and all(field.type.base != "uuid" for field in present)
    return RowLayout(" ".join(codes), tuple(present), straight)


def _is_in_every_row(field: FieldPlan, interval: Interval) -> bool:
    if interval.mandatory(field) != interval.versions:
        return False
    if not field.type.is_array:
        return field.type.fixed_size is not None
    return field.type.base in NUMBERS and not field.is_nullable and interval.is_compact(field)
