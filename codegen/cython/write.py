"""Emit one writing function per struct for the compiled tier: all versions in it, with tests where they
differ."""

from __future__ import annotations

from codegen.cython.layout import (
    PLURALS,
    SINGULARS,
    Layout,
    by_size,
    in_parts,
    is_compact,
    is_nullable,
    size_of,
    symbol,
)
from codegen.emit.code import Function, Module
from codegen.emit.layout import ALWAYS, Interval, mandatory_runs
from codegen.emit.plan import NOT_A_NUMBER, FieldPlan
from codegen.schema.model import INTEGER_RANGES
from codegen.schema.versions import Versions


def emit_write(layout: Layout) -> list[str]:
    """Return ``write_X``."""
    writer = _Writer(layout)
    writer.structure()
    return writer.out.lines


def emit_untouched(layout: Layout) -> list[str]:
    """Return ``untouched_X``: whether a value equals a new one, as far as a quick check can show."""
    writer = _Writer(layout)
    writer.untouched()
    return writer.out.lines


class _Writer:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.interval = layout.interval
        self.out = Function(Module(), ())

    def structure(self) -> None:
        layout = self.layout
        with self.out.block(
            f"cdef bint write_{layout.symbol}(Writer* w, PyObject* value, int version) noexcept"
        ):
            if layout.tagged:
                self.out.add("cdef int known = 0")
                self.out.add("cdef Py_ssize_t tag")
            if layout.flexible is not None:
                self.out.add("cdef Py_ssize_t section")
            self.out.add("cdef PyObject** at")
            self.give_up_if(f"value == NULL or Py_TYPE(value) != shape_{layout.symbol}.type")
            self.out.add("at = <PyObject**> (value + 1)")
            for field in layout.struct.fields:
                self.refuse_absent(field)
            for versions, fields in mandatory_runs(layout.struct, self.interval):
                self.run(versions, fields)
            if layout.struct.can_be_flexible:
                self.tags()
            self.out.add("return True")

    def refuse_absent(self, field: FieldPlan) -> None:
        """Check that a field that the version lacks, and that isn't ignorable, holds its default."""
        condition = self.interval.absent(field)
        if condition is not None and not field.ignorable:
            test = f"not {self.is_default(field)}"
            self.give_up_if(f"({condition}) and {test}" if condition else test)

    def run(self, versions: Versions, fields: list[FieldPlan]) -> None:
        """Write neighbours that are present at the same versions."""
        condition = self.interval.condition(versions)
        if condition is None:
            return
        if condition == ALWAYS:
            self.values(fields, self.interval)
            return
        with self.out.block(f"if {condition}"):
            self.values(fields, self.interval.narrowed(versions))

    def values(self, fields: list[FieldPlan], interval: Interval) -> None:
        for fixed, run in by_size(fields):
            if fixed:
                self.fixed(run)
            else:
                for field in run:
                    self.value(field, interval)

    def fixed(self, fields: list[FieldPlan]) -> None:
        size = size_of(fields)
        calls, offset = [f"room(w, {size})"], 0
        for field in fields:
            place = f"w.at + {offset}" if offset else "w.at"
            calls.append(f"put_{field.type.base}({place}, {self.at(field)})")
            offset += field.type.fixed_size or 0
        self.give_up_if(f"not ({' and '.join(calls)})")
        self.out.add(f"w.at += {size}")

    def value(self, field: FieldPlan, interval: Interval) -> None:
        """Write a field whose size varies."""
        null, compact = is_nullable(interval, field), is_compact(interval, field)
        if field.type.is_struct and field.type.is_array:
            write = f"write_{self.symbol_of(field)}"
            call = f"write_structs(w, {self.at(field)}, {compact}, {null}, version, {write})"
            self.give_up_if(f"not {call}")
        elif field.type.is_struct:
            self.struct_value(field, null, "write_nullable_struct")
        else:
            names = PLURALS if field.type.is_array else SINGULARS
            self.give_up_if(f"not write_{names[field.type.base]}(w, {self.at(field)}, {compact}, {null})")

    def struct_value(self, field: FieldPlan, null: str, write_nullable: str) -> None:
        write, arguments = f"write_{self.symbol_of(field)}", f"w, {self.at(field)}, version"
        plain, nullable = f"not {write}({arguments})", f"not {write_nullable}({arguments}, {write})"
        if null in ("True", "False"):
            self.give_up_if(nullable if null == "True" else plain)
            return
        with self.out.block(f"if {null}"):
            self.give_up_if(nullable)
        with self.out.block("else"):
            self.give_up_if(plain)

    # Tags.

    def tags(self) -> None:
        condition = self.layout.flexible
        if condition == ALWAYS:
            self.tag_section()
            return
        if condition is not None:
            with self.out.block(f"if {condition}"):
                self.tag_section()
                self.out.add("return True")
        self.give_up_if(f"at[{self.layout.unknown}] != EMPTY_TUPLE")

    def tag_section(self) -> None:
        unknown = f"at[{self.layout.unknown}]"
        self.out.add("section = open_tags(w)")
        self.give_up_if("section < 0")
        for field in self.layout.tagged:
            self.tagged_field(field)
        known = "known" if self.layout.tagged else "0"
        nothing_known = " and not known" if self.layout.tagged else ""
        # A section without fields is complete: its count of 0 is written already.
        self.give_up_if(
            f"not ({unknown} == EMPTY_TUPLE{nothing_known}) "
            f"and not close_tags(w, section, {unknown}, {known}, {self.layout.highest_tag})"
        )

    def tagged_field(self, field: FieldPlan) -> None:
        tagged = self.interval.tagged(field)
        condition = self.interval.condition(tagged)
        inside = self.interval.narrowed(tagged)
        test = f"not {self.is_default(field)}"
        with self.out.block(f"if {condition} and {test}" if condition else f"if {test}"):
            self.out.add(f"tag = open_tag(w, {field.tag})")
            self.give_up_if("tag < 0")
            if field.type.is_struct and not field.type.is_array:
                self.struct_value(field, is_nullable(inside, field), "write_nullable_tagged_struct")
            else:
                self.values([field], inside)
            self.give_up_if("not close_tag(w, tag)")
            self.out.add("known += 1")

    # Defaults.

    def is_default(self, field: FieldPlan) -> str:
        """Return a test whether a field may be left out: not written as a tag, or allowed to be absent."""
        if field.type.is_array and field.default != "None":
            return f"is_empty({self.at(field)})"
        return self.equals_default(field)

    def equals_default(self, field: FieldPlan) -> str:
        value, base, default = self.at(field), field.type.base, field.default
        stored = f"shape_{self.layout.symbol}.defaults[{self.layout.slot(field)}]"
        if default in ("None", "True", "False"):
            return f"({value} == Py_{default})"
        if default == "struct":
            return f"untouched_{self.symbol_of(field)}({value})"
        if field.type.is_array:
            return f"is_empty_list({value})" if field.type.is_struct else f"({value} == EMPTY_TUPLE)"
        if default == NOT_A_NUMBER:
            return "False"
        if base in INTEGER_RANGES:
            return f"is_integer({value}, {_integer(int(default))})"
        if base == "float64":
            return f"is_float({value}, PyFloat_AS_DOUBLE({stored}))"
        return f"{'is_string' if base == 'string' else 'is_bytes'}({value}, {stored})"

    def untouched(self) -> None:
        with self.out.block(f"cdef bint untouched_{self.layout.symbol}(PyObject* value) noexcept"):
            self.out.add("cdef PyObject** at = <PyObject**> (value + 1)")
            tests = [f"value != NULL and Py_TYPE(value) == shape_{self.layout.symbol}.type"]
            tests += [self.equals_default(field) for field in self.layout.struct.fields]
            if self.layout.struct.can_be_flexible:
                tests.append(f"at[{self.layout.unknown}] == EMPTY_TUPLE")
            for some in in_parts(tests):
                self.give_up_if(f"not ({' and '.join(some)})")
            self.out.add("return True")

    # Helpers.

    def at(self, field: FieldPlan) -> str:
        return f"at[{self.layout.slot(field)}]"

    def symbol_of(self, field: FieldPlan) -> str:
        return symbol(self.layout.plan, field.type.struct)

    def give_up_if(self, test: str) -> None:
        with self.out.block(f"if {test}"):
            self.out.add("return False")


def _integer(value: int) -> str:
    return "INT64_MIN" if value == -(2**63) else str(value)
