"""The decoder of one message: straight lines, a branch only where versions differ in what is present.

Neighbouring fields of fixed size are read by one prebuilt ``unpack_from``, together with the first byte of a
size that follows. Anything unusual becomes a Fault, and the careful decoder takes over.

Inside a function the position is ``pos`` plus an offset that is known here, so that most reads need no
arithmetic. No read moves backwards, and slices don't raise: it is enough that the last read of all does, or
is checked.
"""

from __future__ import annotations

from codegen.code import Function, Module
from codegen.layout import ALWAYS, CODE_SIZES, STRUCT_CODES, Interval, intervals, mandatory_runs
from codegen.plan import FieldPlan, MessagePlan, StructPlan

RESERVED = (
    "cls",
    "data",
    "version",
    "pos",
    "end",
    "size",
    "tag",
    "tags",
    "start",
    "struct",
    "msgspec",
    "as_uuid",
)


def emit_decode(plan: MessagePlan, module: Module, *, whole: bool) -> list[str]:
    """``decode_from``, or ``decode`` with a body of its own where ``whole``."""
    function = Function(module, RESERVED)
    name = plan.message.name
    if whole:
        signature = f"def decode(cls, data: bytes, version: int) -> {name}"
        fallback = "return decode_message_carefully(cls, data, version, 0)[0]"
    else:
        signature = f"def decode_from(cls, data: bytes, version: int, pos: int) -> tuple[{name}, int]"
        fallback = "return decode_message_carefully(cls, data, version, start)"
    function.add("@classmethod")
    with function.block(signature):
        if not whole:
            function.add("start = pos")
        with function.block("try"):
            for interval in intervals(plan):
                low, high = interval.versions.low, interval.versions.high
                test = f"version == {low}" if low == high else f"{low} <= version <= {high}"
                with function.block(f"if {test}"):
                    _Decoder(plan, function, interval, whole=whole).message()
        with function.block("except DECODE_FAULTS"):
            pass
        function.add(fallback)
    return function.lines


class _Decoder:
    def __init__(self, plan: MessagePlan, function: Function, interval: Interval, *, whole: bool) -> None:
        self.plan = plan
        self.out = function
        self.module = function.module
        self.interval = interval
        self.whole = whole
        self.base = "" if whole else "pos"
        self.offset = 0
        self.run: list[tuple[str, str]] = []
        self.checked = True

    def message(self) -> None:
        value = self.structure(self.plan.struct(self.plan.message.name))
        result = value if self.whole else f"{value}, {self.at()}"
        if self.checked:
            self.out.add(f"return {result}")
        else:
            with self.out.block(f"if {self.at()} <= len(data)"):
                self.out.add(f"return {result}")

    # -- the position

    def at(self) -> str:
        if not self.base:
            return str(self.offset)
        return f"{self.base} + {self.offset}" if self.offset else self.base

    def settle(self) -> None:
        """Make ``pos`` the position."""
        self.close_run()
        if not self.base:
            self.out.add(f"pos = {self.offset}")
        elif self.offset:
            self.out.add(f"pos += {self.offset}")
        self.base, self.offset = "pos", 0

    def moved(self) -> None:
        """``pos`` has been set by code just added."""
        self.base, self.offset = "pos", 0

    # -- runs of fixed size

    def fixed(self, code: str, name: str) -> None:
        self.run.append((code, name))

    def close_run(self) -> None:
        if not self.run:
            return
        codes = "".join(code for code, _ in self.run)
        if codes in ("B", "?"):
            test = " != 0" if codes == "?" else ""
            self.out.add(f"{self.run[0][1]} = data[{self.at()}]{test}")
        elif codes == "16s":
            # A slice does not raise where the data ends.
            self.out.add(f"{self.run[0][1]} = data[{self.at()} : {self.later(16)}]")
            self.checked = False
        else:
            names = ", ".join(name for _, name in self.run)
            comma = "," if len(self.run) == 1 else ""
            self.out.add(f"{names}{comma} = {self.module.reader(codes)}(data, {self.at()})")
            self.checked = True
        if codes in ("B", "?"):
            self.checked = True
        self.offset += sum(CODE_SIZES[code] for code, _ in self.run)
        self.run = []

    def later(self, distance: int) -> str:
        self.offset += distance
        text = self.at()
        self.offset -= distance
        return text

    # -- structs

    def structure(self, struct: StructPlan) -> str:
        """Read the struct; returns the expression that makes it, with the run closed."""
        values: dict[str, str] = {}
        for condition, fields in mandatory_runs(struct, self.interval):
            if condition is None:
                for field in fields:
                    values[field.name] = self.default(field)
            elif condition == ALWAYS:
                for field in fields:
                    values[field.name] = self.value(field, compact=self.interval.is_compact(field))
            else:
                self.conditional(condition, fields, values)
        unknown = self.tag_section(struct, values) if self.interval.flexible else ""
        self.close_run()
        arguments = [values[field.name] for field in struct.fields]
        if unknown:
            arguments.append(unknown)
        return f"{struct.name}({', '.join(arguments)})"

    def conditional(self, condition: str, fields: list[FieldPlan], values: dict[str, str]) -> None:
        self.settle()
        before = self.checked
        names = {field.name: self.declare(field) for field in fields}
        with self.out.block(f"if {condition}"):
            read = {
                field.name: self.value(field, compact=self.interval.is_compact(field)) for field in fields
            }
            self.settle()
            for field in fields:
                self.out.add(f"{names[field.name]} = {read[field.name]}")
        with self.out.block("else"):
            for field in fields:
                self.out.add(f"{names[field.name]} = {self.default(field)}")
        self.checked = self.checked and before
        values |= names

    def declare(self, field: FieldPlan) -> str:
        """A local of the field's type."""
        name = self.out.name(field.name)
        self.out.add(f"{name}: {field.annotation}")
        return name

    def default(self, field: FieldPlan) -> str:
        return f"{field.type.struct}()" if field.default == "struct" else field.default

    # -- values

    def value(self, field: FieldPlan, *, compact: bool, tagged: bool = False) -> str:
        """Read one field; returns the expression for it. Its run may still be open."""
        null = self.null_condition(field, tagged=tagged)
        if field.type.is_array:
            return self.array(field, null, compact=compact)
        if field.type.is_struct:
            return self.struct_field(field, null, tagged=tagged)
        if field.type.fixed_size is not None:
            name = self.out.name(field.name)
            self.fixed(STRUCT_CODES[field.type.base], name)
            if field.type.base != "uuid":
                return name
            return f"{self.module.read_helper('as_uuid')}(Uuid, {name})"
        if field.type.base == "string":
            return self.string(field, null, compact=compact)
        return self.binary(field, null, compact=compact)

    def null_condition(self, field: FieldPlan, *, tagged: bool) -> str | None:
        """When null is allowed: ALWAYS, a test, or None for never."""
        here = self.interval.tagged(field) if tagged else self.interval.mandatory(field)
        nullable = here.intersect(field.nullable)
        if nullable.empty:
            return None
        return ALWAYS if nullable == here else self.interval.condition(nullable)

    def first_size(self, *, compact: bool, fixed_code: str) -> None:
        """Read the size's first byte, or all of a fixed one, into ``size``."""
        self.fixed("B" if compact else fixed_code, "size")
        self.close_run()

    def string(self, field: FieldPlan, null: str | None, *, compact: bool) -> str:
        self.first_size(compact=compact, fixed_code="h")
        name = self.declare(field) if null is not None else self.out.name(field.name)
        start = self.at()
        with self.out.block("if 0 < size < 128" if compact else "if size >= 0"):
            if compact:
                self.offset -= 1
            self.out.add(f"end = {self.at()} + size")
            if compact:
                self.offset += 1
            self.out.add(f"{name} = data[{start}:end].decode()")
            self.out.add("pos = end")
        self.null_branch(name, null, size_is_null="size == 0" if compact else "", start=start)
        if compact:
            with self.out.block("else"):
                self.out.add(f"{name}, pos = {self.module.read_helper('long_string')}(data, {start}, size)")
        elif null is None or null != ALWAYS:
            with self.out.block("else"):
                self.out.add(f"{self.module.read_helper('refuse')}()")
        self.moved()
        self.checked = False
        return name

    def null_branch(self, name: str, null: str | None, *, size_is_null: str, start: str) -> None:
        """``elif``: null is allowed, and here it is. Without a test for null this is the last branch."""
        if null is None:
            return
        test = " and ".join(part for part in (size_is_null, null) if part)
        with self.out.block(f"elif {test}" if test else "else"):
            self.out.add(f"{name} = None")
            if start != "pos":
                self.out.add(f"pos = {start}")

    def binary(self, field: FieldPlan, null: str | None, *, compact: bool) -> str:
        self.first_size(compact=compact, fixed_code="i")
        self.settle()
        name = self.declare(field)
        if compact:
            with self.out.block("if size > 127"):
                self.out.add(f"size, pos = {self.module.read_helper('long_size')}(data, pos, size)")
        with self.out.block("if size > 0" if compact else "if size >= 0"):
            self.out.add("end = pos + size - 1" if compact else "end = pos + size")
            self.out.add(f"{name} = data[pos:end]")
            self.out.add("pos = end")
        if null != ALWAYS:
            test = f"elif {null}" if null else "else"
            if null:
                with self.out.block(test):
                    self.out.add(f"{name} = None")
            with self.out.block("else"):
                self.out.add(f"{self.module.read_helper('refuse')}()")
        else:
            with self.out.block("else"):
                self.out.add(f"{name} = None")
        self.moved()
        self.checked = False
        return name

    # -- arrays

    def array(self, field: FieldPlan, null: str | None, *, compact: bool) -> str:
        self.first_size(compact=compact, fixed_code="i")
        self.settle()
        name = self.declare(field)
        if null is None:
            self.array_body(field, name, compact=compact)
        else:
            is_null = "size == 0" if compact else "size < 0"
            with self.out.block(f"if {is_null}" + (f" and {null}" if null else "")):
                self.out.add(f"{name} = None")
            with self.out.block("else"):
                self.array_body(field, name, compact=compact)
        self.moved()
        return name

    def array_body(self, field: FieldPlan, name: str, *, compact: bool) -> None:
        if field.type.is_struct:
            self.struct_array(field, name, compact=compact)
            return
        helper = {"string": "strings", "bytes": "byte_strings", "uuid": "uuids"}.get(field.type.base)
        if helper is not None:
            read = self.module.read_helper(f"read_{'compact_' if compact else ''}{helper}")
            self.out.add(f"{name}, pos = {read}(data, pos, size)")
            self.checked = helper == "uuids"
            return
        code = STRUCT_CODES[field.type.base]
        if not compact:
            read = self.module.read_helper("read_numbers")
            self.out.add(f'{name}, pos = {read}(data, pos, size, "{code}")')
            return
        width = CODE_SIZES[code]
        with self.out.block(f"if 0 < size < {self.module.read_helper('SHORT')}"):
            self.out.add(f"{name} = {self.module.array_reader(code)}[size](data, pos)")
            self.out.add("pos += size - 1" if width == 1 else f"pos += {width} * size - {width}")
        with self.out.block("else"):
            read = self.module.read_helper("long_array")
            self.out.add(f'{name}, pos = {read}(data, pos, size, "{code}")')

    def struct_array(self, field: FieldPlan, name: str, *, compact: bool) -> None:
        if compact:
            with self.out.block("if not 0 < size < 128"):
                self.out.add(f"size, pos = {self.module.read_helper('long_count')}(data, pos, size)")
            loop = "for _ in range(size - 1)"
        else:
            loop = f"for _ in range({self.module.read_helper('check_count')}(data, pos, size))"
        self.out.add(f"{name} = []")
        with self.out.block(loop):
            value = self.structure(self.plan.struct(field.type.struct))
            self.settle()
            self.out.add(f"{name}.append({value})")

    # -- single structs

    def struct_field(self, field: FieldPlan, null: str | None, *, tagged: bool) -> str:
        struct = self.plan.struct(field.type.struct)
        if null is None:
            value = self.structure(struct)
            name = self.out.name(field.name)
            self.out.add(f"{name} = {value}")
            return name
        self.fixed("B", "size")
        self.settle()
        name = self.declare(field)
        # Tagged, 0 is null, and what is above 127 is for the careful codec; untagged, a negative byte is.
        if tagged:
            with self.out.block("if size > 127"):
                self.out.add(f"{self.module.read_helper('refuse')}()")
        is_null = "size == 0" if tagged else "size > 127"
        with self.out.block(f"if {is_null}"):
            if null:
                with self.out.block(f"if not ({null})"):
                    self.out.add(f"{self.module.read_helper('refuse')}()")
            self.out.add(f"{name} = None")
        with self.out.block("else"):
            value = self.structure(struct)
            self.settle()
            self.out.add(f"{name} = {value}")
        self.moved()
        return name

    # -- tags

    def tag_section(self, struct: StructPlan, values: dict[str, str]) -> str:
        """Read the tag section, known fields into ``values``; returns the name of the unknown ones."""
        self.fixed("B", "tags")
        self.close_run()
        unknown = self.out.name("unknown")
        known = [field for field in struct.fields if field.tag >= 0]
        if known:
            self.settle()
            names = {}
            for field in known:
                if not self.interval.tagged(field).empty:
                    names[field.name] = self.declare(field)
                    self.out.add(f"{names[field.name]} = {values[field.name]}")
            self.out.add(f"{unknown}: UnknownTags = ()")
            with self.out.block("if tags"):
                self.tag_loop(known, names, unknown)
            values |= names
        else:
            self.only_unknown_tags(unknown, last=struct.name == self.plan.message.name)
        self.checked = True
        return unknown

    def only_unknown_tags(self, unknown: str, *, last: bool) -> None:
        read = self.module.read_helper("read_unknown_tags")
        if not self.base and not last:
            self.settle()
        self.out.add(f"{unknown}: UnknownTags = ()")
        with self.out.block("if tags"):
            if not self.base:
                self.out.add(f"{unknown} = {read}(data, {self.at()}, tags)[0]")
                return
            self.out.add(f"{unknown}, pos = {read}(data, {self.at()}, tags)")
            if self.offset:
                # What follows counts from where pos would have been.
                self.out.add(f"pos -= {self.offset}")

    def tag_loop(self, known: list[FieldPlan], names: dict[str, str], unknown: str) -> None:
        others = self.out.name("others")
        with self.out.block("if tags > 127"):
            self.out.add(f"tags, pos = {self.module.read_helper('check_tag_count')}(data, pos, tags)")
        self.out.add(f"{others}: list[tuple[int, bytes]] = []")
        with self.out.block("for _ in range(tags)"):
            for part in ("tag", "size"):
                self.out.add(f"{part} = data[pos]")
                self.out.add("pos += 1")
                with self.out.block(f"if {part} > 127"):
                    self.out.add(f"{part}, pos = {self.module.read_helper('long_uvarint')}(data, pos)")
            word = "if"
            for field in known:
                condition = self.interval.condition(self.interval.tagged(field))
                if condition is not None:
                    test = f"tag == {field.tag}" + (f" and {condition}" if condition else "")
                    with self.out.block(f"{word} {test}"):
                        self.moved()
                        value = self.value(field, compact=True, tagged=True)
                        self.settle()
                        self.out.add(f"{names[field.name]} = {value}")
                    word = "elif"
            # A known tag has no place at the other versions.
            with self.out.block(f"{word} tag < {len(known)}"):
                self.out.add(f"{self.module.read_helper('refuse')}()")
            with self.out.block("else"):
                self.out.add("end = pos + size")
                self.out.add(f"{others}.append((tag, data[pos:end]))")
                self.out.add("pos = end")
        self.out.add(f"{unknown} = tuple({others})")
        with self.out.block("if pos > len(data)"):
            self.out.add(f"{self.module.read_helper('refuse')}()")
        self.moved()
