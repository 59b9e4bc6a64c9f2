"""Create random instances of any generated message, from its field table and a seeded generator."""

from __future__ import annotations

from importlib import import_module
from random import Random
from typing import Any

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import MODULES
from kraft_wire.protocol.registry import message_class
from kraft_wire.protocol.schema import Field, Structure, UnknownTags
from kraft_wire.protocol.uuid import Uuid

INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
ALPHABET = "abcXYZ-._09 äß€\N{GRINNING FACE}\N{REPLACEMENT CHARACTER}\0"


def all_messages() -> list[type[Message]]:
    """Return every generated message that has a version."""
    found = [message_class(name) for name in MODULES]
    return [each for each in found if each.MIN_VERSION <= each.MAX_VERSION]


def messages_of(package: str) -> list[type[Message]]:
    """Return every message of a generated package that has a version; ``package`` is its dotted name."""
    modules: dict[str, str] = import_module(package).MODULES
    found: list[type[Message]] = [
        getattr(import_module(f"{package}.{module}"), name) for name, module in modules.items()
    ]
    return [each for each in found if each.MIN_VERSION <= each.MAX_VERSION]


def random_message(random: Random, cls: type[Message], version: int, *, unknown_tags: bool = True) -> Any:
    """Create an instance that can be encoded at this version and is equal when decoded."""
    return _structure(random, cls, version, depth=0, unknown_tags=unknown_tags)


def _structure(random: Random, cls: type[Structure], version: int, *, depth: int, unknown_tags: bool) -> Any:
    values: dict[str, Any] = {}
    for field in cls.FIELDS:
        if field.is_present(version) and not (field.is_tagged(version) and random.random() < 0.4):
            values[field.name] = _value(random, field, version, depth, unknown_tags)
    if unknown_tags and version >= cls.FLEXIBLE_FROM and random.random() < 0.2:
        values["unknown_tagged_fields"] = _unknown_tags(random, cls)
    return cls(**values)


def _unknown_tags(random: Random, cls: type[Structure]) -> UnknownTags:
    known = 1 + max((field.tag for field in cls.FIELDS), default=-1)
    tags = sorted({known + random.choice((0, 1, 7, 200, 70_000)) for _ in range(random.randrange(1, 3))})
    return tuple((tag, random.randbytes(random.choice((0, 1, 5, 200)))) for tag in tags)


def _value(random: Random, field: Field, version: int, depth: int, unknown_tags: bool) -> Any:
    if field.is_nullable(version) and random.random() < 0.2:
        return None
    if not field.array:
        return _element(random, field, version, depth, unknown_tags)
    small = (0, 1, 2, 3) if field.struct is not None and depth else (0, 1, 2, 5)
    count = random.choice(small)
    if field.struct is None and random.random() < 0.1:
        count = random.choice((16, 17, 18, 130))
    values = [_element(random, field, version, depth + 1, unknown_tags) for _ in range(count)]
    return values if field.struct is not None else tuple(values)


def _element(random: Random, field: Field, version: int, depth: int, unknown_tags: bool) -> Any:
    if field.struct is not None:
        return _structure(random, field.struct, version, depth=depth + 1, unknown_tags=unknown_tags)
    if field.kind in ("uint16", "uint32"):
        return random.getrandbits(int(field.kind[4:]))
    if field.kind in INTEGER_BITS:
        bits = random.choice((3, INTEGER_BITS[field.kind]))
        return random.getrandbits(bits) - (1 << bits - 1)
    if field.kind == "bool":
        return random.random() < 0.5
    if field.kind == "float64":
        return random.uniform(-1e9, 1e9)
    if field.kind == "uuid":
        return Uuid(random.randbytes(16))
    lengths = (0, 1, 5, 20) if random.random() < 0.9 else (125, 126, 127, 128, 300)
    length = random.choice(lengths)
    if field.kind == "string":
        return "".join(random.choice(ALPHABET) for _ in range(length))
    return random.randbytes(length)
