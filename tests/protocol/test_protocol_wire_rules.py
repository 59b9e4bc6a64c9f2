"""The rules of the wire format for every type, on small messages, because Kafka's own schemas don't use all
of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from kraft_wire.protocol.errors import EncodeError
from kraft_wire.protocol.uuid import Uuid
from tests.support.both_codecs import read, unreadable, unwritable, written
from tests.support.schema_samples import field, generated, message

OLD, COMPACT = 1, 2
"""A version with fixed lengths and one with compact lengths and tags, in every sample."""
ID = bytes(range(16))
PART = [field(name="Number", type="int8")]
VARIABLE = ("string", "bytes", "records", "[]int32", "[]string", "[]Part")
NO_END = b"\xff\xff\xff\xff\xff"
"""Five bytes of a varint, none of which is its last."""


@cache
def sample(kind: str, **changes: Any) -> Any:
    """Return the class of a message with one field, called first."""
    if kind.endswith("Part"):
        changes["fields"] = PART
    node = message(name="SampleRequest", fields=[field(type=kind, **changes)])
    return generated(node).SampleRequest


def nullable(kind: str) -> Any:
    return sample(kind, nullableVersions="0+")


def null_size(kind: str, version: int) -> bytes:
    """Return the first bytes of a null of this kind in its shortest form."""
    if version == COMPACT:
        return b"\0"
    return b"\xff\xff" if kind == "string" else b"\xff\xff\xff\xff"


class TestFixedSizes:
    @pytest.mark.parametrize(
        ("kind", "value", "raw"),
        [
            ("bool", True, "01"),
            ("bool", False, "00"),
            ("int8", -2, "fe"),
            ("int16", 0x0102, "0102"),
            ("int16", -2, "fffe"),
            ("uint16", 0xFFFE, "fffe"),
            ("int32", 0x01020304, "01020304"),
            ("uint32", 0xFFFFFFFE, "fffffffe"),
            ("int64", -2, "fffffffffffffffe"),
            ("float64", 1.0, "3ff0000000000000"),
            ("float64", float("-inf"), "fff0000000000000"),
            ("uuid", Uuid(ID), ID.hex()),
        ],
    )
    def test_numbers_are_big_endian(self, kind: str, value: object, raw: str) -> None:
        cls = sample(kind)
        for version, end in ((OLD, b""), (COMPACT, b"\0")):
            assert written(cls(value), version) == bytes.fromhex(raw) + end
            assert read(cls, bytes.fromhex(raw) + end, version) == cls(value)

    @pytest.mark.parametrize("byte", [1, 2, 0x7F, 0x80, 0xFF])
    def test_any_byte_but_0_is_true(self, byte: int) -> None:
        value = read(sample("bool"), bytes((byte,)), OLD)
        assert value.first is True
        assert written(value, OLD) == b"\x01"
        assert read(sample("[]bool"), bytes((2, byte, 0)), COMPACT).first == (True,)

    @pytest.mark.parametrize(
        ("kind", "lowest", "highest"),
        [
            ("int8", -(2**7), 2**7 - 1),
            ("int16", -(2**15), 2**15 - 1),
            ("uint16", 0, 2**16 - 1),
            ("int32", -(2**31), 2**31 - 1),
            ("uint32", 0, 2**32 - 1),
            ("int64", -(2**63), 2**63 - 1),
        ],
    )
    def test_integers_are_range_checked(self, kind: str, lowest: int, highest: int) -> None:
        for number in (lowest, highest):
            alone, several = sample(kind)(number), sample(f"[]{kind}")((number, 0))
            assert read(type(alone), written(alone, OLD), OLD) == alone
            assert read(type(several), written(several, COMPACT), COMPACT) == several
        for number in (lowest - 1, highest + 1):
            expected = f"SampleRequest.first: {number} does not fit {kind}"
            assert str(unwritable(sample(kind)(number), COMPACT)) == expected
            expected = f"SampleRequest.first[1]: {number} does not fit {kind}"
            assert str(unwritable(sample(f"[]{kind}")((0, number)), OLD)) == expected

    def test_a_nan_keeps_its_bits(self) -> None:
        raw = bytes.fromhex("7ff8000000000001")
        assert written(read(sample("float64"), raw, OLD), OLD) == raw


class TestLengths:
    @pytest.mark.parametrize(
        ("kind", "value", "old", "compact"),
        [
            ("string", "ab", "0002 6162", "03 6162"),
            ("string", "", "0000", "01"),
            ("bytes", b"ab", "00000002 6162", "03 6162"),
            ("records", b"ab", "00000002 6162", "03 6162"),
            ("records", b"", "00000000", "01"),
            ("[]int8", (5, 6), "00000002 0506", "03 0506"),
            ("[]string", ("a", ""), "00000002 0001 61 0000", "03 0261 01"),
            ("[]bytes", (b"a", b""), "00000002 00000001 61 00000000", "03 0261 01"),
            ("[]uuid", (Uuid(ID),), "00000001" + ID.hex(), "02" + ID.hex()),
        ],
    )
    def test_compact_lengths_are_one_more(self, kind: str, value: object, old: str, compact: str) -> None:
        message = sample(kind)(value)
        for version, raw in ((OLD, bytes.fromhex(old)), (COMPACT, bytes.fromhex(compact) + b"\0")):
            assert written(message, version) == raw
            assert read(type(message), raw, version) == message

    def test_zero_copy_does_not_show(self) -> None:
        message = sample("bytes", zeroCopy=True)(b"ab")
        assert written(message, OLD) == b"\0\0\0\x02ab"
        assert read(type(message), b"\0\0\0\x02ab", OLD) == message

    @pytest.mark.parametrize("kind", VARIABLE)
    @pytest.mark.parametrize("version", [OLD, COMPACT])
    def test_null_is_the_shortest_negative_length(self, kind: str, version: int) -> None:
        cls = nullable(kind)
        raw = null_size(kind, version) + b"\0" * (version == COMPACT)
        assert written(cls(None), version) == raw
        assert read(cls, raw, version) == cls(None)

    @pytest.mark.parametrize("kind", VARIABLE)
    def test_any_negative_length_is_null(self, kind: str) -> None:
        lengths = (-2, -77, -(2**15)) if kind == "string" else (-2, -(2**15), -(2**31))
        size = 2 if kind == "string" else 4
        for length in lengths:
            raw = length.to_bytes(size, signed=True)
            assert read(nullable(kind), raw, OLD).first is None
            assert unreadable(sample(kind), raw, OLD) == ("first", 0, "is null, and must not be")

    @pytest.mark.parametrize("kind", VARIABLE)
    def test_a_compact_length_above_31_bits_is_null(self, kind: str) -> None:
        # Java sees the bits as a signed integer; 0x80000000 minus one is the highest positive one.
        for raw in (b"\x81\x80\x80\x80\x08", b"\xff\xff\xff\xff\x0f"):
            assert read(nullable(kind), raw + b"\0", COMPACT).first is None
            assert unreadable(sample(kind), raw + b"\0", COMPACT)[::2] == (
                "first",
                "is null, and must not be",
            )
        assert unreadable(nullable(kind), b"\x80\x80\x80\x80\x08\0", COMPACT)[0] == "first"

    @pytest.mark.parametrize("kind", VARIABLE)
    @pytest.mark.parametrize("version", [OLD, COMPACT])
    def test_null_where_it_must_not_be(self, kind: str, version: int) -> None:
        error = unwritable(sample(kind)(None), version)
        assert str(error) == "SampleRequest.first: is None, and must not be"
        size = null_size(kind, version)
        assert unreadable(sample(kind), size + b"\0", version) == ("first", 0, "is null, and must not be")

    @pytest.mark.parametrize("kind", ["bool", "int8", "int32", "float64", "uuid", "string", "bytes"])
    @pytest.mark.parametrize("version", [OLD, COMPACT])
    def test_no_element_is_none(self, kind: str, version: int) -> None:
        for values in ((None,), (None,) * 20):
            error = unwritable(nullable(f"[]{kind}")(values), version)
            assert (type(error), str(error).split(":")[0]) == (EncodeError, "SampleRequest.first[0]")

    @pytest.mark.parametrize("kind", ["string", "bytes"])
    @pytest.mark.parametrize("version", [OLD, COMPACT])
    def test_elements_are_never_null(self, kind: str, version: int) -> None:
        cls = nullable(f"[]{kind}")
        count = b"\x02" if version == COMPACT else b"\0\0\0\x01"
        raw = count + null_size(kind, version) + b"\0"
        assert unreadable(cls, raw, version)[::2] == ("first[0]", "is null, and must not be")
        assert str(unwritable(cls((None,)), version)).startswith("SampleRequest.first[0]: is a NoneType")

    def test_structs_in_arrays_are_never_null(self) -> None:
        cls = nullable("[]Part")
        assert str(unwritable(cls([None]), OLD)).startswith("SampleRequest.first[0]: is a NoneType")

    @pytest.mark.parametrize("kind", ["[]int32", "[]string", "[]uuid", "[]Part"])
    @pytest.mark.parametrize("version", [OLD, COMPACT])
    def test_values_that_are_not_arrays(self, kind: str, version: int) -> None:
        expected = "SampleRequest.first: is a int instead of an array"
        assert str(unwritable(sample(kind)(5), version)) == expected
        assert str(unwritable(nullable(kind)(5), version)) == expected

    @pytest.mark.parametrize("kind", VARIABLE)
    def test_null_at_some_versions_only(self, kind: str) -> None:
        cls = sample(kind, nullableVersions="1-2")
        assert read(cls, written(cls(None), 1), 1).first is None
        assert read(cls, written(cls(None), 2), 2).first is None
        for version in (0, 3):
            assert unwritable(cls(None), version).__class__ is EncodeError
            raw = null_size(kind, COMPACT if version > 1 else OLD)
            assert unreadable(cls, raw + b"\0", version)[::2] == ("first", "is null, and must not be")


class TestVarints:
    @pytest.mark.parametrize("kind", VARIABLE)
    def test_they_may_be_longer_than_needed(self, kind: str) -> None:
        for size in (b"\x80\x00", b"\x80\x80\x80\x80\x00"):
            assert read(nullable(kind), size + b"\x80\x00", COMPACT).first is None

    @pytest.mark.parametrize("kind", VARIABLE)
    def test_bits_above_the_32nd_are_dropped(self, kind: str) -> None:
        assert read(nullable(kind), b"\x80\x80\x80\x80\x70\0", COMPACT).first is None

    @pytest.mark.parametrize("kind", VARIABLE)
    def test_a_fifth_byte_that_goes_on_is_an_error(self, kind: str) -> None:
        expected = ("first", 0, "varint has no end within 5 bytes")
        assert unreadable(nullable(kind), NO_END + bytes(9), COMPACT) == expected

    @pytest.mark.parametrize("kind", VARIABLE)
    def test_the_end_inside_one_is_an_error(self, kind: str) -> None:
        for raw in (b"", b"\x80", b"\xff\xff\xff\xff"):
            assert unreadable(nullable(kind), raw, COMPACT) == ("first", 0, "ends inside a varint")

    def test_of_a_tag_section(self) -> None:
        cls = sample("int8")
        for raw in (b"\x05" + NO_END, b"\x05\x01" + NO_END, b"\x05\x01\x00" + NO_END):
            assert unreadable(cls, raw + bytes(9), COMPACT)[::2] == ("", "varint has no end within 5 bytes")
        long = b"\x05\x81\x00\x89\x80\x00\x82\x80\x80\x80\x00ab"
        assert read(cls, long, COMPACT).unknown_tagged_fields == ((9, b"ab"),)


class TestLimits:
    @pytest.mark.parametrize("kind", ["[]int8", "[]int64", "[]string", "[]bytes", "[]uuid", "[]Part"])
    def test_an_array_has_no_more_elements_than_bytes_remain(self, kind: str) -> None:
        expected = "array of 7 elements in 6 remaining bytes"
        assert unreadable(sample(kind), b"\0\0\0\x07" + bytes(6), OLD) == ("first", 4, expected)
        assert unreadable(sample(kind), b"\x08" + bytes(6), COMPACT) == ("first", 1, expected)

    @pytest.mark.parametrize("kind", ["[]int8", "[]bool", "[]uuid", "[]string", "[]bytes", "[]Part"])
    def test_an_array_has_at_most_a_million_elements(self, kind: str) -> None:
        count = 1_000_001
        expected = "array of 1000001 elements, at most 1000000 are allowed"
        body = bytes(count * 2)
        assert unreadable(sample(kind), count.to_bytes(4) + body, OLD) == ("first", 4, expected)
        assert unreadable(sample(kind), b"\xc2\x84\x3d" + body, COMPACT) == ("first", 3, expected)

    def test_a_million_elements_are_allowed(self) -> None:
        cls = sample("[]int8")
        for version, start in ((OLD, b"\0\x0f\x42\x40"), (COMPACT, b"\xc1\x84\x3d")):
            value = cls.decode(start + bytes(1_000_001), version)
            assert value.first == (0,) * 1_000_000

    @pytest.mark.parametrize("kind", ["string", "[]string"])
    def test_32767_bytes_of_text_are_the_limit(self, kind: str) -> None:
        longest, longer = "x" * 32767, "x" * 32768
        cls = sample(kind)
        wrap = (lambda text: (text,)) if kind == "[]string" else (lambda text: text)
        where = "first[0]" if kind == "[]string" else "first"
        for version in (OLD, COMPACT):
            message = cls(wrap(longest))
            assert read(cls, written(message, version), version) == message
            expected = f"SampleRequest.{where}: is a string of 32768 bytes, at most 32767 are allowed"
            assert str(unwritable(cls(wrap(longer)), version)) == expected
        raw = b"\x02" * (kind == "[]string") + b"\x81\x80\x02" + longer.encode() + b"\0"
        expected = "string of 32768 bytes, at most 32767 are allowed"
        assert unreadable(cls, raw, COMPACT)[::2] == (where, expected)

    @pytest.mark.parametrize("kind", ["bytes", "records"])
    def test_binary_has_no_such_limit(self, kind: str) -> None:
        message = sample(kind)(bytes(100_000))
        for version in (OLD, COMPACT):
            assert read(type(message), written(message, version), version) == message

    @pytest.mark.parametrize(
        ("raw", "reason"),
        [
            (b"\x02\x00", "2 tagged fields in 1 bytes, at most 10000 are allowed"),
            (b"\xff\xff\xff\xff\x0f" + bytes(40), "4294967295 tagged fields in 40 bytes, at most"),
            (b"\x91\x4e" + bytes(30_000), "10001 tagged fields in 30000 bytes, at most"),
        ],
    )
    def test_tags_are_counted(self, raw: bytes, reason: str) -> None:
        field, _, complaint = unreadable(sample("int8"), b"\x05" + raw, COMPACT)
        assert field == ""
        assert complaint.startswith(reason)

    def test_ten_thousand_tags_are_allowed(self) -> None:
        cls = sample("int8")
        many = cls(5, unknown_tagged_fields=tuple((tag, b"") for tag in range(10_000)))
        assert read(cls, written(many, COMPACT), COMPACT) == many

    @pytest.mark.parametrize("kind", ["string", "bytes", "records"])
    def test_a_length_above_what_remains_is_an_error(self, kind: str) -> None:
        assert unreadable(sample(kind), b"\x09abc\0", COMPACT) == ("first", 1, "needs 8 bytes, 4 remain")
        size = b"\0\x08" if kind == "string" else b"\0\0\0\x08"
        assert unreadable(sample(kind), size + b"abc", OLD) == ("first", len(size), "needs 8 bytes, 3 remain")


class TestText:
    @pytest.mark.parametrize(
        ("raw", "text"),
        [
            # Java's results; Python alone would make three characters of an encoded surrogate.
            ("eda080", "\ufffd"),
            ("edbfbf", "\ufffd"),
            ("eda08041", "\ufffdA"),
            ("eda0", "\ufffd"),
            ("eda041", "\ufffdA"),
            ("eda0bdedb880", "\ufffd\ufffd"),
            ("ed9fbf", "\ud7ff"),
            ("eda0eda0", "\ufffd\ufffd"),
            ("80", "\ufffd"),
            ("c080", "\ufffd\ufffd"),
            ("e08080", "\ufffd\ufffd\ufffd"),
            ("e282", "\ufffd"),
            ("e28241", "\ufffdA"),
            ("f09f98", "\ufffd"),
            ("f09f9841", "\ufffdA"),
            ("f4908080", "\ufffd\ufffd\ufffd\ufffd"),
            ("ff41fe", "\ufffdA\ufffd"),
            ("f09f9880", "\N{GRINNING FACE}"),
        ],
    )
    def test_malformed_text_is_replaced_as_in_java(self, raw: str, text: str) -> None:
        body = bytes.fromhex(raw)
        assert read(sample("string"), len(body).to_bytes(2) + body, OLD).first == text
        compact = bytes((len(body) + 1,)) + body
        assert read(sample("[]string"), b"\x03" + compact * 2 + b"\0", COMPACT).first == (text, text)

    @pytest.mark.parametrize(
        ("text", "raw"),
        [
            ("\ud800", b"?"),
            ("\udfff", b"?"),
            ("a\ud83d", b"a?"),
            ("\ude00\ud83d", b"??"),
            ("\ud83d\ude00", b"\xf0\x9f\x98\x80"),
            ("\ud83d\ud83d\ude00", b"?\xf0\x9f\x98\x80"),
        ],
    )
    def test_a_lone_surrogate_is_a_question_mark(self, text: str, raw: bytes) -> None:
        alone = sample("string")(text)
        assert written(alone, OLD) == len(raw).to_bytes(2) + raw
        several = sample("[]string")((text,))
        assert written(several, COMPACT) == bytes((2, len(raw) + 1)) + raw + b"\0"


class TestStructs:
    @pytest.mark.parametrize("byte", [0x00, 0x01, 0x02, 0x7F])
    def test_any_byte_from_0_on_announces_one(self, byte: int) -> None:
        value = read(nullable("Part"), bytes((byte, 5)), OLD)
        assert value.first.number == 5
        assert written(value, OLD) == b"\x01\x05"
        assert read(nullable("Part"), bytes((byte, 5, 0, 0)), COMPACT) == value

    @pytest.mark.parametrize("byte", [0x80, 0xFE, 0xFF])
    def test_any_negative_byte_is_null(self, byte: int) -> None:
        value = read(nullable("Part"), bytes((byte,)), OLD)
        assert value.first is None
        assert written(value, OLD) == b"\xff"
        assert read(nullable("Part"), bytes((byte, 0)), COMPACT) == value

    def test_none_that_must_be_there_has_no_such_byte(self) -> None:
        value = read(sample("Part"), b"\x05", OLD)
        assert (value.first.number, written(value, OLD)) == (5, b"\x05")
        assert str(unwritable(type(value)(None), OLD)) == "SampleRequest.first: is None, and must not be"

    def test_every_one_ends_with_tags_where_the_message_is_flexible(self) -> None:
        common = [{"name": "Common", "versions": "0+", "fields": [field(name="Word", type="string")]}]
        deep = field(name="Deep", type="DeepPart", fields=[field(name="More", type="[]int8")])
        fields = [
            field(name="One", type="Part", fields=[*PART, deep]),
            field(name="Shared", type="[]Common"),
        ]
        module = generated(message(name="NestedRequest", fields=fields, commonStructs=common))
        value = module.NestedRequest(module.Part(5, module.DeepPart((6,))), [module.Common("w")])
        assert written(value, OLD) == b"\x05" + b"\0\0\0\x01\x06" + b"\0\0\0\x01" + b"\0\x01w"
        assert written(value, COMPACT) == b"\x05" + b"\x02\x06\0" + b"\0" + b"\x02" + b"\x02w\0" + b"\0"
        assert read(module.NestedRequest, written(value, OLD), OLD) == value
        assert read(module.NestedRequest, written(value, COMPACT), COMPACT) == value


class TestEnds:
    FIELDS = (
        field(name="Number", type="int16"),
        field(name="Text", type="string"),
        field(name="Many", type="[]ManyPart", fields=[field(name="Id", type="uuid")]),
        field(name="Numbers", type="[]int32"),
        field(name="Raw", type="bytes", tag=0, versions="2+", taggedVersions="2+", ignorable=True),
    )

    @pytest.mark.parametrize("version", [OLD, COMPACT])
    def test_a_message_truncated_anywhere_is_an_error(self, version: int) -> None:
        module = generated(message(name="EndsRequest", fields=list(self.FIELDS)))
        value = module.EndsRequest(1, "word", [module.ManyPart(Uuid(ID))], (7, 8), b"raw")
        raw = written(value, version)
        fields = []
        for end in range(len(raw)):
            fields.append(unreadable(module.EndsRequest, raw[:end], version)[0])
        inside = ["many[0]"] * (version == COMPACT)
        tags = ["", "raw"] * (version == COMPACT)
        expected = [
            "number",
            "text",
            "many",
            "many[0].id",
            *inside,
            "numbers",
            "numbers[0]",
            "numbers[1]",
            *tags,
        ]
        assert list(dict.fromkeys(fields)) == expected

    @pytest.mark.parametrize("version", [OLD, COMPACT])
    def test_bytes_after_a_message_are_not_read(self, version: int) -> None:
        module = generated(message(name="EndsRequest", fields=list(self.FIELDS)))
        raw = written(module.EndsRequest(), version)
        found, end = module.EndsRequest.decode_from(raw + b"\xff" * 9, version, 0)
        assert (found, end) == (module.EndsRequest(), len(raw))
