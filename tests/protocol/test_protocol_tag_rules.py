"""The rules of tagged fields, on small messages. Version 1 has no tags, versions 2 and 3 have."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import pytest

from kraft_wire.protocol.errors import EncodeError, UnsupportedVersion
from kraft_wire.protocol.uuid import Uuid
from tests.support.both_codecs import read, unreadable, unwritable, written
from tests.support.schema_samples import field, generated, message, tagged

PART = [field(name="Number", type="int8")]
NAN = float("nan")
ID = bytes(range(16))


@cache
def module(kind: str, **changes: Any) -> ModuleType:
    """Return a message with one tagged field, called first."""
    if kind.endswith("Part"):
        changes["fields"] = PART
    return generated(message(name="SampleRequest", fields=[tagged(type=kind, **changes)]))


def sample(kind: str, **changes: Any) -> Any:
    return module(kind, **changes).SampleRequest


def part(number: int) -> Any:
    """Return a struct for the field of sample("Part")."""
    return module("Part").Part(number)


class TestWhatIsWritten:
    @pytest.mark.parametrize(
        ("kind", "default", "other", "raw"),
        [
            ("bool", False, True, "01"),
            ("int8", 0, -1, "ff"),
            ("int16", 0, 1, "0001"),
            ("uint16", 0, 1, "0001"),
            ("int32", 0, 1, "00000001"),
            ("uint32", 0, 1, "00000001"),
            ("int64", 0, 1, "0000000000000001"),
            ("float64", 0.0, 1.0, "3ff0000000000000"),
            ("uuid", Uuid.ZERO, Uuid(ID), ID.hex()),
            ("string", "", "a", "0261"),
            ("bytes", b"", b"a", "0261"),
            ("[]int32", (), (7,), "0200000007"),
            ("[]string", (), ("",), "0201"),
            ("[]uuid", (), (Uuid(ID),), "02" + ID.hex()),
        ],
    )
    def test_only_what_is_not_the_default(self, kind: str, default: object, other: object, raw: str) -> None:
        cls = sample(kind)
        assert cls().first == default
        assert written(cls(default), 2) == b"\0"
        body = bytes.fromhex(raw)
        assert written(cls(other), 2) == b"\x01\x00" + bytes((len(body),)) + body
        assert read(cls, written(cls(other), 2), 2) == cls(other)
        assert read(cls, b"\0", 2) == cls(default)

    @pytest.mark.parametrize(
        ("kind", "text", "default", "empty"),
        [
            ("string", "abc", "abc", ""),
            ("int32", "-1", -1, 0),
            ("bool", "true", True, False),
            ("float64", "2.5", 2.5, 0.0),
            ("uuid", "AAAAAAAAAAAAAAAAAAAAAQ", Uuid.ONE, Uuid.ZERO),
        ],
    )
    def test_zero_where_the_default_is_another(
        self, kind: str, text: str, default: object, empty: object
    ) -> None:
        cls = sample(kind, default=text)
        assert (cls().first, written(cls(default), 2)) == (default, b"\0")
        raw = written(cls(empty), 2)
        assert raw[:2] == b"\x01\x00"
        assert read(cls, raw, 2).first == empty

    def test_structs_are_compared_as_a_whole(self) -> None:
        cls = sample("Part")
        assert written(cls(part(0)), 2) == b"\0"
        assert written(cls(part(7)), 2) == b"\x01\x00\x02\x07\x00"
        odd = type(part(0))(0, unknown_tagged_fields=((4, b"z"),))
        assert written(cls(odd), 2) == b"\x01\x00\x05\x00\x01\x04\x01z"
        assert read(cls, written(cls(odd), 2), 2) == cls(odd)

    def test_arrays_of_structs(self) -> None:
        several = module("[]Part")
        cls = several.SampleRequest
        assert written(cls([]), 2) == b"\0"
        assert written(cls([several.Part(5)]), 2) == b"\x01\x00\x03\x02\x05\x00"
        assert read(cls, b"\x01\x00\x03\x02\x05\x00", 2) == cls([several.Part(5)])

    def test_not_a_number_is_never_the_default(self) -> None:
        assert written(sample("float64")(NAN), 2)[:3] == b"\x01\x00\x08"
        assert written(sample("float64", default="NaN")(), 2)[:3] == b"\x01\x00\x08"
        assert written(sample("float64", default="NaN")(NAN), 2)[:3] == b"\x01\x00\x08"
        inner = [field(name="Odd", type="float64", default="NaN")]
        struct = generated(message(fields=[tagged(type="OddPart", fields=inner)])).SampleRequest
        assert written(struct(), 2)[:3] == b"\x01\x00\x09"

    def test_minus_zero_is_zero(self) -> None:
        assert written(sample("float64")(-0.0), 2) == b"\0"


class TestNull:
    @pytest.mark.parametrize("kind", ["string", "bytes", "[]int32", "[]string", "[]Part", "Part"])
    def test_with_another_default_it_is_tag_01_00(self, kind: str) -> None:
        cls = sample(kind, nullableVersions="2+")
        assert written(cls(None), 2) == b"\x01\x00\x01\x00"
        assert read(cls, b"\x01\x00\x01\x00", 2).first is None
        assert written(cls(), 2) == b"\0"

    def test_with_another_default_than_empty(self) -> None:
        cls = sample("string", nullableVersions="2+", default="abc")
        assert written(cls(None), 2) == b"\x01\x00\x01\x00"
        assert written(cls(""), 2) == b"\x01\x00\x01\x01"

    @pytest.mark.parametrize("kind", ["string", "bytes", "[]int32", "[]string", "[]Part"])
    def test_with_a_null_default_an_empty_value_is_written(self, kind: str) -> None:
        cls = sample(kind, nullableVersions="2+", default="null")
        assert written(cls(None), 2) == b"\0"
        empty: Any = {"string": "", "bytes": b"", "[]Part": []}.get(kind, ())
        assert written(cls(empty), 2) == b"\x01\x00\x01\x01"
        assert read(cls, b"\x01\x00\x01\x01", 2) == cls(empty)
        assert read(cls, b"\0", 2).first is None

    def test_with_a_null_default_an_empty_struct_is_written(self) -> None:
        null = module("Part", nullableVersions="2+", default="null")
        cls = null.SampleRequest
        assert written(cls(), 2) == b"\0"
        assert written(cls(null.Part()), 2) == b"\x01\x00\x03\x01\x00\x00"
        assert read(cls, b"\x01\x00\x03\x01\x00\x00", 2) == cls(null.Part())

    @pytest.mark.parametrize("kind", ["string", "bytes", "[]int32", "[]string", "[]Part", "Part"])
    def test_where_it_must_not_be(self, kind: str) -> None:
        assert str(unwritable(sample(kind)(None), 2)) == "SampleRequest.first: is None, and must not be"
        if kind != "Part":
            assert unreadable(sample(kind), b"\x01\x00\x01\x00", 2)[::2] == (
                "first",
                "is null, and must not be",
            )

    def test_a_nullable_struct_has_a_byte_more_that_its_size_counts(self) -> None:
        null = module("Part", nullableVersions="2+")
        cls = null.SampleRequest
        assert written(cls(null.Part(7)), 2) == b"\x01\x00\x03\x01\x07\x00"

    @pytest.mark.parametrize("marker", [b"\x01", b"\x02", b"\x7f", b"\x81\x00", b"\xff\xff\xff\xff\x07"])
    def test_any_positive_varint_announces_a_struct(self, marker: bytes) -> None:
        cls = sample("Part", nullableVersions="2+")
        assert read(cls, b"\x01\x00\x03" + marker + b"\x07\x00", 2).first.number == 7

    @pytest.mark.parametrize(
        "marker", [b"\x00", b"\x80\x00", b"\x80\x80\x80\x80\x08", b"\xff\xff\xff\xff\x0f"]
    )
    def test_any_other_varint_is_a_null_struct(self, marker: bytes) -> None:
        cls = sample("Part", nullableVersions="2+")
        assert read(cls, b"\x01\x00\x03" + marker, 2).first is None


class TestOrder:
    FIELDS = (
        tagged(name="Late", type="int8", tag=2),
        field(name="Plain", type="int8"),
        tagged(name="Early", type="int8", tag=0),
        tagged(name="Middle", type="int8", tag=1),
    )

    def sample(self) -> Any:
        return generated(message(fields=list(self.FIELDS))).SampleRequest

    def test_known_tags_ascend_whatever_the_order_of_their_fields(self) -> None:
        cls = self.sample()
        value = cls(late=3, plain=9, early=1, middle=2)
        assert written(value, 2) == b"\x09\x03" + b"\x00\x01\x01" + b"\x01\x01\x02" + b"\x02\x01\x03"
        assert read(cls, written(value, 2), 2) == value

    def test_unknown_ones_follow(self) -> None:
        value = self.sample()(middle=2, unknown_tagged_fields=((3, b"x"), (300, b"")))
        assert written(value, 2) == b"\x00\x03" + b"\x01\x01\x02" + b"\x03\x01x" + b"\xac\x02\x00"

    def test_readers_take_any_order(self) -> None:
        cls = self.sample()
        raw = b"\x09\x05" + b"\x07\x01a" + b"\x02\x01\x03" + b"\x04\x00" + b"\x00\x01\x01" + b"\x01\x01\x02"
        assert read(cls, raw, 2) == cls(3, 9, 1, 2, unknown_tagged_fields=((7, b"a"), (4, b"")))

    @pytest.mark.parametrize("tags", [(5, 4), (5, 5), (-1, 5), (5, 2**31 - 1), (2**31,)])
    def test_unknown_ones_that_do_not_ascend_are_not_written(self, tags: tuple[int, ...]) -> None:
        value = self.sample()(unknown_tagged_fields=tuple((tag, b"") for tag in tags))
        error = unwritable(value, 2)
        assert isinstance(error, EncodeError)
        assert error.field == "unknown_tagged_fields"


class TestDuplicates:
    def test_the_last_of_a_known_tag_wins(self) -> None:
        cls = sample("int8")
        assert read(cls, b"\x03\x00\x01\x05\x00\x01\x06\x00\x01\x07", 2) == cls(7)
        assert written(read(cls, b"\x02\x00\x01\x05\x00\x01\x06", 2), 2) == b"\x01\x00\x01\x06"

    def test_the_last_one_wins_where_it_is_the_default(self) -> None:
        assert read(sample("int8"), b"\x02\x00\x01\x05\x00\x01\x00", 2) == sample("int8")()
        cls = sample("[]int8", nullableVersions="2+")
        assert read(cls, b"\x02\x00\x02\x02\x05\x00\x01\x00", 2).first is None

    def test_all_of_an_unknown_tag_are_kept(self) -> None:
        value = read(sample("int8"), b"\x02\x05\x01a\x05\x01b", 2)
        assert value.unknown_tagged_fields == ((5, b"a"), (5, b"b"))


class TestSizes:
    @pytest.mark.parametrize("size", [0, 1, 2, 5, 99, 2**32 - 1])
    @pytest.mark.parametrize(("kind", "raw", "value"), [("int16", b"\x00\x07", 7), ("string", b"\x02a", "a")])
    def test_a_known_tag_s_does_not_matter(self, kind: str, raw: bytes, value: object, size: int) -> None:
        said = size.to_bytes(1) if size < 128 else b"\xff\xff\xff\xff\x0f"
        assert read(sample(kind), b"\x01\x00" + said + raw, 2).first == value

    @pytest.mark.parametrize("size", [b"\x05", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f"])
    def test_an_unknown_tag_s_must_be_there(self, size: bytes) -> None:
        field, offset, reason = unreadable(sample("int8"), b"\x01\x09" + size + b"abcd", 2)
        assert (field, offset) == ("", 2 + len(size))
        assert reason.endswith(" bytes, 4 remain")

    @pytest.mark.parametrize(
        "kind", ["string", "bytes", "[]int32", "[]string", "[]bytes", "[]uuid", "uuid", "int32"]
    )
    def test_a_value_that_breaks_off_is_an_error_whatever_follows_in_the_schema(self, kind: str) -> None:
        fields = [tagged(name="Long", type=kind), tagged(name="Short", type="int8", tag=1)]
        cls = generated(message(fields=fields)).SampleRequest
        assert unreadable(cls, b"\x01\x00\x09" + b"\x09" + b"\x02" * 2, 2)[0].startswith("long")


class TestUnknown:
    NODE = (
        field(name="Parts", type="[]Part", fields=PART),
        tagged(name="Inside", type="InsidePart", fields=PART, ignorable=True),
    )

    def test_they_are_kept_in_every_struct(self) -> None:
        nested = generated(message(fields=list(self.NODE)))
        raw = b"\x02\x05\x01\x00\x01a" + b"\x02" + b"\x00\x05\x06\x01\x07\x01b" + b"\x09\x01c"
        value = read(nested.SampleRequest, raw, 2)
        assert value.parts[0].unknown_tagged_fields == ((0, b"a"),)
        assert value.inside.unknown_tagged_fields == ((7, b"b"),)
        assert value.unknown_tagged_fields == ((9, b"c"),)
        assert written(value, 2) == raw

    def test_they_count_in_equality(self) -> None:
        nested = generated(message(fields=list(self.NODE)))
        with_one = nested.Part(5, unknown_tagged_fields=((0, b"a"),))
        assert with_one != nested.Part(5)
        assert with_one == nested.Part(5, unknown_tagged_fields=((0, b"a"),))
        assert nested.SampleRequest([with_one]) != nested.SampleRequest([nested.Part(5)])

    @pytest.mark.parametrize("place", ["message", "element"])
    def test_a_version_without_tags_cannot_carry_them(self, place: str) -> None:
        nested = generated(message(fields=list(self.NODE)))
        value = nested.SampleRequest([nested.Part(5)])
        target = value if place == "message" else value.parts[0]
        target.unknown_tagged_fields = ((9, b""),)
        error = unwritable(value, 1)
        assert isinstance(error, UnsupportedVersion)
        inside = "" if place == "message" else "parts[0]."
        assert (error.version, error.field) == (1, f"{inside}unknown_tagged_fields")

    @pytest.mark.parametrize("tag", [b"\x01", b"\x7f", b"\xff\x01", b"\xfe\xff\xff\xff\x07"])
    def test_their_tags_may_be_large(self, tag: bytes) -> None:
        raw = b"\x01" + tag + b"\x02ab"
        assert written(read(sample("int8"), raw, 2), 2) == raw

    def test_a_negative_one_is_read_and_never_written(self) -> None:
        value = read(sample("int8"), b"\x01\xff\xff\xff\xff\x0f\x00", 2)
        assert value.unknown_tagged_fields == ((-1, b""),)
        assert "tag -1" in str(unwritable(value, 2))


class TestVersions:
    def test_without_versions_a_field_has_those_at_which_it_is_tagged(self) -> None:
        cls = generated(
            message(fields=[tagged(type="int8", versions=None, taggedVersions="3+")])
        ).SampleRequest
        assert [written(cls(), version) for version in range(4)] == [b"", b"", b"\0", b"\0"]
        assert written(cls(5), 3) == b"\x01\x00\x01\x05"
        assert isinstance(unwritable(cls(5), 2), UnsupportedVersion)

    def test_a_field_that_becomes_tagged(self) -> None:
        cls = generated(message(fields=[field(type="int8", tag=0, taggedVersions="3+")])).SampleRequest
        expected = [b"\x05", b"\x05", b"\x05\x00", b"\x01\x00\x01\x05"]
        assert [written(cls(5), version) for version in range(4)] == expected
        assert all(read(cls, expected[version], version) == cls(5) for version in range(4))

    @pytest.mark.parametrize(("tagged_from", "version"), [("3+", 2), ("9+", 3)])
    def test_a_known_tag_where_it_is_not_valid(self, tagged_from: str, version: int) -> None:
        node = field(type="int8", versions=tagged_from, tag=0, taggedVersions=tagged_from)
        cls = generated(message(fields=[node])).SampleRequest
        expected = ("first", 3, f"tag 0 is not valid at version {version}")
        assert unreadable(cls, b"\x01\x00\x01\x05", version) == expected

    def test_a_tagged_field_of_a_field_that_has_its_place_still(self) -> None:
        cls = generated(message(fields=[field(type="int8", tag=0, taggedVersions="3+")])).SampleRequest
        assert unreadable(cls, b"\x05\x01\x00\x01\x05", 2)[2] == "tag 0 is not valid at version 2"


class TestTagsOfTwoBytes:
    """The first byte of a tag from 128 on may equal the number of another tag."""

    @staticmethod
    @cache
    def sample() -> Any:
        fields = [tagged(name=f"Field{tag}", type="int8", tag=tag) for tag in range(300)]
        return generated(message(fields=fields)).SampleRequest

    @pytest.mark.parametrize("tag", [127, 128, 129, 255, 256, 299])
    def test_one_alone(self, tag: int) -> None:
        value = self.sample()(**{f"field{tag}": 7})
        assert read(type(value), written(value, 2), 2) == value

    def test_all(self) -> None:
        value = self.sample()(*(1 + tag % 100 for tag in range(300)))
        assert read(type(value), written(value, 2), 2) == value

    def test_one_that_is_unknown(self) -> None:
        value = self.sample()(field128=5, unknown_tagged_fields=((300, b"z"),))
        assert read(type(value), written(value, 2), 2) == value
