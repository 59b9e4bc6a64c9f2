"""What must hold of a message's codec for any bytes at all, and how much work and memory it may take."""

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
"""A decoder takes at most so many bytes of memory a byte of its input, and so many beside."""
STEPS_PER_BYTE = 80
STEPS_BESIDE = 1000
"""The same for steps: lines of Python that are executed, calls and returns."""
HIGHEST_TAG = 2**31 - 2
BEHIND = bytes(100_000)


def check_codec(cls: type[Message], version: int, raw: bytes) -> bool:
    """Decode, and encode again if that went well; returns whether it did. Raises whatever is wrong.

    What the generated codec does, the careful one does, too.
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
    # What reads too far gives itself away where it can.
    assert _same(cls.decode_from(raw[:end] + BEHIND, version, 0), decoded)
    check_encoding(message, version)
    return True


def check_encoding(message: Message, version: int) -> bytes | None:
    """What was decoded can be encoded, and decoded to the same; returns the bytes.

    None is for what is read and yet must not be written.
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
    """A message that doesn't begin at the data's beginning is the same one."""
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
    """Whatever decodes has a JSON form, which is read back; unknown tags are not in it."""
    try:
        message = cls.decode(raw, version)
    except DecodeError:
        return
    shown = message.to_json(version)
    if any(_unknown_tags(message)):
        return
    assert repr(cls.from_json(shown, version).to_json(version)) == repr(shown)


def check_steps(decode: Callable[[], object], size_bytes: int) -> None:
    """Decoding is done in a number of steps that the input's size bounds.

    Steps are Python's. Of compiled code only what it leaves to Python is counted; its own work shows in the
    memory that it takes (check_memory), since it makes an object for whatever it reads.
    """
    assert count_steps(decode) <= STEPS_PER_BYTE * size_bytes + STEPS_BESIDE


def check_memory(decode: Callable[[], object], size_bytes: int) -> None:
    """Decoding takes no more memory than the input's size allows; inside ``tracing_memory``."""
    allowed = MEMORY_PER_BYTE * size_bytes + MEMORY_BESIDE
    # Other threads of the test's process take memory too, but hardly three times in a row.
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
    """Two things are read and yet refused on the way out, as in Java.

    Unknown tags that don't ascend, and malformed text that its replacement characters make too long.
    """
    if error.field.endswith("unknown_tagged_fields"):
        return any(not _ascend(each) for each in _unknown_tags(message))
    return "is a string of" in error.reason and "\N{REPLACEMENT CHARACTER}" in repr(message)


def _unknown_tags(value: object) -> Iterator[list[int]]:
    """The unknown tags of every structure in ``value``."""
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
    """Not-a-number equals nothing, and is the same all the same."""
    return one == other or repr(one) == repr(other)


def _outcome(decode: Callable[..., Any], *arguments: object) -> Any:
    """What is returned, or the one error that bytes may give."""
    try:
        return decode(*arguments)
    except DecodeError as error:
        return error
