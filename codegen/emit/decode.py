"""Emit the decoder of one message: straight-line code with a branch only where versions have different
fields.

Unusual input raises a Fault, and the careful decoder takes over. No read moves backwards, and slices don't
raise: so it is enough that the very last read raises at the end of the data, or is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from codegen.emit.code import Function
from codegen.emit.cursor import Cursor
from codegen.emit.layout import (
    ALWAYS,
    CODE_SIZES,
    NUMBERS,
    STRUCT_CODES,
    Interval,
    RowLayout,
    mandatory_runs,
    row_layout,
)
from codegen.emit.plan import FieldPlan, MessagePlan, StructPlan
from codegen.schema.versions import Versions

WHOLE, FROM, LOOPING = "whole", "from", "looping"
"""Kinds of decoders: ``decode`` and ``decode_from`` of a small message; ``decode`` of any other message,
which can also do the work of ``decode_from``."""
LOCALS = ("data", "version", "pos", "ends", "start", "end", "columns", "message")
RESERVED = (*LOCALS, "struct", "msgspec", "len", "list", "map", "range", "zip")
"""Names that fields must not take; ``end`` and ``columns`` are used immediately."""
FEW_ROWS = 5
"""Up to this compact size, the elements of an array are read one by one."""


def return_message(function: Function, end: str) -> None:
    """Emit the return of ``message`` and of its end."""
    with function.block("if ends is not None"):
        function.add(f"ends.append({end})")
    function.add("return message")


class Decoder(Cursor):
    def __init__(self, plan: MessagePlan, function: Function, interval: Interval, kind: str) -> None:
        super().__init__(function, "" if kind == WHOLE else "pos")
        self.plan = plan
        self.interval = interval
        self.kind = kind

    def message(self) -> None:
        value = self.structure(self.plan.struct(self.plan.message.name))
        self.close_run()
        if self.checked:
            self.result(value)
            return
        with self.out.block(f"if {self.at()} <= len(data)"):
            self.result(value)

    def result(self, value: str) -> None:
        if self.kind == LOOPING:
            self.out.add(f"message = {value}")
            return_message(self.out, self.at())
        else:
            self.out.add(f"return {value}" if self.kind == WHOLE else f"return {value}, {self.at()}")

    # Structs.

    def structure(self, struct: StructPlan) -> str:
        """Read the struct and return the expression that creates it. A run may still be open."""
        values: dict[str, str] = {}
        for versions, fields in mandatory_runs(struct, self.interval):
            if versions.empty:
                values |= {field.name: self.default(field) for field in fields}
            elif versions == self.interval.versions:
                for field in fields:
                    values[field.name] = self.value(field)
            else:
                self.conditional(versions, fields, values)
        unknown = self.tag_section(struct, values) if self.interval.flexible else ""
        arguments = [values[field.name] for field in struct.fields]
        if unknown:
            arguments.append(unknown)
        return f"{struct.name}({', '.join(arguments)})"

    def conditional(self, versions: Versions, fields: list[FieldPlan], values: dict[str, str]) -> None:
        self.settle()
        checked = self.checked
        names = {field.name: self.declared(field) for field in fields}
        with self.out.block(f"if {self.interval.condition(versions)}"), self.within(versions):
            self.assign(fields, names)
        with self.out.block("else"):
            for field in fields:
                self.out.add(f"{names[field.name]} = {self.default(field)}")
        self.checked = self.checked and checked
        values |= names

    def assign(self, fields: list[FieldPlan], names: dict[str, str], *, tagged: bool = False) -> None:
        """Read fields into existing locals, and settle."""
        values = {field.name: self.value(field, names[field.name], tagged=tagged) for field in fields}
        self.settle()
        for field in fields:
            if values[field.name] != names[field.name]:
                self.out.add(f"{names[field.name]} = {values[field.name]}")

    @contextmanager
    def within(self, versions: Versions) -> Iterator[None]:
        """Narrow the interval inside a test of the version."""
        around = self.interval
        self.interval = around.narrowed(versions)
        yield
        self.interval = around

    def declared(self, field: FieldPlan) -> str:
        """Declare a local with the field's type, for values that come from several branches."""
        name = self.out.name(field.name)
        self.out.add(f"{name}: {field.annotation}")
        return name

    def default(self, field: FieldPlan) -> str:
        return f"{field.type.struct}()" if field.default == "struct" else field.default

    # Values.

    def value(self, field: FieldPlan, name: str = "", *, tagged: bool = False) -> str:
        """Read a field into the local ``name``, or a new one, and return the expression for its value.

        A run may still be open, so the value must not be used yet.
        """
        null = self.null_condition(field, tagged=tagged)
        if field.type.is_array:
            return self.array(field, name, null)
        if field.type.is_struct:
            return self.struct_field(field, name, null, tagged=tagged)
        if field.type.fixed_size is not None:
            name = name or self.out.name(field.name)
            self.fixed(STRUCT_CODES[field.type.base], name)
            return self.made(field, name)
        if field.type.base != "string":
            return self.binary(field, name, null)
        if self.interval.is_compact(field):
            return self.compact_string(field, name, null)
        return self.plain_string(field, name, null)

    def made(self, field: FieldPlan, name: str) -> str:
        """Return the value of a field of fixed size from the unpacked local."""
        return f"{self.helper('UUIDS')}[{name}]" if field.type.base == "uuid" else name

    def null_condition(self, field: FieldPlan, *, tagged: bool) -> str | None:
        """Return when null is allowed: ALWAYS, a test, or None for never."""
        here = self.interval.tagged(field) if tagged else self.interval.mandatory(field)
        nullable = here.intersect(field.nullable)
        if nullable.empty:
            return None
        return ALWAYS if nullable == here else self.interval.condition(nullable)

    def size(self, field: FieldPlan, code: str) -> str:
        """Read a size, or the first byte of a compact one, and return its local."""
        size = self.out.name(f"{field.name}_size")
        self.fixed(code, size)
        self.close_run()
        return size

    def compact_string(self, field: FieldPlan, name: str, null: str | None) -> str:
        size = self.size(field, "B")
        raw = self.out.name(f"{field.name}_raw" if name else field.name)
        if null:
            self.refuse(f"if {size} == 0 and not ({null})")
        self.string(raw, size, nullable=null is not None)
        return f"{raw}.decode()" if null is None else f"{raw}.decode() if {size} else None"

    def plain_string(self, field: FieldPlan, name: str, null: str | None) -> str:
        size = self.size(field, "h")
        if not name:
            name = self.out.name(field.name) if null is None else self.declared(field)
        start = self.at()
        with self.out.block(f"if {size} >= 0"):
            self.out.add(f"end = {start} + {size}")
            self.out.add(f"{name} = data[{start}:end].decode()")
            self.out.add("pos = end")
        if null is not None:
            with self.out.block(f"elif {null}" if null else "else"):
                self.out.add(f"{name} = None")
                self.settle()
        if null != ALWAYS:
            self.refuse("else")
        self.moved()
        self.checked = False
        return name

    def binary(self, field: FieldPlan, name: str, null: str | None) -> str:
        compact = self.interval.is_compact(field)
        size = self.size(field, "B" if compact else "i")
        self.settle()
        name = name or self.declared(field)
        if compact:
            self.long_size(size)
        with self.out.block(f"if {size} > 0" if compact else f"if {size} >= 0"):
            self.out.add(f"end = pos + {size}" + (" - 1" if compact else ""))
            self.out.add(f"{name} = data[pos:end]")
            self.out.add("pos = end")
        if null is not None:
            with self.out.block(f"elif {null}" if null else "else"):
                self.out.add(f"{name} = None")
        if null != ALWAYS:
            self.refuse("else")
        self.checked = False
        return name

    def long_size(self, size: str) -> None:
        """Read the second and third byte of a compact size inline, since long values are usual; longer sizes
        are not."""
        with self.out.block(f"if {size} > 127"):
            self.out.add(f"{size} += (data[pos] - 1) << 7")
            self.out.add("pos += 1")
            with self.out.block(f"if {size} > 16383"):
                self.out.add(f"{size} += (data[pos] - 1) << 14")
                self.out.add("pos += 1")
                with self.out.block(f"if {size} > 2097151"):
                    self.out.add(f"{size}, pos = {self.helper('long_size')}(data, pos - 2, data[pos - 3])")

    def refuse(self, test: str) -> None:
        with self.out.block(test):
            self.out.add(f"{self.helper('refuse')}()")

    # Arrays.

    def array(self, field: FieldPlan, name: str, null: str | None) -> str:
        compact = self.interval.is_compact(field)
        size = self.size(field, "B" if compact else "i")
        if compact and null is None and field.type.base in NUMBERS:
            name = name or self.declared(field)
            self.compact_numbers(name, size, STRUCT_CODES[field.type.base])
            return name
        self.settle()
        name = name or self.declared(field)
        if null is None:
            self.array_body(field, name, size, compact=compact)
            return name
        is_null = f"{size} == 0" if compact else f"{size} < 0"
        with self.out.block(f"if {is_null}" + (f" and {null}" if null else "")):
            self.out.add(f"{name} = None")
        with self.out.block("else"):
            self.array_body(field, name, size, compact=compact)
        return name

    def array_body(self, field: FieldPlan, name: str, size: str, *, compact: bool) -> None:
        if field.type.is_struct:
            self.struct_array(field, name, size, compact=compact)
            return
        prefix = "read_compact_" if compact else "read_"
        if field.type.base == "uuid":
            one = f"{self.helper('UUIDS')}[data[pos:pos + 16]],"
            read = f"{self.helper(prefix + 'uuids')}(data, pos, {size})"
            self.some(name, size, read, compact=compact, one=one)
        elif field.type.base in ("string", "bytes"):
            strings = "strings" if field.type.base == "string" else "byte_strings"
            self.some(name, size, f"{self.helper(prefix + strings)}(data, pos, {size})", compact=compact)
            self.checked = False
        elif compact:
            self.compact_numbers(name, size, STRUCT_CODES[field.type.base])
        else:
            code = STRUCT_CODES[field.type.base]
            self.out.add(f'{name}, pos = {self.helper("read_numbers")}(data, pos, {size}, "{code}")')

    def some(self, name: str, size: str, read: str, *, compact: bool, one: str = "") -> None:
        """Call ``read`` only if the array is not empty, which is much faster; ``one`` is an element of 16."""
        with self.out.block(f"if {size} == {int(compact)}"):
            self.out.add(f"{name} = ()")
        if one:
            with self.out.block(f"elif {size} == {1 + compact}"):
                self.out.add(f"{name} = {one}")
                self.out.add("pos += 16")
        with self.out.block("else"):
            self.out.add(f"{name}, pos = {read}")

    def compact_numbers(self, name: str, size: str, code: str) -> None:
        width = CODE_SIZES[code]
        start = self.at()
        # Empty arrays are common, and this is the cheapest way to read them.
        with self.out.block(f"if {size} == 1"):
            self.out.add(f"{name} = ()")
            if self.offset or not self.base:
                self.advance("")
        with self.out.block(f"elif 0 < {size} < {self.helper('SHORT')}"):
            self.out.add(f"{name} = {self.module.array_reader(code)}[{size}](data, {start})")
            self.advance(size if width == 1 else f"{width} * {size}", -width)
        with self.out.block("else"):
            self.out.add(f'{name}, pos = {self.helper("long_array")}(data, {start}, {size}, "{code}")')
        self.moved()

    def struct_array(self, field: FieldPlan, name: str, size: str, *, compact: bool) -> None:
        self.out.add(f"{name} = []")
        struct = self.plan.struct(field.type.struct)
        if not compact:
            with self.out.block(f"for _ in range({self.helper('check_count')}(data, pos, {size}))"):
                self.element(struct, name)
            return
        with self.out.block(f"if {size} != 1"):
            with self.out.block(f"if not 0 < {size} < 128"):
                self.out.add(f"{size}, pos = {self.helper('long_count')}(data, pos, {size})")
            self.rows(struct, name, size)
            with self.out.block(f"while {size} > 1"):
                self.out.add(f"{size} -= 1")
                self.element(struct, name)

    def element(self, struct: StructPlan, name: str) -> None:
        value = self.structure(struct)
        self.settle()
        self.out.add(f"{name}.append({value})")

    def rows(self, struct: StructPlan, name: str, size: str) -> None:
        """Read all elements at once if they have one shape."""
        layout = row_layout(struct, self.interval)
        if layout is None:
            return
        with self.out.block(f"if {size} > {FEW_ROWS}"):
            self.out.add(f"columns, {size}, pos = {self.module.row_reader(layout.codes)}(data, pos, {size})")
            self.out.add(f"{name} = {self.made_of_columns(struct, layout)}")

    def made_of_columns(self, struct: StructPlan, layout: RowLayout) -> str:
        """Return the structs as a list, from an iterable for each field on the wire."""
        if layout.straight:
            return f"list(map({struct.name}, *columns))"
        on_wire = {field.name for field in layout.fields}
        values = [
            self.made(field, field.name) if field.name in on_wire else self.default(field)
            for field in struct.fields
        ]
        names = ", ".join(field.name for field in layout.fields) + "," * (len(on_wire) == 1)
        return f"[{struct.name}({', '.join(values)}) for {names} in zip(*columns)]"

    # Single structs.

    def struct_field(self, field: FieldPlan, name: str, null: str | None, *, tagged: bool) -> str:
        struct = self.plan.struct(field.type.struct)
        if null is None:
            return self.structure(struct)
        size = self.size(field, "B")
        self.settle()
        name = name or self.declared(field)
        if tagged:
            # Null is 0 here. A byte above 127 may be a negative number, which the careful codec handles.
            self.refuse(f"if {size} > 127")
        with self.out.block(f"if {size} == 0" if tagged else f"if {size} > 127"):
            self.out.add(f"{name} = None")
        checked = self.checked
        with self.out.block("else"):
            value = self.structure(struct)
            self.settle()
            self.out.add(f"{name} = {value}")
        self.checked = self.checked and checked
        return name

    # Tags.

    def tag_section(self, struct: StructPlan, values: dict[str, str]) -> str:
        """Read the tag section, known fields into ``values``, and return the name of the unknown ones."""
        tags = self.out.name("tags")
        self.fixed("B", tags)
        self.close_run()
        unknown = self.out.name("unknown")
        known = sorted((field for field in struct.fields if field.tag >= 0), key=lambda field: field.tag)
        if not known:
            self.only_unknown_tags(tags, unknown, last=struct.name == self.plan.message.name)
            return unknown
        self.settle()
        names = {}
        for field in known:
            if not self.interval.tagged(field).empty:
                names[field.name] = self.declared(field)
                self.out.add(f"{names[field.name]} = {values[field.name]}")
        self.out.add(f"{unknown}: UnknownTags = ()")
        checked = self.checked
        with self.out.block(f"if {tags}"):
            self.known_tags(known, names, tags)
            with self.out.block(f"if {tags}"):
                read = f"{self.helper('read_unknown_tags')}(data, pos, {tags}, {len(known)})"
                self.out.add(f"{unknown}, pos = {read}")
        self.checked = self.checked and checked
        values |= names
        return unknown

    def only_unknown_tags(self, tags: str, unknown: str, *, last: bool) -> None:
        read = self.helper("read_unknown_tags")
        if not self.base and not last:
            self.settle()
        self.out.add(f"{unknown}: UnknownTags = ()")
        with self.out.block(f"if {tags}"):
            if not self.base:
                self.out.add(f"{unknown} = {read}(data, {self.at()}, {tags})[0]")
                return
            self.out.add(f"{unknown}, pos = {read}(data, {self.at()}, {tags})")
            if self.offset:
                # The following offsets count from where pos would have been.
                self.out.add(f"pos -= {self.offset}")

    def known_tags(self, known: list[FieldPlan], names: dict[str, str], tags: str) -> None:
        """Read known fields in ascending order. The careful decoder reads any other order, and more than 127
        fields.

        It also reads tags of two bytes, whose first byte may equal another tag.
        """
        self.refuse(f"if {tags} > 127")
        others = ""
        checked = self.checked
        for field in known:
            versions = self.interval.tagged(field)
            if versions.empty or field.tag > 127:
                continue
            condition = self.interval.condition(versions)
            tests = [part for part in (condition, others, f"data[pos] == {field.tag}") if part]
            with self.out.block(f"if {' and '.join(tests)}"), self.within(versions):
                # The size of a known field is redundant; Java ignores it too.
                with self.out.block("if data[pos + 1] > 127"):
                    self.out.add(f"pos = {self.helper('skip_long_size')}(data, pos)")
                self.offset = 2
                self.assign([field], names, tagged=True)
                self.out.add(f"{tags} -= 1")
            # Any of the fields may be missing, so reading a later one doesn't check an earlier one's end.
            checked = checked and self.checked
            others = tags
        self.checked = checked
