"""Ids, variable-length integers, text and frames."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.protocol.errors import ErrorCode, FrameTooLarge
from kraft_wire.protocol.text import decode_utf8, encode_utf8
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.protocol.varint import (
    VarintTooLong,
    read_uvarint,
    read_varint,
    read_varlong,
    uvarint,
    varint,
    varlong,
)
from kraft_wire.wire.framing import FrameReader, frame


class TestUuid:
    def test_text_form(self) -> None:
        assert str(Uuid.ZERO) == "AAAAAAAAAAAAAAAAAAAAAA"
        assert str(Uuid.ONE) == "AAAAAAAAAAAAAAAAAAAAAQ"
        assert repr(Uuid.ONE) == "Uuid(AAAAAAAAAAAAAAAAAAAAAQ)"

    @given(st.binary(min_size=16, max_size=16))
    def test_text_is_read_back(self, raw: bytes) -> None:
        identifier = Uuid(raw)
        assert Uuid.parse(str(identifier)) == identifier
        assert Uuid.parse(str(identifier) + "==") == identifier

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "holds 0 bytes instead of 16"),
            ("AAAA", "holds 3 bytes instead of 16"),
            ("AAAAAAAAAAAAAAAAAAAAAAAAA", "longer than 24 characters"),
            ("AAAAAAAAAAAAAAAAAAAA+A", "not URL-safe base64"),
            ("AAAAAAAAAAAAAAAAAAAAA", "not URL-safe base64"),
            ("AAAAAAAAAAAAAAAAAAAAAA=", "not URL-safe base64"),
            ("AAAAAAAAAAAAAAAAAAAAé=", "not URL-safe base64"),
        ],
    )
    def test_other_text_is_refused(self, text: str, problem: str) -> None:
        with pytest.raises(ValueError, match=problem):
            Uuid.parse(text)

    def test_random_ids_are_version_4(self) -> None:
        assert Uuid.from_random(b"\xff" * 16).hex() == "ffffffffffff4fffbfffffffffffffff"
        assert Uuid.from_random(bytes(16)).hex() == "00000000000040008000000000000000"
        with pytest.raises(ValueError, match="16 random bytes, got 15"):
            Uuid.from_random(bytes(15))

    def test_only_the_zero_id_is_false(self) -> None:
        assert not Uuid()
        assert Uuid.ONE


class TestVarints:
    @given(st.integers(0, 2**32 - 1))
    def test_unsigned(self, value: int) -> None:
        raw = uvarint(value)
        assert read_uvarint(b"x" + raw + b"y", 1) == (value, 1 + len(raw))

    @given(st.integers(-(2**31), 2**31 - 1))
    def test_signed(self, value: int) -> None:
        assert read_varint(varint(value), 0) == (value, len(varint(value)))

    @given(st.integers(-(2**63), 2**63 - 1))
    def test_long(self, value: int) -> None:
        assert read_varlong(varlong(value), 0) == (value, len(varlong(value)))

    def test_known_bytes(self) -> None:
        assert (uvarint(127), uvarint(128), uvarint(300)) == (b"\x7f", b"\x80\x01", b"\xac\x02")
        assert (varint(-1), varint(1), varint(-64), varint(64)) == (b"\x01", b"\x02", b"\x7f", b"\x80\x01")
        assert len(varlong(-(2**63))) == 10

    def test_out_of_range(self) -> None:
        for write, value in ((uvarint, -1), (uvarint, 2**32), (varint, 2**31), (varlong, -(2**63) - 1)):
            with pytest.raises(ValueError, match=str(value)):
                write(value)

    def test_no_end(self) -> None:
        with pytest.raises(VarintTooLong, match="within 5 bytes"):
            read_uvarint(b"\x80" * 4 + b"\x81", 0)
        with pytest.raises(VarintTooLong, match="within 10 bytes"):
            read_varlong(b"\xff" * 10, 0)

    def test_the_data_ends(self) -> None:
        for raw in (b"", b"\x80", b"\xff\xff"):
            with pytest.raises(IndexError):
                read_uvarint(raw, 0)


class TestText:
    @given(st.text())
    def test_text_is_read_back(self, text: str) -> None:
        assert decode_utf8(encode_utf8(text)) == text

    @given(st.binary())
    def test_any_bytes_are_text(self, raw: bytes) -> None:
        assert encode_utf8(decode_utf8(raw)).decode() == decode_utf8(raw)

    def test_surrogates(self) -> None:
        assert encode_utf8("\ude00\ud83d") == b"??"
        assert encode_utf8("\ud83d\ude00") == "\N{GRINNING FACE}".encode()


class TestFraming:
    def test_frames_arrive_in_pieces(self) -> None:
        stream = frame(b"one") + frame(b"") + frame(b"x" * 200_000) + frame(b"four")
        for step in (1, 3, 1000, len(stream)):
            reader = FrameReader(200_000)
            found = []
            for start in range(0, len(stream), step):
                reader.feed(stream[start : start + step])
                while (payload := reader.next_frame()) is not None:
                    found.append(payload)
            assert found == [b"one", b"", b"x" * 200_000, b"four"]
            assert reader.buffered_bytes == 0

    def test_the_limit_is_inclusive(self) -> None:
        reader = FrameReader(5)
        reader.feed(frame(b"12345") + frame(b"123456"))
        assert reader.next_frame() == b"12345"
        with pytest.raises(FrameTooLarge, match="frame of 6 bytes, allowed are 0 to 5") as caught:
            reader.next_frame()
        assert (caught.value.size_bytes, caught.value.limit_bytes) == (6, 5)

    def test_a_negative_size(self) -> None:
        reader = FrameReader(5)
        reader.feed(b"\xff\xff\xff\xff")
        with pytest.raises(FrameTooLarge, match="frame of -1 bytes"):
            reader.next_frame()

    def test_a_size_is_judged_before_its_bytes_arrive(self) -> None:
        reader = FrameReader(1024)
        reader.feed(b"\x7f\xff\xff")
        assert reader.next_frame() is None
        reader.feed(b"\xff")
        with pytest.raises(FrameTooLarge):
            reader.next_frame()

    def test_a_truncated_stream_is_noticed(self) -> None:
        reader = FrameReader(1024)
        reader.feed(frame(b"whole") + b"\0\0\0\x09half")
        assert reader.next_frame() == b"whole"
        assert reader.next_frame() is None
        assert reader.buffered_bytes == 8


class TestErrorCodes:
    def test_unknown_codes(self) -> None:
        assert ErrorCode.of(41) is ErrorCode.NOT_CONTROLLER
        assert ErrorCode.of(31_000) is ErrorCode.UNKNOWN_SERVER_ERROR

    def test_retriable(self) -> None:
        assert ErrorCode.NOT_CONTROLLER.retriable
        assert not ErrorCode.INVALID_REQUEST.retriable
