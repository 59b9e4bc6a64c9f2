"""Every message at every version: the generated codec reads its own output, and the careful one agrees."""

from __future__ import annotations

import sys
from random import Random

import pytest

from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message, decode_message_carefully, encode_message_carefully
from tests.support.random_messages import all_messages, random_message

INSTANCES = 3
MESSAGES = all_messages()


def versions(cls: type[Message]) -> range:
    return range(cls.MIN_VERSION, cls.MAX_VERSION + 1)


def named(cls: type[Message]) -> str:
    return cls.NAME


@pytest.mark.parametrize("cls", MESSAGES, ids=named)
def test_what_is_written_is_read(cls: type[Message]) -> None:
    for version in versions(cls):
        random = Random(f"{cls.NAME} {version}")
        for _ in range(INSTANCES):
            message = random_message(random, cls, version)
            raw = message.encode(version)
            assert cls.decode(raw, version) == message
            assert cls.decode_from(b"ab" + raw + b"cd", version, 2) == (message, 2 + len(raw))
            out = [b"before"]
            message.encode_into(out, version)
            assert b"".join(out) == b"before" + raw


@pytest.mark.parametrize("cls", MESSAGES, ids=named)
def test_the_careful_codec_agrees(cls: type[Message]) -> None:
    for version in versions(cls):
        random = Random(f"careful {cls.NAME} {version}")
        message = random_message(random, cls, version)
        out: list[bytes] = []
        encode_message_carefully(message, out, version)
        raw = message.encode(version)
        assert b"".join(out) == raw
        assert decode_message_carefully(cls, raw, version, 0) == (message, len(raw))


@pytest.mark.parametrize("cls", MESSAGES, ids=named)
def test_the_generated_codec_needs_no_help_with_ordinary_messages(
    cls: type[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unexpected(*_: object) -> None:
        raise AssertionError("the careful codec was asked")

    module = sys.modules[cls.__module__]
    monkeypatch.setattr(module, "decode_message_carefully", unexpected)
    monkeypatch.setattr(module, "encode_message_carefully", unexpected)
    for version in versions(cls):
        message = random_message(Random(f"plain {cls.NAME} {version}"), cls, version)
        assert cls.decode(message.encode(version), version) == message


@pytest.mark.parametrize("cls", MESSAGES, ids=named)
def test_damaged_bytes_give_the_careful_codec_s_answer(cls: type[Message]) -> None:
    for version in {cls.MIN_VERSION, cls.MAX_VERSION}:
        random = Random(f"damaged {cls.NAME} {version}")
        raw = random_message(random, cls, version).encode(version)
        for damaged in _damage(random, raw):
            expected = _answer(decode_message_carefully, cls, damaged, version, 0)
            assert _answer(cls.decode_from, damaged, version, 0) == expected


def _damage(random: Random, raw: bytes) -> list[bytes]:
    if not raw:
        return []
    damaged = [raw[: random.randrange(len(raw))] for _ in range(4)]
    for _ in range(8):
        changed = bytearray(raw)
        changed[random.randrange(len(raw))] = random.choice((0, 1, 2, 127, 128, 255, random.randrange(256)))
        damaged.append(bytes(changed))
    return damaged


def _answer(decode: object, *arguments: object) -> str:
    assert callable(decode)
    try:
        return repr(decode(*arguments))
    except ProtocolError as error:
        return repr(error)


@pytest.mark.parametrize("cls", MESSAGES, ids=named)
def test_defaults_survive(cls: type[Message]) -> None:
    for version in versions(cls):
        assert cls.decode(cls().encode(version), version) == cls()


@pytest.mark.parametrize("cls", MESSAGES, ids=named)
def test_json_forms_are_read_back(cls: type[Message]) -> None:
    for version in versions(cls):
        message = random_message(Random(f"json {cls.NAME} {version}"), cls, version, unknown_tags=False)
        shown = message.to_json(version)
        assert cls.from_json(shown, version).to_json(version) == shown
