"""The compiled codec does the same as the Python codec with any input."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, StrEnum
from random import Random
from typing import Any

import pytest
from python_twins import twin, twin_class

from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.schema import Structure
from kraft_wire.protocol.uuid import Uuid
from tests.support.odd_wire import OddWriter, mutate
from tests.support.random_messages import all_messages, random_message

MESSAGES = all_messages()
ROUNDS = 30
SEED = 20_000


class Number(IntEnum):
    SEVEN = 7


class Word(StrEnum):
    HELLO = "hello"


class NoMessage(Structure, gc=False):
    error_code: int = 0


ODD_VALUES: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: True,
    lambda: 0,
    lambda: -1,
    lambda: 2**31,
    lambda: -(2**63) - 1,
    lambda: 2**64,
    lambda: 1.5,
    lambda: float("nan"),
    lambda: Number.SEVEN,
    lambda: "",
    lambda: "text",
    lambda: "\ud800",
    lambda: "ä" * 16_383,
    lambda: "ä" * 16_384,
    lambda: "x" * 32_768,
    lambda: Word.HELLO,
    lambda: b"",
    lambda: b"0123456789abcdef",
    lambda: bytearray(b"0123456789abcdef"),
    lambda: memoryview(b"bytes"),
    lambda: b"blob" * 2000,
    lambda: Uuid(b"fedcba9876543210"),
    list,
    tuple,
    lambda: [1, 2],
    lambda: (1, 2),
    lambda: ("a", "b"),
    lambda: (None,),
    lambda: [None],
    lambda: (Uuid.ONE, b"short"),
    lambda: [NoMessage()],
    NoMessage,
    object,
)
ODD_TAGS: tuple[Any, ...] = (
    ((70, b""), (71, b"x" * 200)),
    ((71, b""), (70, b"")),
    ((70, b""), (70, b"")),
    ((-1, b""),),
    ((2**31 - 2, b"highest"),),
    ((2**31 - 1, b""),),
    ((70, bytearray(b"x")),),
    ((70, "text"),),
    ((70,),),
    [(70, b"")],
    [],
    None,
    tuple((70 + number, b"") for number in range(130)),
)


Errors = type[Exception] | tuple[type[Exception], ...]


def outcome(
    call: Callable[..., Any], *arguments: object, errors: Errors = ProtocolError
) -> tuple[str, object]:
    """Return a value, or a typed error with its text; values by their repr, because not-a-number equals
    nothing."""
    try:
        return "value", repr(call(*arguments))
    except errors as error:
        return type(error).__name__, str(error)


def in_pieces(message: Message, version: int) -> bytes:
    out = [b"before"]
    try:
        message.encode_into(out, version)
    except BaseException:
        assert out == [b"before"]
        raise
    assert out.pop(0) == b"before"
    return b"".join(out)


def check_encoding(message: Message, version: int, errors: Errors = ProtocolError) -> None:
    expected = outcome(twin(message).encode, version, errors=errors)
    assert outcome(message.encode, version, errors=errors) == expected
    assert outcome(in_pieces, message, version, errors=errors) == expected


def versions_around(cls: type[Message]) -> range:
    return range(cls.MIN_VERSION - 1, cls.MAX_VERSION + 2)


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.NAME)
def test_messages_are_encoded_and_decoded_as_in_python(cls: type[Message]) -> None:
    random = Random(SEED)
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        for _ in range(ROUNDS // 3):
            message = random_message(random, cls, version)
            raw = message.encode(version)
            assert cls.decode(raw, version) == message
            assert cls.decode_from(b"xy" + raw + b"z", version, 2) == (message, 2 + len(raw))
            # Other versions lack fields, which is an error for some values only.
            for other in versions_around(cls):
                check_encoding(message, other)


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.NAME)
def test_odd_and_damaged_bytes_are_what_python_makes_of_them(cls: type[Message]) -> None:
    random = Random(SEED)
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        written = [OddWriter(random, version, oddity).write(cls) for oddity in (0, 0.02, 0.1) * (ROUNDS // 3)]
        for raw in [*written, *(mutate(random, raw, written) for raw in written)]:
            expected = outcome(twin_class(cls).decode_from, raw, version, 0)
            assert outcome(cls.decode_from, raw, version, 0) == expected, raw.hex()


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.NAME)
def test_odd_values_are_encoded_or_refused_as_in_python(cls: type[Message]) -> None:
    random = Random(SEED)
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        for _ in range(ROUNDS):
            message = random_message(random, cls, version)
            holder = random.choice(list(structures(message)))
            field = random.choice(holder.__struct_fields__)
            odd = random.choice(ODD_TAGS if field == "unknown_tagged_fields" else ODD_VALUES)
            setattr(holder, field, odd() if callable(odd) else odd)
            check_encoding(message, version)


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.NAME)
def test_fields_that_were_deleted_are_missed_as_in_python(cls: type[Message]) -> None:
    random = Random(SEED)
    for field in cls.__struct_fields__:
        message = random_message(random, cls, cls.MAX_VERSION)
        delattr(message, field)
        check_encoding(message, cls.MAX_VERSION, (ProtocolError, AttributeError))


def structures(value: Structure) -> list[Structure]:
    """Yield a structure and those inside it."""
    found = [value]
    for name in value.__struct_fields__:
        member = getattr(value, name)
        for each in member if isinstance(member, list) else [member]:
            if isinstance(each, Structure):
                found += structures(each)
    return found
