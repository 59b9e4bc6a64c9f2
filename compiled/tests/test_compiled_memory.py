"""Compiled code counts references by hand: no object may leak, and none may be freed too early."""

from __future__ import annotations

import gc
import sys
from array import array
from collections.abc import Callable
from contextlib import suppress
from random import Random

from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.uuid import Uuid
from tests.support.odd_wire import OddWriter, mutate
from tests.support.random_messages import all_messages, random_message

SEED = 1
MOST_ROUNDS = 30
MESSAGES = all_messages()
SHARED = (None, True, False, (), "", b"", *range(-5, 257), Uuid.ZERO)
"""Objects that compiled code returns without creating them."""


def check(work: Callable[[], None]) -> None:
    """Check that some round leaves no more memory than the previous one. A leak grows in every round; the
    interpreter's own memory goes up and down, at first mostly up."""
    blocks = array("q", bytes(8 * MOST_ROUNDS))  # so that counting them creates no object
    for number in range(MOST_ROUNDS):
        work()
        gc.collect()
        blocks[number] = sys.getallocatedblocks()
        if number and blocks[number] <= blocks[number - 1]:
            break
    else:
        raise AssertionError(f"every round leaves more blocks: {blocks}")
    _check_references(work)


def _check_references(work: Callable[[], None]) -> None:
    """Check the reference counts of shared objects. Too few references are as bad as too many: each round
    frees the object a little more."""
    always_more = always_fewer = set(range(len(SHARED)))
    before = array("q", bytes(8 * len(SHARED)))
    for number in range(MOST_ROUNDS):
        work()
        now = array("q", (sys.getrefcount(each) for each in SHARED))
        if number:
            always_more = {n for n in always_more if now[n] > before[n]}
            always_fewer = {n for n in always_fewer if now[n] < before[n]}
            if not always_more and not always_fewer:
                return
        before = now
    raise AssertionError([SHARED[n] for n in always_more | always_fewer])


def test_decoding_leaves_nothing_behind_whatever_the_bytes() -> None:
    random = Random(SEED)
    inputs: list[tuple[type[Message], int, bytes]] = []
    for cls in MESSAGES:
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
            written = [OddWriter(random, version, oddity).write(cls) for oddity in (0, 0, 0.05)]
            inputs += [(cls, version, raw) for raw in written]
            inputs += [(cls, version, mutate(random, raw, written)) for raw in written * 3]

    def decode_all() -> None:
        for cls, version, raw in inputs:
            with suppress(ProtocolError):
                cls.decode(raw, version)
            with suppress(ProtocolError):
                cls.decode_from(raw, version, 0)

    check(decode_all)


def test_encoding_leaves_nothing_behind_whatever_the_values() -> None:
    random = Random(SEED)
    messages: list[tuple[Message, int]] = []
    for cls in MESSAGES:
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
            message = random_message(random, cls, version)
            messages.append((message, version))
            broken = random_message(random, cls, version)
            for field in random.sample(broken.__struct_fields__, min(1, len(broken.__struct_fields__))):
                setattr(broken, field, random.choice((None, "\ud800", -1, object(), [None], b"x" * 5000)))
            messages.append((broken, version))

    def encode_all() -> None:
        for message, version in messages:
            with suppress(ProtocolError):
                message.encode(version)
            with suppress(ProtocolError):
                message.encode_into([], version)

    check(encode_all)


def test_what_was_decoded_outlives_its_bytes() -> None:
    random, kept = Random(SEED), []
    for cls in MESSAGES:
        message = random_message(random, cls, cls.MAX_VERSION)
        raw = message.encode(cls.MAX_VERSION)
        copy = bytes(bytearray(raw))
        kept.append((message, raw, cls.decode(copy, cls.MAX_VERSION)))
        del copy
    gc.collect()
    for message, raw, decoded in kept:
        assert decoded == message
        assert decoded.encode(message.MAX_VERSION) == raw
