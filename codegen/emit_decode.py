"""The decoder of one message: straight lines, a branch only where versions differ in what is present.

Neighbouring fields of fixed size are read by one prebuilt ``unpack_from``, together with the first byte of a
size that follows. Anything unusual becomes a Fault, and the careful decoder takes over.

Inside a function the position is ``pos`` plus an offset that is known here, so that most reads need no
arithmetic. No read moves backwards, and slices don't raise: it is enough that the last read of all does, or
is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from codegen.code import Function, Module
from codegen.layout import ALWAYS, CODE_SIZES, STRUCT_CODES, Interval, intervals, mandatory_runs
from codegen.model import INTEGER_RANGES
from codegen.plan import FieldPlan, MessagePlan, StructPlan
from codegen.versions import Versions

NUMBERS = (*INTEGER_RANGES, "float64", "bool")
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
    "rounds",
    "struct",
    "msgspec",
)
"""Names of locals and modules that fields must not take. Those of sizes and tags are used up at once."""


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
                with function.block(f"if {interval.test}"):
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
        # The position is this local, or 0 while it is "", plus the offset.
        self.base = "" if whole else "pos"
        self.offset = 0
        # Struct codes and locals that the next unpack_from will fill.
        self.run: list[tuple[str, str]] = []
        # Whether the end of the data would have been noticed up to here.
        self.checked = True

    def message(self) -> None:
        value = self.structure(self.plan.struct(self.plan.message.name))
        result = value if self.whole else f"{value}, {self.at()}"
        if self.checked:
            self.out.add(f"return {result}")
        else:
            with self.out.block(f"if {self.at()} <= len(data)"):
                self.out.add(f"return {result}")

    def helper(self, name: str) -> str:
        return self.module.read_helper(name)

    # The position.

    def at(self, distance: int = 0) -> str:
        """The position, or one so many bytes later, as an expression."""
        offset = self.offset + distance
        if not self.base:
            return str(offset)
        return f"{self.base} + {offset}" if offset else self.base

    def settle(self) -> None:
        """Make ``pos`` itself the position, before control flow parts."""
        self.close_run()
        if not self.base:
            self.out.add(f"pos = {self.offset}")
        elif self.offset:
            self.out.add(f"pos += {self.offset}")
        self.moved()

    def advance(self, distance: str, more: int = 0) -> None:
        """In one of several branches: move ``pos`` by the offset, by ``distance`` and by ``more``."""
        constant = self.offset + more
        if not distance:
            distance = str(constant)
        elif constant:
            distance += f" + {constant}" if constant > 0 else f" - {-constant}"
        self.out.add(f"pos {'+=' if self.base else '='} {distance}")

    def moved(self) -> None:
        """Code just added has set ``pos``."""
        self.base, self.offset = "pos", 0

    # Runs of fixed size.

    def fixed(self, code: str, name: str) -> None:
        self.run.append((code, name))

    def close_run(self) -> None:
        if not self.run:
            return
        codes = "".join(code for code, _ in self.run)
        names = [name for _, name in self.run]
        if codes in ("B", "?"):
            self.out.add(f"{names[0]} = data[{self.at()}]" + (" != 0" if codes == "?" else ""))
        else:
            comma = "," if len(names) == 1 else ""
            self.out.add(f"{', '.join(names)}{comma} = {self.module.reader(codes)}(data, {self.at()})")
        self.checked = True
        self.offset += sum(CODE_SIZES[code] for code, _ in self.run)
        self.run = []

    def size(self, code: str) -> None:
        """Read a size, or the first byte of a compact one, into ``size``."""
        self.fixed(code, "size")
        self.close_run()

    # Structs.

    def structure(self, struct: StructPlan) -> str:
        """Read the struct; returns the expression that makes it, with the run closed."""
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
        self.close_run()
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

    def assign(self, fields: list[FieldPlan], names: dict[str, str]) -> None:
        """Read fields into locals that exist, and settle."""
        values = {field.name: self.value(field, names[field.name]) for field in fields}
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
        """A new local with the field's type, for values that come from several branches."""
        name = self.out.name(field.name)
        self.out.add(f"{name}: {field.annotation}")
        return name

    def default(self, field: FieldPlan) -> str:
        return f"{field.type.struct}()" if field.default == "struct" else field.default

    # Values.

    def value(self, field: FieldPlan, name: str = "", *, tagged: bool = False) -> str:
        """Read a field into the local ``name``, or a new one; returns the expression for its value.

        A run may still be open, so that the value is not to be used yet.
        """
        null = self.null_condition(field, tagged=tagged)
        if field.type.is_array:
            return self.array(field, name, null)
        if field.type.is_struct:
            return self.struct_field(field, name, null, tagged=tagged)
        if field.type.fixed_size is not None:
            name = name or self.out.name(field.name)
            self.fixed(STRUCT_CODES[field.type.base], name)
            return f"{self.helper('as_uuid')}(Uuid, {name})" if field.type.base == "uuid" else name
        if field.type.base == "string":
            return self.string(field, name, null)
        return self.binary(field, name, null)

    def null_condition(self, field: FieldPlan, *, tagged: bool) -> str | None:
        """When null is allowed: ALWAYS, a test, or None for never."""
        here = self.interval.tagged(field) if tagged else self.interval.mandatory(field)
        nullable = here.intersect(field.nullable)
        if nullable.empty:
            return None
        return ALWAYS if nullable == here else self.interval.condition(nullable)

    def string(self, field: FieldPlan, name: str, null: str | None) -> str:
        compact = self.interval.is_compact(field)
        self.size("B" if compact else "h")
        if not name:
            name = self.out.name(field.name) if null is None else self.declared(field)
        start = self.at()
        with self.out.block("if 0 < size < 128" if compact else "if size >= 0"):
            self.out.add(f"end = {self.at(-1) if compact else start} + size")
            self.out.add(f"{name} = data[{start}:end].decode()")
            self.out.add("pos = end")
        if null is not None:
            test = " and ".join(part for part in ("size == 0" if compact else "", null) if part)
            with self.out.block(f"elif {test}" if test else "else"):
                self.out.add(f"{name} = None")
                self.settle()
        if compact:
            with self.out.block("else"):
                self.out.add(f"{name}, pos = {self.helper('long_string')}(data, {start}, size)")
        elif null != ALWAYS:
            self.refuse("else")
        self.moved()
        self.checked = False
        return name

    def binary(self, field: FieldPlan, name: str, null: str | None) -> str:
        compact = self.interval.is_compact(field)
        self.size("B" if compact else "i")
        self.settle()
        name = name or self.declared(field)
        if compact:
            with self.out.block("if size > 127"):
                self.out.add(f"size, pos = {self.helper('long_size')}(data, pos, size)")
        with self.out.block("if size > 0" if compact else "if size >= 0"):
            self.out.add("end = pos + size - 1" if compact else "end = pos + size")
            self.out.add(f"{name} = data[pos:end]")
            self.out.add("pos = end")
        if null is not None:
            with self.out.block(f"elif {null}" if null else "else"):
                self.out.add(f"{name} = None")
        if null != ALWAYS:
            self.refuse("else")
        self.checked = False
        return name

    def refuse(self, test: str) -> None:
        with self.out.block(test):
            self.out.add(f"{self.helper('refuse')}()")

    # Arrays.

    def array(self, field: FieldPlan, name: str, null: str | None) -> str:
        compact = self.interval.is_compact(field)
        self.size("B" if compact else "i")
        if compact and null is None and field.type.base in NUMBERS:
            name = name or self.declared(field)
            self.compact_numbers(name, STRUCT_CODES[field.type.base])
            return name
        self.settle()
        name = name or self.declared(field)
        if null is None:
            self.array_body(field, name, compact=compact)
            return name
        is_null = "size == 0" if compact else "size < 0"
        with self.out.block(f"if {is_null}" + (f" and {null}" if null else "")):
            self.out.add(f"{name} = None")
        with self.out.block("else"):
            self.array_body(field, name, compact=compact)
        return name

    def array_body(self, field: FieldPlan, name: str, *, compact: bool) -> None:
        if field.type.is_struct:
            self.struct_array(field, name, compact=compact)
            return
        prefix = "read_compact_" if compact else "read_"
        if field.type.base == "uuid":
            self.some(name, f"{self.helper(prefix + 'uuids')}(data, pos, size)", compact=compact)
        elif field.type.base in ("string", "bytes"):
            strings = "strings" if field.type.base == "string" else "byte_strings"
            self.some(name, f"{self.helper(prefix + strings)}(data, pos, size)", compact=compact)
            self.checked = False
        elif compact:
            self.compact_numbers(name, STRUCT_CODES[field.type.base])
        else:
            code = STRUCT_CODES[field.type.base]
            self.out.add(f'{name}, pos = {self.helper("read_numbers")}(data, pos, size, "{code}")')

    def some(self, name: str, read: str, *, compact: bool) -> None:
        """Call ``read`` where the array is not empty, which costs much less than the call."""
        with self.out.block("if size == 1" if compact else "if size == 0"):
            self.out.add(f"{name} = ()")
        with self.out.block("else"):
            self.out.add(f"{name}, pos = {read}")

    def compact_numbers(self, name: str, code: str) -> None:
        width = CODE_SIZES[code]
        start = self.at()
        # Empty arrays are common, and nothing is cheaper.
        with self.out.block("if size == 1"):
            self.out.add(f"{name} = ()")
            self.advance("")
        with self.out.block(f"elif 0 < size < {self.helper('SHORT')}"):
            self.out.add(f"{name} = {self.module.array_reader(code)}[size](data, {start})")
            self.advance("size" if width == 1 else f"{width} * size", -width)
        with self.out.block("else"):
            self.out.add(f'{name}, pos = {self.helper("long_array")}(data, {start}, size, "{code}")')
        self.moved()

    def struct_array(self, field: FieldPlan, name: str, *, compact: bool) -> None:
        self.out.add(f"{name} = []")
        if not compact:
            self.out.add(f"rounds = range({self.helper('check_count')}(data, pos, size))")
            self.struct_loop(field, name)
            return
        with self.out.block("if size != 1"):
            with self.out.block("if 0 < size < 128"):
                self.out.add(f"rounds = {self.helper('ROUNDS')}[size]")
            with self.out.block("else"):
                self.out.add(f"rounds, pos = {self.helper('long_rounds')}(data, pos, size)")
            self.struct_loop(field, name)

    def struct_loop(self, field: FieldPlan, name: str) -> None:
        with self.out.block("for _ in rounds"):
            value = self.structure(self.plan.struct(field.type.struct))
            self.settle()
            self.out.add(f"{name}.append({value})")

    # Single structs.

    def struct_field(self, field: FieldPlan, name: str, null: str | None, *, tagged: bool) -> str:
        struct = self.plan.struct(field.type.struct)
        if null is None:
            value = self.structure(struct)
            name = name or self.out.name(field.name)
            self.out.add(f"{name} = {value}")
            return name
        self.size("B")
        self.settle()
        name = name or self.declared(field)
        if tagged:
            # Null is 0 here; what is above 127 may be negative, and is for the careful codec.
            self.refuse("if size > 127")
        with self.out.block("if size == 0" if tagged else "if size > 127"):
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
        """Read the tag section, known fields into ``values``; returns the name of the unknown ones."""
        self.fixed("B", "tags")
        self.close_run()
        unknown = self.out.name("unknown")
        known = [field for field in struct.fields if field.tag >= 0]
        if not known:
            self.only_unknown_tags(unknown, last=struct.name == self.plan.message.name)
            return unknown
        self.settle()
        names = {}
        for field in known:
            if not self.interval.tagged(field).empty:
                names[field.name] = self.declared(field)
                self.out.add(f"{names[field.name]} = {values[field.name]}")
        self.out.add(f"{unknown}: UnknownTags = ()")
        checked = self.checked
        with self.out.block("if tags"):
            self.tag_loop(known, names, unknown)
        self.checked = self.checked and checked
        values |= names
        return unknown

    def only_unknown_tags(self, unknown: str, *, last: bool) -> None:
        read = self.helper("read_unknown_tags")
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
            self.out.add(f"tags, pos = {self.helper('check_tag_count')}(data, pos, tags)")
        self.out.add(f"{others}: list[tuple[int, bytes]] | None = None")
        with self.out.block("for _ in range(tags)"):
            self.out.add("tag, size = data[pos], data[pos + 1]")
            self.out.add("pos += 2")
            with self.out.block("if tag > 127 or size > 127"):
                self.out.add(f"tag, size, pos = {self.helper('long_tag')}(data, pos - 2)")
            word = "if"
            for field in known:
                versions = self.interval.tagged(field)
                if versions.empty:
                    continue
                condition = self.interval.condition(versions)
                test = f"tag == {field.tag}" + (f" and {condition}" if condition else "")
                with self.out.block(f"{word} {test}"), self.within(versions):
                    name = names[field.name]
                    value = self.value(field, name, tagged=True)
                    self.settle()
                    if value != name:
                        self.out.add(f"{name} = {value}")
                word = "elif"
            # A known tag has no place at the other versions.
            self.refuse(f"{word} tag < {len(known)}")
            with self.out.block("else"):
                with self.out.block(f"if {others} is None"):
                    self.out.add(f"{others} = []")
                self.out.add("end = pos + size")
                self.out.add(f"{others}.append((tag, data[pos:end]))")
                self.out.add("pos = end")
        with self.out.block(f"if {others}"):
            self.out.add(f"{unknown} = tuple({others})")
        self.checked = False
