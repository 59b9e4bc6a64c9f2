"""The worst inputs stay within the limits of work and memory that ``codec_checks`` states.

The cost of an input is the sum of the costs of its parts. So the worst inputs repeat the part with the most
memory per byte: 107 bytes of memory per byte of the wire (AlterClientQuotasRequest version 1: an entry of
three bytes, read by the fast decoder and, because the last byte is missing, again by the careful one).
"""

from __future__ import annotations

from functools import partial

import pytest

from kraft_wire.protocol.errors import DecodeError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.schema import MAX_TAGGED_FIELDS
from kraft_wire.protocol.varint import uvarint
from tests.protocol.codec_checks import check_memory, check_steps, count_steps, tracing_memory
from tests.protocol.fuzzing import MESSAGES
from tests.support.heavy_wire import HeavyWriter, Path, Style, array_paths

SIZE_BYTES = 1000
"""Large enough for many elements, so that a decoder's constant costs hardly count."""
HUGE_COUNTS = (126, 127, 10_000, 1_000_000, 1_000_001, 2**31 - 1)


def layouts(cls: type[Message]) -> list[int]:
    """Return the versions that differ most."""
    return sorted(
        {cls.MIN_VERSION, max(cls.MIN_VERSION, min(cls.FLEXIBLE_FROM, cls.MAX_VERSION)), cls.MAX_VERSION}
    )


def element_bytes(cls: type[Message], version: int, style: Style, path: Path) -> int:
    one, two = (len(HeavyWriter(version, style, path, count).write(cls)) for count in (1, 2))
    return two - one


def heavy(cls: type[Message], version: int, style: Style, path: Path, size_bytes: int) -> bytes:
    count = size_bytes // element_bytes(cls, version, style, path)
    return HeavyWriter(version, style, path, count).write(cls)


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.NAME)
def test_no_element_of_an_array_is_free(cls: type[Message]) -> None:
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        for path in array_paths(cls, version):
            assert element_bytes(cls, version, Style.NULL, path) > 0


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.NAME)
def test_many_small_elements_take_bounded_memory(cls: type[Message]) -> None:
    with tracing_memory():
        for version in layouts(cls):
            for path in array_paths(cls, version):
                for style in Style:
                    raw = heavy(cls, version, style, path, SIZE_BYTES)[:-1]
                    check_memory(partial(cls.decode, raw, version), len(raw))


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.NAME)
def test_work_grows_with_the_input_and_not_faster(cls: type[Message]) -> None:
    for version in layouts(cls):
        for path in array_paths(cls, version):
            half, full = (heavy(cls, version, Style.EMPTY, path, size)[:-1] for size in (500, 1000))
            decode_half, decode_full = partial(cls.decode, half, version), partial(cls.decode, full, version)
            check_steps(decode_full, len(full))
            nothing = count_steps(partial(cls.decode, b"", version))
            assert count_steps(decode_full) <= 2.2 * count_steps(decode_half) + nothing


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.NAME)
def test_a_declared_count_alone_takes_no_memory(cls: type[Message]) -> None:
    with tracing_memory():
        for version in layouts(cls):
            for path in array_paths(cls, version):
                for declared in HUGE_COUNTS:
                    raw = HeavyWriter(version, Style.NULL, path, 1, declared).write(cls)
                    with pytest.raises(DecodeError):
                        cls.decode(raw, version)
                    check_memory(partial(cls.decode, raw, version), 0)


def test_many_tagged_fields_take_bounded_memory() -> None:
    start = BrokerHeartbeatRequest().encode(0)[:-1]
    for tag in (b"\x7f\0", b"\xff\x7f\0"):
        raw = start + uvarint(MAX_TAGGED_FIELDS) + tag * (MAX_TAGGED_FIELDS - 1)
        with tracing_memory():
            check_memory(partial(BrokerHeartbeatRequest.decode, raw, 0), len(raw))
