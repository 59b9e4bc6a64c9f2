"""Emit the encoder of one message: pieces of bytes, collected as expressions and appended together.

Neighbouring fields of fixed size become one prebuilt ``pack``, together with a size that follows. Values that
the wire format can't represent raise one of ENCODE_FAULTS, and the careful encoder reports the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from codegen.emit.code import INDENT, Function
from codegen.emit.layout import ALWAYS, WRITE_CODES, Interval, mandatory_runs
from codegen.emit.plan import FieldPlan, MessagePlan, StructPlan
from codegen.schema.versions import Versions

NULL_TAGGED, NULL_UNTAGGED = repr(b"\0"), repr(b"\xff")
"""The bytes of a null struct."""
EMPTY_BYTES = 'b""'
NO_TAGS = 'b"\\0"'
ARRAY_HELPERS = {"string": "strings", "bytes": "byte_strings", "uuid": "uuids"}
"""Types whose arrays a helper writes."""
RESERVED = ("self", "out", "version", "mark", "struct", "msgspec", "len", "type", "bytes")


def joined(pieces: list[str]) -> str:
    """Return Python for the bytes of all pieces; neighbouring literals become one."""
    merged: list[str] = []
    for piece in pieces:
        if merged and piece == NO_TAGS and merged[-1].endswith('\\0"') and merged[-1].startswith('b"'):
            merged[-1] = merged[-1][:-1] + '\\0"'
        else:
            merged.append(piece)
    if len(merged) < 2:
        return merged[0] if merged else EMPTY_BYTES
    return f'b"".join(({", ".join(merged)}))'


class Encoder:
    def __init__(self, plan: MessagePlan, function: Function, interval: Interval, *, whole: bool) -> None:
        self.plan = plan
        self.out = function
        self.module = function.module
        self.interval = interval
        self.whole = whole
        self.target = "out"
        self.run: list[tuple[str, str]] = []
        self.pieces: list[str] = []
        self.made_list = not whole

    def message(self) -> None:
        start = len(self.out.lines)
        self.structure(self.plan.struct(self.plan.message.name), "self")
        self.close_run()
        if not self.whole:
            self.flush()
            self.out.add("return")
            return
        if not self.made_list:
            self.out.add(f"return {joined(self.pieces)}")
            return
        self.flush()
        self.out.add('return b"".join(out)')
        # The list is created at the interval's start, one level inside its test.
        indent = self.out.lines[-1][: -len(self.out.lines[-1].lstrip())]
        self.out.lines.insert(start, f"{indent}out = []")

    # Pieces.

    def fixed(self, code: str, expression: str) -> None:
        self.run.append((code, expression))

    def close_run(self) -> None:
        if self.run:
            self.pieces.append(self.packed(self.run))
            self.run = []

    def packed(self, run: list[tuple[str, str]]) -> str:
        codes = "".join(code for code, _ in run)
        return f"{self.module.writer(codes)}({', '.join(expression for _, expression in run if expression)})"

    def compact_size(self, name: str, long: str) -> None:
        """Add a one-byte size to the run; ``long`` writes a longer one."""
        if not self.run:
            self.pieces.append(
                f"{self.module.write_helper('SIZES')}[{name}] if {name} < 128 else {long}({name})"
            )
            return
        short = self.packed([*self.run, ("B", name)])
        self.pieces.append(f"{short} if {name} < 128 else {self.packed(self.run)} + {long}({name})")
        self.run = []

    def flush(self) -> None:
        """Append the collected pieces, so that control flow may follow."""
        self.close_run()
        if len(self.pieces) == 1:
            self.out.add(f"{self.target}.append({self.pieces[0]})")
        elif self.pieces:
            self.out.add(f"{self.target} += ({', '.join(self.pieces)})")
        if self.pieces and self.target == "out":
            self.made_list = True
        self.pieces = []

    # Structs.

    def structure(self, struct: StructPlan, source: str) -> None:
        for field in struct.fields:
            self.refuse_absent(field, f"{source}.{field.name}")
        for versions, fields in mandatory_runs(struct, self.interval):
            if versions == self.interval.versions:
                for field in fields:
                    self.value(field, f"{source}.{field.name}")
            elif not versions.empty:
                self.conditional(versions, fields, source)
        if self.interval.flexible:
            self.tag_section(struct, source)
        elif struct.can_be_flexible:
            self.refuse(f"if {self.has_unknown(source)}")

    def refuse_absent(self, field: FieldPlan, source: str) -> None:
        """Check that a field that the version lacks, and that isn't ignorable, holds its default."""
        condition = self.interval.absent(field)
        if condition is None or field.ignorable:
            return
        test = self.not_default(field, source)
        self.refuse(f"if {condition} and ({test})" if condition else f"if {test}")

    def not_default(self, field: FieldPlan, source: str) -> str:
        if field.default == "None":
            return f"{source} is not None"
        if field.default == "struct":
            return f"{source} != {self.module.default(field.type.struct)}"
        if field.type.is_array:
            return f"{source} is None or {source}"
        if field.default in ("True", "False"):
            return f"{source} is not {field.default}"
        return f"{source} != {field.default}"

    def conditional(self, versions: Versions, fields: list[FieldPlan], source: str) -> None:
        condition = self.interval.condition(versions)
        if all(field.type.fixed_size is not None for field in fields):
            self.close_run()
            for field in fields:
                self.refuse_short_id(field, f"{source}.{field.name}", condition or ALWAYS)
            run = [(WRITE_CODES[field.type.base], f"{source}.{field.name}") for field in fields]
            self.pieces.append(f'{self.packed(run)} if {condition} else b""')
            return
        self.flush()
        self.made_list = self.made_list or self.target == "out"
        with self.out.block(f"if {condition}"), self.within(versions):
            for field in fields:
                self.value(field, f"{source}.{field.name}")
            self.flush()

    @contextmanager
    def within(self, versions: Versions) -> Iterator[None]:
        """Narrow the interval inside a test of the version."""
        around = self.interval
        self.interval = around.narrowed(versions)
        yield
        self.interval = around

    # Values.

    def value(self, field: FieldPlan, source: str) -> None:
        """Write a field at its place among the others."""
        compact = self.interval.is_compact(field)
        null = self.null_condition(field, self.interval.mandatory(field))
        if null is None and field.can_be_none:
            self.refuse_null(source, null)
        if field.type.is_array:
            self.array(field, source, null, compact=compact)
        elif field.type.is_struct:
            self.struct_field(field, source, null)
        elif field.type.fixed_size is not None:
            self.refuse_short_id(field, source)
            self.fixed(WRITE_CODES[field.type.base], source)
        else:
            self.string_or_binary(field, source, null, compact=compact)

    def tagged_value(self, field: FieldPlan, source: str) -> None:
        """Write a tagged field that is not its default."""
        # Either all tagged versions are nullable or none; and a None that is the default is never written.
        nullable = not self.interval.tagged(field).intersect(field.nullable).empty
        null = ALWAYS if nullable and field.default != "None" else None
        if field.type.is_array:
            self.array(field, source, null, compact=True)
        elif field.type.is_struct:
            if nullable and null is None:
                self.fixed("B", "1")
            self.struct_field(field, source, null, null_marker=NULL_TAGGED)
        elif field.default in ("True", "False"):
            # A value that isn't identical to the default may equal it, and is then not written.
            self.refuse(f"if {source} is not {field.default == 'False'}")
            self.fixed(WRITE_CODES[field.type.base], source)
        elif field.type.fixed_size is not None:
            self.refuse_short_id(field, source)
            self.fixed(WRITE_CODES[field.type.base], source)
        else:
            self.string_or_binary(field, source, null, compact=True)

    def null_condition(self, field: FieldPlan, here: Versions) -> str | None:
        """Return when None is allowed: ALWAYS, a test, or None for never."""
        nullable = here.intersect(field.nullable)
        if nullable.empty:
            return None
        return ALWAYS if nullable == here else self.interval.condition(nullable)

    def measured(
        self, field: FieldPlan, source: str, null: str | None, *, empty: str, compact: bool
    ) -> tuple[str, str]:
        """Return locals for the bytes after a size, and for the size; if None is allowed it becomes
        ``empty``."""
        is_text = field.type.base == "string" and not field.type.is_array
        is_binary = empty == EMPTY_BYTES and not is_text
        value = self.out.name(f"{field.name}_raw" if empty == EMPTY_BYTES else field.name)
        size = self.out.name(f"{field.name}_size")
        taken = [
            f"{value} = {source}.encode()" if is_text else f"{value} = {source}",
            *(self.as_bytes(value) if is_binary else ()),
            f"{size} = len({value}) + 1" if compact else f"{size} = len({value})",
        ]
        if null is None:
            self.add_all(taken)
            return value, size
        with self.out.block(f"if {source} is not None"):
            self.add_all(taken)
        if null:
            self.refuse(f"elif not ({null})")
        with self.out.block("else"):
            self.out.add(f"{value}, {size} = {empty}, {0 if compact else -1}")
        return value, size

    def add_all(self, lines: list[str]) -> None:
        for line in lines:
            self.out.add(line)

    def refuse(self, test: str) -> None:
        with self.out.block(test):
            self.out.add(f"{self.module.read_helper('refuse')}()")

    def refuse_short_id(self, field: FieldPlan, source: str, condition: str = ALWAYS) -> None:
        """Check an id's length, because struct pads or truncates an id of another length."""
        if field.type.base == "uuid":
            self.refuse(
                f"if {condition + ' and ' if condition else ''}len({source}) != {field.type.fixed_size}"
            )

    def as_bytes(self, name: str) -> list[str]:
        """Convert to bytes now; other types would be noticed only when all pieces are joined."""
        made = self.module.write_helper("bytes_of")
        return [f"if type({name}) is not bytes:", f"{INDENT}{name} = {made}({name})"]

    def refuse_null(self, source: str, null: str | None) -> None:
        self.refuse(f"if {source} is None" + (f" and not ({null})" if null else ""))

    def string_or_binary(self, field: FieldPlan, source: str, null: str | None, *, compact: bool) -> None:
        raw, size = self.measured(field, source, null, empty=EMPTY_BYTES, compact=compact)
        is_string = field.type.base == "string"
        if not compact:
            self.fixed("h" if is_string else "i", size)
        elif is_string:
            self.compact_size(size, self.module.write_helper("string_size"))
        else:
            self.long_size(size, is_records=field.type.base == "records")
        self.close_run()
        self.pieces.append(raw)

    def long_size(self, name: str, *, is_records: bool) -> None:
        """Write a size that usually takes more than a byte, so the run is faster by itself; for records,
        three bytes."""
        self.close_run()
        uvarint = self.module.write_helper("uvarint")
        if not is_records:
            self.compact_size(name, uvarint)
            return
        write = self.module.writer("BBB")
        three_bytes = f"{write}({name} & 127 | 128, {name} >> 7 & 127 | 128, {name} >> 14)"
        self.pieces.append(f"{three_bytes} if 16383 < {name} < 2097152 else {uvarint}({name})")

    # Arrays.

    def array(self, field: FieldPlan, source: str, null: str | None, *, compact: bool) -> None:
        if field.type.is_struct:
            self.struct_array(field, source, null, compact=compact)
        elif compact:
            self.compact_array(field, source, null)
        else:
            self.fixed_array(field, source, null)

    def compact_array(self, field: FieldPlan, source: str, null: str | None) -> None:
        self.close_run()
        if field.type.base in ARRAY_HELPERS:
            if null:
                self.refuse_null(source, null)
            write = self.module.write_helper(f"write_compact_{ARRAY_HELPERS[field.type.base]}")
            piece = f"{write}({source})"
            self.pieces.append(piece if null is None else f'b"\\0" if {source} is None else {piece}')
            return
        code = WRITE_CODES[field.type.base]
        values, size = self.measured(field, source, null, empty="()", compact=True)
        short = f"{self.module.array_writer(code)}[{size}]({size}, *{values})"
        long = f'{self.module.write_helper("write_long_array")}({values}, "{code}")'
        self.pieces.append(f"{short} if {size} < {self.module.read_helper('SHORT')} else {long}")

    def fixed_array(self, field: FieldPlan, source: str, null: str | None) -> None:
        self.close_run()
        if null:
            self.refuse_null(source, null)
        base = field.type.base
        if base in ARRAY_HELPERS:
            piece = f"{self.module.write_helper(f'write_{ARRAY_HELPERS[base]}')}({source})"
        else:
            piece = f'{self.module.write_helper("write_numbers")}({source}, "{WRITE_CODES[base]}")'
        if null is not None:
            piece = f"{self.module.write_helper('NULL_COUNT')} if {source} is None else {piece}"
        self.pieces.append(piece)

    def struct_array(self, field: FieldPlan, source: str, null: str | None, *, compact: bool) -> None:
        values, size = self.measured(field, source, null, empty="[]", compact=compact)
        if compact:
            self.compact_size(size, self.module.write_helper("uvarint"))
        else:
            self.fixed("i", size)
        self.flush()
        self.made_list = self.made_list or self.target == "out"
        item = self.out.name("item")
        with self.out.block(f"for {item} in {values}"):
            self.structure(self.plan.struct(field.type.struct), item)
            self.flush()

    # Single structs.

    def struct_field(
        self, field: FieldPlan, source: str, null: str | None, *, null_marker: str = NULL_UNTAGGED
    ) -> None:
        struct = self.plan.struct(field.type.struct)
        member = self.out.name(field.name)
        self.out.add(f"{member} = {source}")
        if null is None:
            self.structure(struct, member)
            return
        self.flush()
        self.made_list = self.made_list or self.target == "out"
        with self.out.block(f"if {member} is None"):
            self.out.add(f"{self.target}.append({null_marker})")
        with self.out.block("else"):
            self.fixed("B", "1")
            self.structure(struct, member)
            self.flush()

    # Tags.

    def tag_section(self, struct: StructPlan, source: str) -> None:
        self.close_run()
        known = [field for field in struct.fields if not self.interval.tagged(field).empty]
        known.sort(key=lambda field: field.tag)
        if known:
            self.pieces.append(self.known_tags(struct, known, source))
        else:
            self.unknown_tags(source)

    def unknown_tags(self, source: str) -> None:
        """Write the tag section of a struct without tagged fields of its own."""
        write = f"{self.module.write_helper('write_tags')}((), {source}.unknown_tagged_fields)"
        self.pieces.append(f"{write} if {self.has_unknown(source)} else {NO_TAGS}")

    def has_unknown(self, source: str) -> str:
        """Return Python for "there may be unknown tagged fields": also true for wrong values, which are
        noticed later."""
        return f"{source}.unknown_tagged_fields is not {self.module.write_helper('NO_UNKNOWN_TAGS')}"

    def known_tags(self, struct: StructPlan, known: list[FieldPlan], source: str) -> str:
        """Build a tag section and return the local that holds its bytes."""
        section, found = self.out.name("section"), self.out.name("known")
        highest = max(field.tag for field in struct.fields)
        tests = {field.name: self.is_tagged(field, f"{source}.{field.name}") for field in known}
        self.out.add(f"{section} = {NO_TAGS}")
        with self.out.block(f"if {' or '.join((self.has_unknown(source), *tests.values()))}"):
            self.out.add(f"{found}: list[tuple[int, bytes]] = []")
            for field in known:
                with (
                    self.out.block(f"if {tests[field.name]}"),
                    self.within(self.interval.tagged(field)),
                ):
                    payload = self.payload(field, f"{source}.{field.name}")
                    self.out.add(f"{found}.append(({field.tag}, {payload}))")
            write = self.module.write_helper("write_tags")
            self.out.add(f"{section} = {write}({found}, {source}.unknown_tagged_fields, {highest})")
        return section

    def is_tagged(self, field: FieldPlan, source: str) -> str:
        """Return Python for "the tagged field must be written"."""
        condition = self.interval.condition(self.interval.tagged(field))
        test = self.not_default(field, source)
        return f"{condition} and ({test})" if condition else test

    def payload(self, field: FieldPlan, source: str) -> str:
        """Encode a tagged field by itself and return the expression for its bytes."""
        around = self.run, self.pieces, self.target
        self.run, self.pieces, self.target = [], [], self.out.name(f"{field.name}_payload")
        start = len(self.out.lines)
        self.tagged_value(field, source)
        self.close_run()
        name, pieces = self.target, self.pieces
        used_list = any(f"{name}." in line or f"{name} +=" in line for line in self.out.lines[start:])
        if used_list:
            self.flush()
            indent = self.out.lines[start][: -len(self.out.lines[start].lstrip())]
            self.out.lines.insert(start, f"{indent}{name}: list[bytes] = []")
            result = f'b"".join({name})'
        else:
            result = joined(pieces)
        self.run, self.pieces, self.target = around
        return result
