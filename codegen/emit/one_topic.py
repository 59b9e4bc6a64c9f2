"""Emit code without loops for KRaft's own requests and responses, which have one topic with one partition.

It is tried first, at the newest versions. For a message with another number of them, or with unknown tagged
fields, the general code follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from codegen.emit.code import Function
from codegen.emit.cursor import width
from codegen.emit.decode import LOOPING, Decoder
from codegen.emit.encode import EMPTY_BYTES, Encoder, joined
from codegen.emit.layout import ALWAYS, Interval, intervals
from codegen.emit.plan import FieldPlan, MessagePlan, StructPlan
from codegen.packages import NO_ELEMENT_ARRAYS, ONE_ELEMENT_ARRAYS, ONE_TOPIC_APIS


def is_about_one_topic(plan: MessagePlan) -> bool:
    """Whether the message is one of KRaft's own, and has no other arrays of structs except in tagged
    fields."""
    name = plan.message.name
    if name.removesuffix("Request").removesuffix("Response") not in ONE_TOPIC_APIS:
        return False
    newest = intervals(plan)[0]
    fields = [field for struct in plan.structs for field in struct.fields]
    arrays = [field for field in fields if field.type.is_struct and field.type.is_array]
    places = {field.name for field in arrays if not newest.mandatory(field).empty}
    return newest.flexible and places <= ONE_ELEMENT_ARRAYS | NO_ELEMENT_ARRAYS


class OneTopicDecoder(Decoder):
    def __init__(self, plan: MessagePlan, function: Function, interval: Interval) -> None:
        super().__init__(plan, function, interval, LOOPING)
        self.inside = ExitStack()
        # False inside blocks that end before the message does.
        self.straight = True
        # Sizes that the next read will fill and that must be those of one element.
        self.ones: list[str] = []
        # Other conditions to test after it.
        self.conditions: list[str] = []

    def message(self) -> None:
        with self.inside:
            super().message()

    def enter(self, condition: str) -> None:
        """Note that the following code is inside a test, up to the end of the message."""
        self.inside.enter_context(self.out.block(f"if {condition}"))

    def close_run(self) -> None:
        if self.text is None:
            self.look_ahead()
        super().close_run()
        conditions = [*(f"{size} == 2" for size in self.ones), *self.conditions]
        self.ones, self.conditions = [], []
        if conditions:
            self.enter(" and ".join(conditions))

    def look_ahead(self) -> None:
        """Check for a message without a topic. It is usual too, and ends before the topic that the next read
        would take."""
        codes = [code for code, _ in self.run]
        for nth, (_, name) in enumerate(self.run):
            if name in self.ones and width(codes[nth + 1 :]) > 1:
                self.enter(f"data[{self.at(width(codes[:nth]))}] == 2")
                self.ones.remove(name)
                self.run[nth] = ("x", "")
                return

    def array(self, field: FieldPlan, name: str, null: str | None) -> str:
        if not (self.straight and field.type.is_struct):
            return super().array(field, name, null)
        size = self.out.name(f"{field.name}_size")
        self.fixed("B", size)
        if field.name in ONE_ELEMENT_ARRAYS:
            self.ones.append(size)
            return f"[{self.structure(self.plan.struct(field.type.struct))}]"
        self.conditions.append(f"{size} < 2" if null == ALWAYS else f"{size} == 1")
        return f"[] if {size} else None" if null == ALWAYS else "[]"

    def tag_section(self, struct: StructPlan, values: dict[str, str]) -> str:
        if not self.straight or any(field.tag >= 0 for field in struct.fields):
            return super().tag_section(struct, values)
        tags = self.out.name("tags")
        self.fixed("B", tags)
        self.conditions.append(f"{tags} == 0")
        return ""

    def known_tags(self, known: list[FieldPlan], names: dict[str, str], tags: str) -> None:
        with self.aside():
            super().known_tags(known, names, tags)

    @contextmanager
    def aside(self) -> Iterator[None]:
        self.straight = False
        yield
        self.straight = True


class OneTopicEncoder(Encoder):
    def __init__(self, plan: MessagePlan, function: Function, interval: Interval) -> None:
        super().__init__(plan, function, interval, whole=True)
        self.inside = ExitStack()
        # Other conditions to test.
        self.conditions: list[str] = []
        # The size and the bytes of the string that the run begins with.
        self.text: tuple[str, str] | None = None

    def message(self) -> None:
        with self.inside:
            self.structure(self.plan.struct(self.plan.message.name), "self")
            self.close_run()
            if self.conditions:
                self.enter(" and ".join(self.conditions))
            if len(self.pieces) != 2:
                self.out.add(f"return {joined(self.pieces)}")
                return
            first, last = self.pieces
            beginning = self.out.name("beginning")
            self.add_all([f"{beginning} = {first}", f"return {beginning} + {last}"])

    def enter(self, condition: str) -> None:
        self.inside.enter_context(self.out.block(f"if {condition}"))

    @property
    def straight(self) -> bool:
        """Whether the code is straight: not while a tagged field is built by itself."""
        return self.target == "out"

    def struct_array(self, field: FieldPlan, source: str, null: str | None, *, compact: bool) -> None:
        if not self.straight:
            super().struct_array(field, source, null, compact=compact)
            return
        values = self.out.name(field.name)
        self.out.add(f"{values} = {source}")
        if field.name in ONE_ELEMENT_ARRAYS:
            self.enter(f"len({values}) == 1")
            item = self.out.name("item")
            self.out.add(f"{item}, = {values}")
            self.fixed("B", "2")
            self.structure(self.plan.struct(field.type.struct), item)
        else:
            self.enter(f"{values} is None or {values} == []" if null == ALWAYS else f"{values} == []")
            self.fixed("B", f"0 if {values} is None else 1" if null == ALWAYS else "1")

    def string_or_binary(self, field: FieldPlan, source: str, null: str | None, *, compact: bool) -> None:
        """Pack a short string together with its size and the fields after it."""
        if not self.straight or field.type.base != "string":
            super().string_or_binary(field, source, null, compact=compact)
            return
        raw, size = self.measured(field, source, null, empty=EMPTY_BYTES, compact=True)
        self.enter(f"{size} < 128")
        self.close_run()
        self.text = size, raw

    def close_run(self) -> None:
        if self.text is None:
            super().close_run()
            return
        (size, raw), codes = self.text, "".join(code for code, _ in self.run)
        self.text = None
        if not codes:
            self.pieces += [f"{self.module.write_helper('SIZES')}[{size}]", raw]
            return
        arguments = [size, raw, *(expression for _, expression in self.run if expression)]
        self.pieces.append(f"{self.module.string_writer(codes)}[{size}]({', '.join(arguments)})")
        self.run = []

    def refuse_short_id(self, field: FieldPlan, source: str, condition: str = ALWAYS) -> None:
        if self.straight and not condition:
            if field.type.base == "uuid":
                self.conditions.append(f"len({source}) == {field.type.fixed_size}")
            return
        super().refuse_short_id(field, source, condition)

    def tag_section(self, struct: StructPlan, source: str) -> None:
        """Pack the byte for an empty tag section with its neighbours."""
        if not self.straight or any(not self.interval.tagged(field).empty for field in struct.fields):
            super().tag_section(struct, source)
            return
        no_tags = self.module.write_helper("NO_UNKNOWN_TAGS")
        self.conditions.append(f"{source}.unknown_tagged_fields is {no_tags}")
        self.fixed("x", "")
