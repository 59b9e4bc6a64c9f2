"""The generated codec agrees with a second implementation of the same schemas (second_reading.py), on random
messages."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from construct import ConstructError

from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message, decode_message_carefully
from kraft_wire.protocol.schema import Structure
from tests.protocol.second_reading import UNKNOWN, Reading, base, is_struct, load
from tests.support.both_codecs import read, written
from tests.support.random_messages import messages_of, random_message
from tests.support.schema_samples import everything, generated, oddities

SCHEMAS = Path(__file__).parents[2] / "schemas"
FOLDERS = {
    "kraft_wire.protocol.messages": SCHEMAS / "kafka" / "4.4.0",
    "kraft_wire.raft.membership.kip_853": SCHEMAS / "kip-853",
}
# All samples except the one with numbers that don't equal themselves.
SAMPLES = {
    getattr(generated(node), node["name"]): node
    for node in (everything(), *oddities())
    if node["name"] != "Floats"
}
MESSAGES = [*SAMPLES, *(each for package in FOLDERS for each in messages_of(package))]
OURS, THEIRS, DAMAGED = 3, 4, 8
"""The number of cases of each kind for every message and version."""
INTEGERS = {
    kind: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for kind, bits in (("int8", 8), ("int16", 16), ("int32", 32), ("int64", 64))
} | {"uint16": (0, 2**16 - 1), "uint32": (0, 2**32 - 1)}
TEXT = "aZ0._- äß€\N{GRINNING FACE}\N{REPLACEMENT CHARACTER}\0\x7f\u0080\u07ff\u0800\uffff\U0010ffff"


@cache
def reading(cls: type[Message], version: int) -> Reading:
    if cls in SAMPLES:
        return Reading(SAMPLES[cls], version)
    return Reading(load(FOLDERS[package_of(cls)] / f"{cls.NAME}.json"), version)


def package_of(cls: type[Message]) -> str:
    return cls.__module__.rpartition(".")[0]


def versions(cls: type[Message]) -> range:
    return range(cls.MIN_VERSION, cls.MAX_VERSION + 1)


def named(cls: type[Message]) -> str:
    return f"{package_of(cls).rpartition('.')[2]} {cls.NAME}"


def agree(theirs: Any, ours: Any) -> bool:
    """Whether both readings hold the same value; fields that theirs lacks must have the default in ours."""
    if isinstance(ours, Structure):
        return isinstance(theirs, dict) and structs_agree(theirs, ours)
    if isinstance(ours, list | tuple):
        return (
            isinstance(theirs, list)
            and len(theirs) == len(ours)
            and all(agree(*pair) for pair in zip(theirs, ours, strict=True))
        )
    value = bytes(ours) if isinstance(ours, bytes) else ours
    return type(theirs) is type(value) and theirs == value


def structs_agree(theirs: dict[str, Any], ours: Structure) -> bool:
    # Names are compared without case and underscores.
    values = {name.replace("_", ""): getattr(ours, name) for name in ours.__struct_fields__}
    untouched = {name.replace("_", ""): getattr(type(ours)(), name) for name in ours.__struct_fields__}
    unknown = list(values.pop("unknowntaggedfields", ()))
    fields = {name.lower(): value for name, value in theirs.items() if name != UNKNOWN}
    return (
        unknown == theirs.get(UNKNOWN, [])
        and fields.keys() <= values.keys()
        and all(
            agree(fields[name], value) if name in fields else value == untouched[name]
            for name, value in values.items()
        )
    )


# --- random messages from the schema alone


class Maker:
    """Makes values for one reading, extreme ones among them."""

    def __init__(self, random: Random, reading: Reading) -> None:
        self.random, self.reading = random, reading

    def struct(self, fields: list[dict[str, Any]], depth: int = 0) -> dict[str, Any]:
        values = {}
        for field in self.reading.present(fields):
            untouched = self.reading.is_tagged(field) and self.random.random() < 0.4
            values[field["name"]] = self.reading.default(field) if untouched else self.field(field, depth)
        if self.reading.flexible:
            first = max((field.get("tag", -1) for field in fields), default=-1) + 1
            values[UNKNOWN] = self.unknown(first) if self.random.random() < 0.2 else []
        return values

    def unknown(self, first: int) -> list[tuple[int, bytes]]:
        steps = self.random.sample((0, 1, 5, 127, 128, 20_000, 2**31 - 100), self.random.randrange(1, 4))
        return [
            (first + step, self.random.randbytes(self.random.choice((0, 3, 128)))) for step in sorted(steps)
        ]

    def field(self, field: dict[str, Any], depth: int) -> Any:
        if self.reading.is_nullable(field) and self.random.random() < 0.2:
            return None
        if not field["type"].startswith("[]"):
            return self.element(field, depth)
        counts = (0, 1, 2) if is_struct(field) else (0, 1, 2, 3, 17, 18, 127, 128)
        return [self.element(field, depth + 1) for _ in range(self.random.choice(counts))]

    def element(self, field: dict[str, Any], depth: int) -> Any:
        random, kind = self.random, base(field)
        if is_struct(field):
            return self.struct(self.reading.inside(field), depth + 1)
        if kind in INTEGERS:
            low, high = INTEGERS[kind]
            return random.choice((low, high, 0, 1, -1 if low else 2, random.randint(low, high)))
        if kind == "bool":
            return random.random() < 0.5
        if kind == "float64":
            return random.choice((0.0, 1e308, -5e-324, float("inf"), random.uniform(-1e9, 1e9)))
        if kind == "uuid":
            return random.choice((bytes(16), b"\xff" * 16, random.randbytes(16)))
        length = random.choice((0, 1, 7, 20) if random.random() < 0.9 or depth > 1 else (126, 127, 128, 5000))
        if kind == "string":
            return "".join(random.choices(TEXT, k=length))
        return random.randbytes(length)


# --- the tests


@pytest.mark.parametrize("cls", MESSAGES, ids=named)
def test_the_second_reading_reads_what_we_write(cls: type[Message]) -> None:
    for version in versions(cls):
        second, random = reading(cls, version), Random(f"ours {cls.NAME} {version}")
        messages = [random_message(random, cls, version) for _ in range(OURS)]
        if cls not in SAMPLES:  # Some samples can't be written with their defaults.
            messages.append(cls())
        for message in messages:
            raw = written(message, version)
            theirs, length = second.decode(raw)
            assert length == len(raw)
            assert agree(theirs, message), (theirs, message)
            assert second.encode(theirs) == raw


@pytest.mark.parametrize("cls", MESSAGES, ids=named)
def test_we_read_what_the_second_reading_writes(cls: type[Message]) -> None:
    for version in versions(cls):
        second, random = reading(cls, version), Random(f"theirs {cls.NAME} {version}")
        for _ in range(THEIRS):
            theirs = Maker(random, second).struct(second.fields)
            raw = second.encode(theirs)
            ours = read(cls, raw, version)
            assert agree(theirs, ours), (theirs, ours)
            assert written(ours, version) == raw


@pytest.mark.parametrize("cls", MESSAGES, ids=named)
def test_damaged_bytes_are_judged_alike(cls: type[Message]) -> None:
    for version in versions(cls):
        second, random = reading(cls, version), Random(f"damaged {cls.NAME} {version}")
        raw = random_message(random, cls, version).encode(version)
        for _ in range(DAMAGED * bool(raw)):
            bad = _damaged(random, raw)
            theirs, ours = _outcome(second.decode, bad), _outcome(cls.decode_from, bad, version, 0)
            assert repr(_outcome(decode_message_carefully, cls, bad, version, 0)) == repr(ours), bad.hex()
            if theirs is None or ours is None:
                assert theirs is ours, (bad.hex(), theirs, ours)
            else:
                assert theirs[1] == ours[1]
                assert agree(theirs[0], ours[0]), (bad.hex(), theirs, ours)
                assert _outcome(second.encode, theirs[0]) == _outcome(ours[0].encode, version)


def _damaged(random: Random, raw: bytes) -> bytes:
    if random.random() < 0.2:
        return raw[: random.randrange(len(raw))]
    bad = bytearray(raw)
    at = random.randrange(len(raw))
    bad[at] = random.choice((0, 1, 2, 0x7F, 0x80, 0xED, 0xFF, bad[at] ^ 1 << random.randrange(8)))
    return bytes(bad)


def _outcome(call: Any, *arguments: Any) -> Any:
    """Return the result of a call; None for an error of either codec."""
    try:
        return call(*arguments)
    except (ProtocolError, ConstructError):
        return None


@pytest.mark.parametrize("package", FOLDERS)
def test_every_schema_with_a_version_is_read(package: str) -> None:
    schemas = [load(path) for path in sorted(FOLDERS[package].glob("*.json"))]
    assert {each["name"] for each in schemas if each["validVersions"] != "none"} == {
        cls.NAME for cls in MESSAGES if package_of(cls) == package
    }
