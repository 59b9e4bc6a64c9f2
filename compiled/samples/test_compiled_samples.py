"""Compiled code for features that Kafka's own schemas rarely or never use, compared with the Python of the
same schemas."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any

import pytest

from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.schema import Structure
from kraft_wire.protocol.tier import COMPILED, PURE, tier_of
from tests.support.odd_wire import OddWriter, mutate
from tests.support.random_messages import messages_of, random_message
from tests.support.schema_samples import everything, generated, oddities

NODES = (everything(), *oddities())
ROUNDS = 60
ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**63,
    1.5,
    "text",
    "\ud800",
    b"bytes",
    (),
    [],
    (1, "a"),
    (None,),
    [None],
)


@pytest.fixture(params=NODES, ids=lambda node: node["name"])
def node(request: pytest.FixtureRequest) -> Any:
    return request.param


def class_of(node: dict[str, Any], package: str) -> Any:
    return getattr(generated(node, package), node["name"])


def test_they_are_compiled(node: dict[str, Any]) -> None:
    assert tier_of(class_of(node, "samples")) == COMPILED
    assert tier_of(class_of(node, "twins")) == PURE


def test_the_other_package_is_compiled() -> None:
    drafted = messages_of("kraft_wire.raft.membership.kip_853")
    assert drafted
    assert {tier_of(cls) for cls in drafted} == {COMPILED}


def test_bytes_are_what_python_makes_of_them(node: dict[str, Any]) -> None:
    cls, twin = class_of(node, "samples"), class_of(node, "twins")
    random = Random(node["name"])
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        written = [OddWriter(random, version, oddity).write(cls) for oddity in (0, 0.02, 0.1) * ROUNDS]
        for raw in [*written, *(mutate(random, raw, written) for raw in written)]:
            assert outcome(cls.decode_from, raw, version, 0) == outcome(twin.decode_from, raw, version, 0)
            assert outcome(cls.decode, raw, version) == outcome(twin.decode, raw, version)


def test_values_are_encoded_or_refused_as_in_python(node: dict[str, Any]) -> None:
    cls, twins = class_of(node, "samples"), generated(node, "twins")
    random = Random(node["name"])
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        for number in range(ROUNDS):
            message = random_message(random, cls, version)
            if number % 2:
                setattr(message, random.choice(cls.__struct_fields__), random.choice(ODD_VALUES))
            twin = twin_of(message, twins)
            for other in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
                assert outcome(message.encode, other) == outcome(twin.encode, other)
                assert outcome(in_pieces, message, other) == outcome(in_pieces, twin, other)


def outcome(call: Callable[..., Any], *arguments: object) -> tuple[str, str]:
    """Return a value, or a typed error; by their repr, because not-a-number equals nothing."""
    try:
        return "value", repr(call(*arguments))
    except ProtocolError as error:
        return type(error).__name__, str(error)


def in_pieces(message: Message, version: int) -> bytes:
    out: list[bytes] = []
    message.encode_into(out, version)
    return b"".join(out)


def twin_of(value: Any, twins: ModuleType) -> Any:
    """Return the same value made of the Python classes."""
    if isinstance(value, list):
        return [twin_of(each, twins) for each in value]
    if not isinstance(value, Structure):
        return value
    members = {name: twin_of(getattr(value, name), twins) for name in value.__struct_fields__}
    return getattr(twins, type(value).__name__)(**members)
