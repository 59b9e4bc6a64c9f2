"""Checks of a message's codec that must pass for any bytes, with limits for its work and memory."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from types import FrameType
from typing import Any

from kraft_wire.protocol.errors import DecodeError, EncodeError
from kraft_wire.protocol.message import Message, decode_message_carefully, encode_message_carefully
from kraft_wire.protocol.schema import Structure

MEMORY_PER_BYTE = 128
MEMORY_BESIDE = 16 * 1024
"""A decoder takes at most this many bytes of memory per byte of input, plus a constant."""
STEPS_PER_BYTE = 80
STEPS_BESIDE = 1000
"""The same for steps: executed lines of Python, calls and returns."""
HIGHEST_TAG = 2**31 - 2
BEHIND = bytes(100_000)


def check_codec(cls: type[Message], version: int, raw: bytes) -> bool:
    """Decode, and encode again if that worked. Returns whether it did. Raises any problem.

    The careful codec must do the same as the generated one.
    """
    decoded = _outcome(cls.decode_from, raw, version, 0)
    assert repr(decoded) == repr(_outcome(decode_message_carefully, cls, raw, version, 0))
    alone = _outcome(cls.decode, raw, version)
    if isinstance(decoded, DecodeError):
        assert repr(alone) == repr(decoded)
        assert decoded.message == cls.NAME
        assert 0 <= decoded.offset <= len(raw)
        return False
    message, end = decoded
    assert 0 <= end <= len(raw)
    assert _same(alone, message)
    # The bytes after the message reveal a read that is too long.
    assert _same(cls.decode_from(raw[:end] + BEHIND, version, 0), decoded)
    check_encoding(message, version)
    return True


def check_encoding(message: Message, version: int) -> bytes | None:
    """Check that a decoded value can be encoded, and decoded to the same value. Returns the bytes.

    Returns None for a value that can be read but must not be written.
    """
    try:
        raw = message.encode(version)
    except EncodeError as error:
        assert _must_not_be_written(message, error)
        return None
    for encode_into in (message.encode_into, partial(encode_message_carefully, message)):
        out = [b"before"]
        encode_into(out, version)
        assert b"".join(out) == b"before" + raw
    assert _same(type(message).decode_from(raw, version, 0), (message, len(raw)))
    return raw


def check_inside(cls: type[Message], version: int, raw: bytes) -> None:
    """Check that a message that doesn't start at the data's beginning is read the same."""
    expected = _outcome(cls.decode_from, raw, version, 0)
    found = _outcome(cls.decode_from, b"\x01\xff\x80" + raw, version, 3)
    if isinstance(expected, DecodeError):
        assert isinstance(found, DecodeError)
        assert (found.field, found.offset - 3, found.reason) == (
            expected.field,
            expected.offset,
            expected.reason,
        )
    else:
        message, end = expected
        assert repr(found) == repr((message, end + 3))


def check_json(cls: type[Message], version: int, raw: bytes) -> None:
    """Check that a decoded value has a JSON form, which is read back; it has no unknown tags."""
    try:
        message = cls.decode(raw, version)
    except DecodeError:
        return
    shown = message.to_json(version)
    if any(_unknown_tags(message)):
        return
    assert repr(cls.from_json(shown, version).to_json(version)) == repr(shown)


def check_steps(decode: Callable[[], object], size_bytes: int) -> None:
    """Check that the number of steps of a decoding is limited by the input's size.

    Steps are Python's. Of compiled code only its calls to Python are counted; its own work shows in its
    memory (check_memory), since it creates an object for everything that it reads.
    """
    assert count_steps(decode) <= STEPS_PER_BYTE * size_bytes + STEPS_BESIDE


def check_memory(decode: Callable[[], object], size_bytes: int) -> None:
    """Check that decoding takes no more memory than the input's size allows; inside ``tracing_memory``."""
    allowed = MEMORY_PER_BYTE * size_bytes + MEMORY_BESIDE
    # Other threads of this process take memory too, but hardly three times in a row.
    assert any(peak_memory_bytes(decode) <= allowed for _ in range(3))


def count_steps(decode: Callable[[], object]) -> int:
    count = 0

    def on_event(_frame: FrameType, _event: str, _argument: object) -> Any:
        nonlocal count
        count += 1
        return on_event

    before = sys.gettrace()
    sys.settrace(on_event)
    try:
        _outcome(decode)
    finally:
        sys.settrace(before)
    return count


@contextmanager
def tracing_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def peak_memory_bytes(decode: Callable[[], object]) -> int:
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    _outcome(decode)
    return tracemalloc.get_traced_memory()[1] - before


def _must_not_be_written(message: Message, error: EncodeError) -> bool:
    """Whether a value can be read but must be refused by the encoder, as in Java.

    There are two cases: unknown tags that don't ascend, and malformed text that is too long after
    replacement.
    """
    if error.field.endswith("unknown_tagged_fields"):
        return any(not _ascend(each) for each in _unknown_tags(message))
    return "is a string of" in error.reason and "\N{REPLACEMENT CHARACTER}" in repr(message)


def _unknown_tags(value: object) -> Iterator[list[int]]:
    """Return the unknown tags of every structure in ``value``."""
    if isinstance(value, Structure):
        yield [tag for tag, _ in getattr(value, "unknown_tagged_fields", ())]
        for field in value.FIELDS:
            yield from _unknown_tags(getattr(value, field.name))
    elif isinstance(value, list):
        for element in value:
            yield from _unknown_tags(element)


def _ascend(tags: list[int]) -> bool:
    return all(low < high for low, high in pairwise([-1, *tags, HIGHEST_TAG + 1]))


def _same(one: object, other: object) -> bool:
    """Whether two values are the same; not-a-number counts as the same although it equals nothing."""
    return one == other or repr(one) == repr(other)


def _outcome(decode: Callable[..., Any], *arguments: object) -> Any:
    """Return the result, or the only error that bytes may raise."""
    try:
        return decode(*arguments)
    except DecodeError as error:
        return error
