"""Emit the methods of a message's class: signatures, a branch per interval of versions, the careful codec."""

from __future__ import annotations

from codegen.emit.code import Function, Module
from codegen.emit.decode import FROM, LOOPING, WHOLE, Decoder, return_message
from codegen.emit.decode import RESERVED as RESERVED_FOR_DECODE
from codegen.emit.encode import RESERVED as RESERVED_FOR_ENCODE
from codegen.emit.encode import Encoder
from codegen.emit.layout import has_loop, intervals
from codegen.emit.one_topic import OneTopicDecoder, OneTopicEncoder, is_about_one_topic
from codegen.emit.plan import MessagePlan


def emit_methods(plan: MessagePlan, module: Module) -> list[list[str]]:
    """Return the lines of each method, or of a group of them."""
    if plan.message.versions.empty:
        return []
    # A call is costly for small messages only: their methods get own bodies instead of calling each other.
    if not has_loop(plan):
        return [_decode(plan, module, WHOLE), _decode(plan, module, FROM), _encode_whole(plan, module)]
    groups = [_decode(plan, module, LOOPING), _decode_from_decode(plan, module)]
    if is_about_one_topic(plan):
        groups.append(_encode_one_topic(plan, module))
    return [*groups, _encode_into(plan, module)]


def _decode(plan: MessagePlan, module: Module, kind: str) -> list[str]:
    """Return one method that decodes every version."""
    function = Function(module, RESERVED_FOR_DECODE)
    one_topic = kind == LOOPING and is_about_one_topic(plan)
    function.add("@staticmethod")
    with function.block(_signature(plan.message.name, kind)):
        if kind == FROM:
            _refuse_negative(function)
        if kind != WHOLE:
            function.add("start = pos")
        with function.block("try"):
            for nth, interval in enumerate(intervals(plan)):
                with function.block(f"if {interval.test}"):
                    if one_topic and nth == 0:
                        OneTopicDecoder(plan, function, interval).message()
                        function.add("pos = start")
                    Decoder(plan, function, interval, kind).message()
        with function.block("except DECODE_FAULTS"):
            pass
        _decode_carefully(function, plan.message.name, kind)
    return function.lines


def _signature(name: str, kind: str) -> str:
    if kind == WHOLE:
        return f"def decode(data: bytes, version: int) -> {name}"
    if kind == FROM:
        return f"def decode_from(data: bytes, version: int, pos: int) -> tuple[{name}, int]"
    positions = "pos: int = 0, ends: list[int] | None = None"
    return f"def decode(data: bytes, version: int, {positions}) -> {name}"


def _decode_carefully(function: Function, name: str, kind: str) -> None:
    carefully = f"decode_message_carefully({name}, data, version, {0 if kind == WHOLE else 'start'})"
    if kind == LOOPING:
        function.add(f"message, pos = {carefully}")
        return_message(function, "pos")
    else:
        function.add(f"return {carefully}" + "[0]" * (kind == WHOLE))


def _decode_from_decode(plan: MessagePlan, module: Module) -> list[str]:
    function = Function(module, RESERVED_FOR_DECODE)
    function.add("@staticmethod")
    with function.block(_signature(plan.message.name, FROM)):
        _refuse_negative(function)
        function.add("ends: list[int] = []")
        function.add(f"return {plan.message.name}.decode(data, version, pos, ends), ends[0]")
    return function.lines


def _refuse_negative(function: Function) -> None:
    with function.block("if pos < 0"):
        function.add("refuse_position(pos)")


def _encode_into(plan: MessagePlan, module: Module) -> list[str]:
    function = Function(module, RESERVED_FOR_ENCODE)
    with function.block("def encode_into(self, out: list[bytes], version: int) -> None"):
        function.add("mark = len(out)")
        _encoders(plan, function, whole=False)
        function.add("del out[mark:]")
        function.add("encode_message_carefully(self, out, version)")
    return function.lines


def _encode_whole(plan: MessagePlan, module: Module) -> list[str]:
    function = Function(module, RESERVED_FOR_ENCODE)
    with function.block("def encode(self, version: int) -> bytes"):
        function.add("out: list[bytes]")
        _encoders(plan, function, whole=True)
        function.add("out = []")
        function.add("encode_message_carefully(self, out, version)")
        function.add('return b"".join(out)')
    function.add("")
    with function.block("def encode_into(self, out: list[bytes], version: int) -> None"):
        function.add("out.append(self.encode(version))")
    return function.lines


def _encoders(plan: MessagePlan, function: Function, *, whole: bool) -> None:
    with function.block("try"):
        for interval in intervals(plan):
            with function.block(f"if {interval.test}"):
                Encoder(plan, function, interval, whole=whole).message()
    with function.block("except ENCODE_FAULTS"):
        pass


def _encode_one_topic(plan: MessagePlan, module: Module) -> list[str]:
    function = Function(module, RESERVED_FOR_ENCODE)
    newest = intervals(plan)[0]
    with function.block("def encode(self, version: int) -> bytes"):
        with function.block("try"), function.block(f"if {newest.test}"):
            OneTopicEncoder(plan, function, newest).message()
        with function.block("except ENCODE_FAULTS"):
            pass
        function.add("out: list[bytes] = []")
        function.add("self.encode_into(out, version)")
        function.add('return b"".join(out)')
    return function.lines
