"""The parts that readers and writers of the compiled tier have in common: names, slots, tests of the version.

These modules emit Cython that resembles the resulting C: plain pointers, and the functions of
compiled/kraft_wire_compiled/*.pxi. It exists only while the compiled wheel is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TypeVar

from codegen.emit.layout import ALWAYS, Interval
from codegen.emit.plan import FieldPlan, MessagePlan, StructPlan
from codegen.schema.model import FIXED_SIZES, Type
from codegen.schema.versions import OPEN_END, Versions

UNKNOWN = "unknown_tagged_fields"
MOST_IN_ONE = 64
T = TypeVar("T")
INT32S = Type("int32", is_array=True)
PLURALS = {"string": "strings", "bytes": "byte_strings"} | {base: f"{base}s" for base in FIXED_SIZES}
SINGULARS = {"string": "string", "bytes": "bytes", "records": "bytes"}


@dataclass(frozen=True, slots=True)
class Layout:
    """A struct: the versions at which it can occur, and the places of its fields."""

    plan: MessagePlan
    struct: StructPlan

    @property
    def symbol(self) -> str:
        """A name that is unique among all messages."""
        return symbol(self.plan, self.struct.name)

    @property
    def interval(self) -> Interval:
        return Interval(self.struct.versions, flexible=False)

    @property
    def slots(self) -> list[str]:
        """The names of its fields in the order in which CPython lays them out."""
        names = [field.name for field in self.struct.fields]
        return sorted([*names, UNKNOWN] if self.struct.can_be_flexible else names)

    def slot(self, field: FieldPlan) -> int:
        return self.slots.index(field.name)

    @property
    def unknown(self) -> int:
        return self.slots.index(UNKNOWN)

    @property
    def flexible(self) -> str | None:
        """The test for a tag section; ALWAYS, or None if there never is one."""
        return self.interval.condition(Versions(self.plan.flexible_from, OPEN_END))

    @property
    def tagged(self) -> list[FieldPlan]:
        """The fields that have a tag at some version, in the order of their tags."""
        found = [field for field in self.struct.fields if not self.interval.tagged(field).empty]
        return sorted(found, key=lambda field: field.tag)

    @property
    def twins(self) -> dict[str, FieldPlan]:
        """Arrays of int32 that directly follow another one, with that one: replicas, then those in sync."""
        found: dict[str, FieldPlan] = {}
        for first, second in pairwise(self.struct.fields):
            if (
                first.name not in found
                and first.type == INT32S
                and _shape(first) == _shape(second)
                and first.tagged.empty
            ):
                found[second.name] = first
        return found

    @property
    def highest_tag(self) -> int:
        """The highest known tag, valid at a version or not; -1 if there are none."""
        return max((field.tag for field in self.struct.fields), default=-1)


def _shape(field: FieldPlan) -> tuple[object, ...]:
    return field.type, field.present, field.tagged, field.flexible_from


def symbol(plan: MessagePlan, struct: str) -> str:
    return plan.module if struct == plan.message.name else f"{plan.module}_{struct}"


def truth(interval: Interval, versions: Versions) -> str:
    """Return an expression for "this version is one of ``versions``"."""
    condition = interval.condition(versions)
    if condition is None:
        return "False"
    return condition if condition != ALWAYS else "True"


def is_compact(interval: Interval, field: FieldPlan) -> str:
    return truth(interval, Versions(field.flexible_from, OPEN_END))


def is_nullable(interval: Interval, field: FieldPlan) -> str:
    return truth(interval, field.nullable)


def by_size(fields: list[FieldPlan]) -> Iterator[tuple[bool, list[FieldPlan]]]:
    """Yield neighbours of fixed size together, and the others, with whether they are of fixed size."""
    for fixed, run in groupby(fields, key=lambda field: field.type.fixed_size is not None):
        for some in in_parts(list(run)):
            yield fixed, some


def in_parts(items: list[T]) -> Iterator[list[T]]:
    """Yield as many at a time as one expression may have: Cython nests each in the previous one."""
    for start in range(0, len(items), MOST_IN_ONE):
        yield items[start : start + MOST_IN_ONE]


def size_of(fields: list[FieldPlan]) -> int:
    return sum(field.type.fixed_size or 0 for field in fields)
