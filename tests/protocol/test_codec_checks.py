"""The fuzzing tests' checks notice a wrong codec: each class here has one bug."""

from __future__ import annotations

import zlib
from base64 import b64decode
from functools import partial
from typing import Self

import pytest

from kraft_wire.protocol.errors import DecodeError
from kraft_wire.protocol.message import decode_message_carefully
from kraft_wire.protocol.messages.topic_record import TopicRecord
from tests.protocol.codec_checks import check_codec, check_inside, check_memory, check_steps, tracing_memory
from tests.protocol.fuzzing import Fuzz

RAW = b"\x03ab" + bytes(range(16)) + b"\x01\x07\x01z"
MORE = b"\x02\x05\x00\x07\x00"


class EndsInATraceback(TopicRecord):
    @classmethod
    def decode_from(cls, data: bytes, version: int, pos: int) -> tuple[Self, int]:
        data[len(data)]
        return decode_message_carefully(cls, data, version, pos)


class ReadsBehindTheEnd(TopicRecord):
    @classmethod
    def decode_from(cls, data: bytes, version: int, pos: int) -> tuple[Self, int]:
        return decode_message_carefully(cls, data + bytes(20), version, pos)


class LosesUnknownTags(TopicRecord):
    @classmethod
    def decode_from(cls, data: bytes, version: int, pos: int) -> tuple[Self, int]:
        record, end = decode_message_carefully(cls, data, version, pos)
        record.unknown_tagged_fields = ()
        return record, end


class GivesBytesForAnId(TopicRecord):
    @classmethod
    def decode_from(cls, data: bytes, version: int, pos: int) -> tuple[Self, int]:
        record, end = decode_message_carefully(cls, data, version, pos)
        record.topic_id = bytes(record.topic_id)  # type: ignore[assignment]
        return record, end


class BeginsAtTheBeginning(TopicRecord):
    @classmethod
    def decode_from(cls, data: bytes, version: int, pos: int) -> tuple[Self, int]:
        return decode_message_carefully(cls, data, version, 0)


class BlamesAnotherPlace(TopicRecord):
    @classmethod
    def decode_from(cls, data: bytes, version: int, pos: int) -> tuple[Self, int]:
        try:
            return decode_message_carefully(cls, data, version, pos)
        except DecodeError as error:
            raise DecodeError(error.message, error.field, error.offset + 1, error.reason) from None


class ReadsOtherwiseAlone(TopicRecord):
    @classmethod
    def decode(cls, data: bytes, version: int) -> Self:
        return decode_message_carefully(cls, data + bytes(20), version, 0)[0]


class WritesNoTags(TopicRecord):
    def encode(self, version: int) -> bytes:
        return TopicRecord(self.name, self.topic_id).encode(version)


class RefusesToWrite(TopicRecord):
    def encode(self, version: int) -> bytes:
        return TopicRecord(self.name, self.topic_id, self.unknown_tagged_fields[::-1]).encode(version)


class BelievesTheCount(TopicRecord):
    @classmethod
    def decode_from(cls, data: bytes, version: int, pos: int) -> tuple[Self, int]:
        assert len([0] * 100_000)
        return decode_message_carefully(cls, data, version, pos)


class ReadsTwiceForEveryByte(TopicRecord):
    @classmethod
    def decode_from(cls, data: bytes, version: int, pos: int) -> tuple[Self, int]:
        for _ in data:
            decode_message_carefully(cls, data, version, pos)
        return decode_message_carefully(cls, data, version, pos)


def test_a_right_codec_passes() -> None:
    assert check_codec(TopicRecord, 0, RAW)
    assert not check_codec(TopicRecord, 0, RAW[:-1])
    check_inside(TopicRecord, 0, RAW)


@pytest.mark.parametrize(
    ("cls", "raw"),
    [
        (ReadsBehindTheEnd, RAW[:-1]),
        (LosesUnknownTags, RAW),
        (GivesBytesForAnId, RAW),
        (BlamesAnotherPlace, RAW[:-1]),
        (ReadsOtherwiseAlone, RAW[:-1]),
        (WritesNoTags, RAW),
        (RefusesToWrite, RAW[:-4] + MORE),
    ],
)
def test_a_wrong_codec_is_noticed(cls: type[TopicRecord], raw: bytes) -> None:
    with pytest.raises(AssertionError):
        check_codec(cls, 0, raw)


def test_an_untyped_error_is_noticed() -> None:
    with pytest.raises(IndexError):
        check_codec(EndsInATraceback, 0, RAW)


@pytest.mark.parametrize("raw", [RAW, RAW[:-1]])
def test_a_position_that_is_ignored_is_noticed(raw: bytes) -> None:
    with pytest.raises(AssertionError):
        check_inside(BeginsAtTheBeginning, 0, raw)


def test_too_much_memory_is_noticed() -> None:
    with tracing_memory(), pytest.raises(AssertionError):
        check_memory(partial(BelievesTheCount.decode_from, RAW, 0, 0), len(RAW))


def test_too_much_work_is_noticed() -> None:
    long = RAW[:-4] + b"\x01\x07\x64" + bytes(100)
    check_steps(partial(TopicRecord.decode, long, 0), len(long))
    with pytest.raises(AssertionError):
        check_steps(partial(ReadsTwiceForEveryByte.decode_from, long, 0, 0), len(long))


@pytest.mark.parametrize("raw", [b"\x01\x02", bytes(100_000)])
def test_a_failure_says_how_to_repeat_it(raw: bytes, pytestconfig: pytest.Config) -> None:
    with pytest.raises(AssertionError) as caught, Fuzz(pytestconfig).examining("X version 1", raw):
        raise AssertionError
    (note,) = caught.value.__notes__
    what, _, expression = note.partition(" of ")
    assert what == "X version 1"
    literal, _, seed = expression.partition(", found with --fuzz-seed ")
    assert seed.isdigit()
    assert len(note) < 400
    assert eval(literal, {"zlib": zlib, "b64decode": b64decode}) == raw
