"""The decoders refuse arguments that are not bytes or not a position in them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kraft_wire.protocol.message import Message
from tests.support.random_messages import all_messages, random_message

MESSAGES = all_messages()


@pytest.mark.parametrize("kind", [bytearray, memoryview])
@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.NAME)
def test_arguments_other_than_bytes_are_a_type_error_or_read_correctly(cls: type[Message], kind: Any) -> None:
    random = Random(cls.NAME)
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        message = random_message(random, cls, version)
        raw = message.encode(version)
        decoders: list[Any] = [cls.decode, lambda data, version: cls.decode_from(data, version, 0)[0]]
        for decode in decoders:
            try:
                assert decode(kind(raw), version) == message
            except TypeError as error:
                assert f"{cls.NAME} is decoded from bytes, not from {kind.__name__}" in str(error)
            if raw:
                with pytest.raises(TypeError, match="is decoded from bytes, not from str"):
                    decode("text", version)


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.NAME)
def test_positions_do_not_count_from_the_end(cls: type[Message]) -> None:
    raw = random_message(Random(cls.NAME), cls, cls.MAX_VERSION).encode(cls.MAX_VERSION)
    for pos in (-1, -len(raw), -len(raw) - 1, -(2**70)):
        with pytest.raises(ValueError, match=f"position {pos} is negative"):
            cls.decode_from(raw, cls.MAX_VERSION, pos)
        with pytest.raises(ValueError, match=f"position {pos} is negative"):
            Message.decode_from.__func__(cls, raw, cls.MAX_VERSION, pos)  # type: ignore[attr-defined]
