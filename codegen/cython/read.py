"""Emit one reading function per struct for the compiled tier: all versions in it, with tests where they
differ."""

from __future__ import annotations

from codegen.cython.layout import (
    PLURALS,
    SINGULARS,
    Layout,
    by_size,
    is_compact,
    is_nullable,
    size_of,
    symbol,
)
from codegen.emit.code import Function, Module
from codegen.emit.layout import ALWAYS, Interval, mandatory_runs
from codegen.emit.plan import NOT_A_NUMBER, FieldPlan
from codegen.schema.versions import Versions


def emit_read(layout: Layout) -> list[str]:
    """Return ``read_X``, and ``read_tags_X`` before it if the struct has tagged fields."""
    reader = _Reader(layout)
    if layout.highest_tag >= 0:
        reader.tag_section()
    reader.structure()
    return reader.out.lines


class _Reader:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.interval = layout.interval
        self.out = Function(Module(), ())

    def structure(self) -> None:
        layout = self.layout
        with self.out.block(
            f"cdef Bytes read_{layout.symbol}(PyObject** slot, Bytes p, Bytes end, int version) noexcept"
        ):
            count = len(layout.slots)
            if layout.twins:
                self.out.add("cdef Bytes before")
            self.out.add(f"cdef PyObject** at = new_struct(slot, shape_{layout.symbol}.type, {count})")
            self.give_up_if("at == NULL")
            for versions, fields in mandatory_runs(layout.struct, self.interval):
                self.run(versions, fields)
            if layout.struct.can_be_flexible:
                self.tags()
            for field in layout.tagged:
                with self.out.block(f"if {self.at(field, read=True)} == NULL"):
                    self.default(field)
            self.out.add("return p")

    def run(self, versions: Versions, fields: list[FieldPlan]) -> None:
        """Read neighbours that are present at the same versions; at others they hold their defaults."""
        condition = self.interval.condition(versions)
        if condition is None:
            self.defaults(fields)
        elif condition == ALWAYS:
            self.values(fields, self.interval)
        else:
            with self.out.block(f"if {condition}"):
                self.values(fields, self.interval.narrowed(versions))
            # A field that is tagged at other versions gets its default after the tags.
            if any(field not in self.layout.tagged for field in fields):
                with self.out.block("else"):
                    self.defaults(fields)

    def defaults(self, fields: list[FieldPlan]) -> None:
        for field in fields:
            if field not in self.layout.tagged:
                self.default(field)

    def default(self, field: FieldPlan) -> None:
        slot = self.at(field, read=True)
        made = {
            "[]": "PyList_New(0)",
            "struct": f"PyObject_CallNoArgs(<PyObject*> shape_{self.symbol_of(field)}.type)",
            NOT_A_NUMBER: "PyFloat_FromDouble(NAN)",
        }.get(field.default)
        if made is None:
            default = f"shape_{self.layout.symbol}.defaults[{self.layout.slot(field)}]"
            self.out.add(f"put({self.at(field)}, {default})")
        else:
            self.out.add(f"{slot} = {made}")
            self.give_up_if(f"{slot} == NULL")

    def values(self, fields: list[FieldPlan], interval: Interval) -> None:
        for fixed, run in by_size(fields):
            if fixed:
                self.fixed(run)
                continue
            for field in run:
                self.twin(field, interval)

    def twin(self, field: FieldPlan, interval: Interval) -> None:
        """Read a field whose size varies; it shares its tuple with an equal one directly before it."""
        twins = self.layout.twins
        if field in twins.values():
            self.out.add("before = p")
        if field.name not in twins:
            self.value(field, interval)
            return
        first = self.at(twins[field.name], read=True)
        with self.out.block(f"if repeats(before, p, end, {first})"):
            self.out.add(f"put({self.at(field)}, {first})")
            self.out.add("p += p - before")
        with self.out.block("else"):
            self.value(field, interval)

    def fixed(self, fields: list[FieldPlan]) -> None:
        size = size_of(fields)
        self.give_up_if(f"end - p < {size}")
        calls, offset = [], 0
        for field in fields:
            calls.append(f"get_{field.type.base}({self.at(field)}, p{f' + {offset}' if offset else ''})")
            offset += field.type.fixed_size or 0
        self.give_up_if(f"not ({' and '.join(calls)})")
        self.out.add(f"p += {size}")

    def value(self, field: FieldPlan, interval: Interval) -> None:
        """Read a field whose size varies."""
        start, null = f"{self.at(field)}, p, end", is_nullable(interval, field)
        compact = is_compact(interval, field)
        if field.type.is_struct and field.type.is_array:
            read = f"read_{self.symbol_of(field)}"
            self.out.add(f"p = read_structs({start}, {compact}, {null}, version, {read})")
        elif field.type.is_struct:
            self.struct_value(field, null, "read_nullable_struct")
        else:
            names = PLURALS if field.type.is_array else SINGULARS
            self.out.add(f"p = read_{names[field.type.base]}({start}, {compact}, {null})")
        self.give_up_if("p == NULL")

    def struct_value(self, field: FieldPlan, null: str, read_nullable: str) -> None:
        read = f"read_{self.symbol_of(field)}"
        start = f"{self.at(field)}, p, end, version"
        plain, nullable = f"p = {read}({start})", f"p = {read_nullable}({start}, {read})"
        if null in ("True", "False"):
            self.out.add(nullable if null == "True" else plain)
            return
        with self.out.block(f"if {null}"):
            self.out.add(nullable)
        with self.out.block("else"):
            self.out.add(plain)

    # Tags.

    def tags(self) -> None:
        layout = self.layout
        nothing = f"put(at + {layout.unknown}, EMPTY_TUPLE)"
        if layout.flexible is None:
            self.out.add(nothing)
            return
        test = f"{layout.flexible} and " if layout.flexible else ""
        with self.out.block(f"if {test}not (p < end and p[0] == 0)"):
            if layout.highest_tag >= 0:
                self.out.add(f"p = read_tags_{layout.symbol}(at, p, end, version)")
            else:
                self.out.add(f"p = read_unknown_tags(at + {layout.unknown}, p, end)")
            self.give_up_if("p == NULL")
        with self.out.block("else"):
            self.out.add(f"p += {layout.flexible}" if layout.flexible else "p += 1")
            self.out.add(nothing)

    def tag_section(self) -> None:
        """Return a function for the sections that are not empty."""
        layout = self.layout
        unknown = f"at + {layout.unknown}"
        with self.out.block(
            f"cdef Bytes read_tags_{layout.symbol}(PyObject** at, Bytes p, Bytes end, int version) noexcept"
        ):
            self.out.add("cdef uint32_t count, tag, size")
            self.out.add("p = tag_count(p, end, &count)")
            self.give_up_if("p == NULL")
            with self.out.block("while count"):
                self.out.add("count -= 1")
                self.out.add("p = tag_and_size(p, end, &tag, &size)")
                self.give_up_if("p == NULL")
                for number, field in enumerate(layout.tagged):
                    self.tagged_field(field, "elif" if number else "if")
                # A tag that is known, but not at this version.
                with self.out.block(f"{'elif' if layout.tagged else 'if'} tag <= {layout.highest_tag}"):
                    self.out.add("return NULL")
                with self.out.block("else"):
                    self.out.add(f"p = keep_unknown_tag({unknown}, p, end, tag, size)")
                    self.give_up_if("p == NULL")
            self.out.add(f"return end_of_tags({unknown}, p)")
        self.out.lines += ["", ""]

    def tagged_field(self, field: FieldPlan, word: str) -> None:
        """Read a tagged field. As in Java, the field's size is ignored, because it is redundant."""
        tagged = self.interval.tagged(field)
        condition = self.interval.condition(tagged)
        inside = self.interval.narrowed(tagged)
        with self.out.block(f"{word} tag == {field.tag}" + (f" and {condition}" if condition else "")):
            self.out.add(f"drop({self.at(field)})")
            if field.type.is_struct and not field.type.is_array:
                self.struct_value(field, is_nullable(inside, field), "read_nullable_tagged_struct")
                self.give_up_if("p == NULL")
            else:
                self.values([field], inside)

    # Helpers.

    def at(self, field: FieldPlan, *, read: bool = False) -> str:
        slot = self.layout.slot(field)
        return f"at[{slot}]" if read else f"at + {slot}"

    def symbol_of(self, field: FieldPlan) -> str:
        return symbol(self.layout.plan, field.type.struct)

    def give_up_if(self, test: str) -> None:
        with self.out.block(f"if {test}"):
            self.out.add("return NULL")
