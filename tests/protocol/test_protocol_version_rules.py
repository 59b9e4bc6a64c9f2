"""The effect of versions on fields: fields that are absent, that change, that can't be written."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.protocol.errors import EncodeError, UnsupportedVersion
from kraft_wire.protocol.uuid import Uuid
from tests.support.both_codecs import read, unwritable, written
from tests.support.schema_samples import field, generated, message

PART = [field(name="Number", type="int8")]


def sample(*fields: dict[str, Any], **changes: Any) -> Any:
    return generated(message(fields=list(fields), **changes)).SampleRequest


class TestAbsentFields:
    KINDS = (
        ("bool", True),
        ("int8", 1),
        ("int16", 1),
        ("uint16", 1),
        ("int32", 1),
        ("uint32", 1),
        ("int64", 1),
        ("float64", 1.0),
        ("uuid", Uuid.ONE),
        ("string", "a"),
        ("bytes", b"a"),
        ("records", b"a"),
        ("[]int8", (1,)),
        ("[]string", ("",)),
    )

    @pytest.mark.parametrize(("kind", "value"), KINDS)
    def test_a_value_that_can_not_be_written_is_an_error(self, kind: str, value: object) -> None:
        cls = sample(field(type=kind, versions="2+"))
        error = unwritable(cls(value), 1)
        assert isinstance(error, UnsupportedVersion)
        assert (error.message, error.version, error.field) == ("SampleRequest", 1, "first")
        assert written(cls(), 1) == b""

    @pytest.mark.parametrize(("kind", "value"), KINDS)
    def test_an_ignorable_value_is_dropped(self, kind: str, value: object) -> None:
        cls = sample(field(type=kind, versions="2+", ignorable=True))
        assert written(cls(value), 1) == b""

    def test_a_field_that_ended(self) -> None:
        cls = sample(field(type="int8", versions="0-1"))
        assert isinstance(unwritable(cls(1), 2), UnsupportedVersion)
        assert written(cls(), 2) == b"\0"

    @pytest.mark.parametrize(
        ("kind", "default", "value"),
        [("int32", "-1", -1), ("string", "x", "x"), ("bool", "true", True), ("string", "null", None)],
    )
    def test_they_hold_their_defaults_when_read(self, kind: str, default: str, value: object) -> None:
        null = {"nullableVersions": "2+"} if default == "null" else {}
        cls = sample(field(type=kind, versions="2+", default=default, **null))
        assert read(cls, b"", 1).first == value
        assert written(cls(), 1) == b""

    @pytest.mark.parametrize("kind", ["string", "bytes", "[]int8", "[]Part", "Part"])
    def test_null_is_a_value_where_the_default_is_another(self, kind: str) -> None:
        inner = {"fields": PART} if kind.endswith("Part") else {}
        cls = sample(field(type=kind, versions="1+", nullableVersions="1+", **inner))
        error = unwritable(cls(None), 0)
        assert (type(error), str(error).split(":")[0]) == (
            UnsupportedVersion,
            "SampleRequest.first version 0",
        )
        assert written(cls(), 0) == b""

    @pytest.mark.parametrize("kind", ["string", "bytes", "[]int8", "[]Part"])
    def test_empty_is_a_value_where_null_is_the_default(self, kind: str) -> None:
        inner = {"fields": PART} if kind.endswith("Part") else {}
        cls = sample(field(type=kind, versions="1+", nullableVersions="1+", default="null", **inner))
        empty: Any = {"string": "", "bytes": b"", "[]Part": []}.get(kind, ())
        assert isinstance(unwritable(cls(empty), 0), UnsupportedVersion)
        assert written(cls(None), 0) == b""

    def test_a_struct_is_compared_with_an_untouched_one(self) -> None:
        module = generated(message(fields=[field(type="Part", versions="2+", fields=PART)]))
        assert written(module.SampleRequest(module.Part()), 1) == b""
        assert isinstance(unwritable(module.SampleRequest(module.Part(1)), 1), UnsupportedVersion)

    def test_the_error_names_the_place(self) -> None:
        inner = [*PART, field(name="Late", versions="3+")]
        module = generated(message(fields=[field(type="[]Part", fields=inner)]))
        error = unwritable(module.SampleRequest([module.Part(), module.Part(0, 5)]), 2)
        assert isinstance(error, UnsupportedVersion)
        assert (error.version, error.field) == (2, "first[1].late")

    def test_a_tagged_field_at_a_version_without_tags(self) -> None:
        node = field(type="int8", versions="2+", tag=0, taggedVersions="2+")
        assert isinstance(unwritable(sample(node)(5), 1), UnsupportedVersion)
        assert written(sample(node | {"ignorable": True})(5), 1) == b""

    def test_a_field_of_no_version(self) -> None:
        cls = sample(field(type="int8", versions="7+"), field(name="Second", type="int8"))
        assert written(cls(second=5), 1) == b"\x05"
        assert isinstance(unwritable(cls(first=1), 1), UnsupportedVersion)


class TestDefaults:
    def test_of_every_type(self) -> None:
        kinds = {
            "bool": False, "int8": 0, "int16": 0, "uint16": 0, "int32": 0, "uint32": 0, "int64": 0,
            "float64": 0.0, "uuid": Uuid.ZERO, "string": "", "bytes": b"", "records": None,
            "[]int8": (), "[]string": (), "[]uuid": (),
        }  # fmt: skip
        fields = [field(name=f"F{number}", type=kind) for number, kind in enumerate(kinds)]
        fields += [
            field(name="Struct", type="Part", fields=PART),
            field(name="Structs", type="[]ManyPart", fields=PART),
        ]
        module = generated(message(fields=fields))
        value = module.SampleRequest()
        assert [getattr(value, f"f{number}") for number in range(len(kinds))] == list(kinds.values())
        assert (value.struct, value.structs) == (module.Part(0), [])

    @pytest.mark.parametrize(
        ("kind", "text", "value"),
        [
            ("int8", "0x7f", 127),
            ("int64", "-9223372036854775808", -(2**63)),
            ("uint32", 4294967295, 4294967295),
            ("bool", "TRUE", True),
            ("bool", True, True),
            ("string", 5, "5"),
            ("string", "null", "null"),
            ("float64", "-Infinity", float("-inf")),
            ("float64", "1e3", 1000.0),
            ("uuid", "AAAAAAAAAAAAAAAAAAAAAQ==", Uuid.ONE),
        ],
    )
    def test_as_the_schema_says(self, kind: str, text: object, value: object) -> None:
        null = {"nullableVersions": "0+"} if text == "null" else {}
        expected = None if null else value
        assert sample(field(type=kind, default=text, **null))().first == expected

    def test_records_are_null_whatever_the_schema_says(self) -> None:
        assert sample(field(type="records", default=""))().first is None


class TestFlexibleOverrides:
    def test_a_string_that_is_never_compact(self) -> None:
        cls = sample(field(type="string", flexibleVersions="none", nullableVersions="0+"))
        assert written(cls("a"), 2) == b"\x00\x01a\x00"
        assert written(cls(None), 2) == b"\xff\xff\x00"
        assert read(cls, b"\x00\x01a\x00", 2) == cls("a")

    def test_bytes_that_become_compact_later(self) -> None:
        cls = sample(field(type="bytes", flexibleVersions="3+"))
        assert written(cls(b"a"), 2) == b"\x00\x00\x00\x01a\x00"
        assert written(cls(b"a"), 3) == b"\x02a\x00"
        assert all(read(cls, written(cls(b"a"), version), version) == cls(b"a") for version in range(4))


class TestMapKeys:
    KEYED = (field(name="Key", type="int8", mapKey=True), field(name="Value", type="int8"))

    @pytest.mark.parametrize("version", [1, 2])
    def test_order_and_duplicates_are_kept(self, version: int) -> None:
        module = generated(message(fields=[field(type="[]Part", fields=list(self.KEYED))]))
        pairs = [(2, 1), (1, 1), (2, 1), (2, 0)]
        value = module.SampleRequest([module.Part(*pair) for pair in pairs])
        again = read(module.SampleRequest, written(value, version), version)
        assert [(each.key, each.value) for each in again.first] == pairs
        assert written(again, version) == written(value, version)


class TestRanges:
    @pytest.mark.parametrize("version", [-1, 4, 32767])
    def test_a_version_that_the_message_lacks(self, version: int) -> None:
        cls = sample(field())
        with pytest.raises(UnsupportedVersion, match="known are 0 to 3"):
            cls.decode(bytes(4), version)
        assert isinstance(unwritable(cls(), version), UnsupportedVersion)

    @pytest.mark.parametrize("version", [0, 1])
    def test_a_message_without_versions(self, version: int) -> None:
        cls = sample(validVersions="none", flexibleVersions=None)
        with pytest.raises(UnsupportedVersion, match="it has no version"):
            cls.decode(b"", version)
        assert isinstance(unwritable(cls(), version), UnsupportedVersion)

    def test_a_forbidden_null_is_an_error_at_every_version(self) -> None:
        assert type(unwritable(sample(field(type="string"))(None), 1)) is EncodeError
