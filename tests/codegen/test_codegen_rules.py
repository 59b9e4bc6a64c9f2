"""Every rule of the schema language, each broken once."""

from __future__ import annotations

from typing import Any

import pytest
from schema_samples import checked, field, message

from codegen.check import check
from codegen.errors import SchemaError
from codegen.kafka_json import parse
from codegen.model import FIXED_SIZES
from codegen.versions import ALL, NONE, Versions


def test_the_samples_are_right() -> None:
    checked(message())


def refused(node: dict[str, Any]) -> str:
    with pytest.raises(SchemaError) as caught:
        checked(node)
    return str(caught.value)


class TestVersions:
    @pytest.mark.parametrize(
        ("text", "low", "high"),
        [("3", 3, 3), ("1-4", 1, 4), ("2+", 2, 32767), (" 0+ ", 0, 32767), ("none", 0, -1)],
    )
    def test_grammar(self, text: str, low: int, high: int) -> None:
        versions = Versions.parse(text)
        assert (versions.low, versions.high) == (low, high)
        assert str(versions) == text.strip()

    @pytest.mark.parametrize("text", ["", "+", "-1", "1-", "4-1", "1+2", "a", "None", "32768", "0-32768"])
    def test_anything_else_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match="range"):
            Versions.parse(text)

    def test_sets(self) -> None:
        assert Versions(1, 4).intersect(Versions(3, 9)) == Versions(3, 4)
        assert Versions(1, 2).intersect(Versions(3, 9)) == NONE
        assert ALL.contains(NONE)
        assert not Versions(1, 4).contains(Versions(0, 2))


COORDINATOR_KEY: dict[str, Any] = {
    "type": "coordinator-key",
    "validVersions": "0",
    "flexibleVersions": "none",
}


class TestFile:
    def parsed(self, text: str) -> str:
        with pytest.raises(SchemaError) as caught:
            parse(text, "sample.json")
        return str(caught.value)

    def test_comments_and_strings(self) -> None:
        text = """// licence
        {"name": "A", /* not // this */ "type": "data", "validVersions": "0", // and this
         "flexibleVersions": "0+", "fields": [{"name": "B", "type": "string", "versions": "0+",
         "default": "http://x /* y */", "about": "prose"}]}"""
        assert parse(text, "sample").fields[0].default == "http://x /* y */"

    def test_one_value_where_an_array_is_expected(self) -> None:
        text = (
            '{"name": "A", "type": "request", "apiKey": 1, "validVersions": "0", "flexibleVersions": "0+", '
        )
        text += '"listeners": "broker", "fields": {"name": "B", "type": "int8", "versions": "0+"}}'
        parsed = parse(text, "sample")
        assert (parsed.listeners, parsed.fields[0].name) == (("broker",), "B")

    def test_what_kafka_3_9_writes(self) -> None:
        text = (
            '{"name": "A", "type": "request", "apiKey": "1", "validVersions": "0", "flexibleVersions": "0+", '
            '"listeners": ["zkBroker", "broker"], "fields": [{"name": "B", "type": "int8", "versions": "0+", '
            '"versions": "0+", "tag": "0", "taggedVersions": "0+"}]}'
        )
        parsed = parse(text, "sample")
        check(parsed)
        assert (parsed.api_key, parsed.fields[0].tag) == (1, 0)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("{} {}", "Extra data"),
            ("[]", "a schema is one JSON object"),
            ("{", "not one JSON object"),
            ('{"name": "A", "name": "B"}', "'name' occurs twice"),
            ('{"nome": "A"}', "unknown key nome"),
            ('{"type": "data"}', "name is missing"),
            ('{"name": "A", "type": "query"}', "type 'query' is none of"),
            ('{"name": "A", "type": "data"}', "validVersions is missing"),
            (
                '{"name": "A", "type": "data", "validVersions": "x"}',
                "A: validVersions: 'x' is no version range",
            ),
            (
                '{"name": "A", "type": "data", "validVersions": "0", "apiKey": "one"}',
                "apiKey is 'one' instead of",
            ),
            ('{"name": "A", "type": "data", "validVersions": "0", "fields": [3]}', "3 instead of an object"),
            ('{"name": "A", "about": "prose"}', "unknown key about"),
            ('{"name": "A", "default": NaN}', "NaN is no JSON"),
            ("", "not one JSON object"),
            ("null", "a schema is one JSON object"),
        ],
    )
    def test_what_is_no_schema(self, text: str, problem: str) -> None:
        assert problem in self.parsed(text)

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            ({"validVersions": "0+"}, "validVersions has no maximum"),
            ({"validVersions": "none"}, "validVersions is none, but there are fields"),
            ({"flexibleVersions": None}, "flexibleVersions is missing"),
            ({"flexibleVersions": "1-2"}, "neither none nor open-ended"),
            ({"type": "response", "listeners": ["broker"]}, "listeners are for requests only"),
            (
                {"type": "response", "latestVersionUnstable": True},
                "latestVersionUnstable is for requests only",
            ),
            ({"latestVersionUnstable": "yes"}, "latestVersionUnstable is 'yes' instead of true or false"),
            ({"listeners": ["zookeeper"]}, "listener 'zookeeper' is none of"),
            ({"fields": [field(mapKey=True)]}, "mapKey is not possible at the top level"),
            ({"type": None}, "type is missing"),
            ({"type": "REQUEST"}, "type 'REQUEST' is none of"),
            ({"validVersions": ""}, "validVersions is missing"),
            ({"apiKey": 32768}, "apiKey 32768 does not fit int16"),
            ({"type": "coordinator-value", "apiKey": None}, "a coordinator-value needs an apiKey"),
            (COORDINATOR_KEY | {"apiKey": None}, "a coordinator-key needs an apiKey"),
            (COORDINATOR_KEY | {"validVersions": "0-1"}, "a coordinator-key has validVersions 0"),
            (COORDINATOR_KEY | {"flexibleVersions": "0+"}, "a coordinator-key has flexibleVersions none"),
        ],
    )
    def test_rules_of_the_message(self, change: dict[str, Any], problem: str) -> None:
        assert problem in refused(message(**change))

    def test_a_message_without_versions(self) -> None:
        checked(message(validVersions="none", flexibleVersions=None, fields=None))

    @pytest.mark.parametrize(
        "kind", ["request", "response", "header", "metadata", "data", "coordinator-value"]
    )
    def test_types(self, kind: str) -> None:
        checked(message(type=kind))
        checked(message(**COORDINATOR_KEY))

    @pytest.mark.parametrize(
        "change",
        [
            {"deprecatedVersions": "0-1"},
            {"flexibleVersions": "none"},
            {"flexibleVersions": "9+"},
            {"listeners": []},
            {"listeners": ["broker", "controller"]},
            {"latestVersionUnstable": True},
            {"latestVersionUnstable": None},
            {"validVersions": 3},
            {"fields": []},
            {"fields": None},
            {"type": "response", "listeners": []},
            {"type": "response", "latestVersionUnstable": False},
        ],
    )
    def test_what_is_allowed(self, change: dict[str, Any]) -> None:
        checked(message(**change))


INNER = [field(name="Inner", type="int8")]
TWO_TAGS = [field(name=name, tag=0, taggedVersions="2+") for name in ("A", "B")]


class TestStructs:
    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            ({"fields": [field(type="Part")]}, "SampleRequest.First: struct Part is not specified"),
            (
                {
                    "fields": [
                        field(type="Part", fields=INNER),
                        field(name="Second", type="[]Part", fields=INNER),
                    ]
                },
                "struct Part is specified twice",
            ),
            (
                {
                    "commonStructs": [{"name": "Part", "versions": "0+", "fields": INNER}],
                    "fields": [field(type="Part", fields=INNER)],
                },
                "common struct Part is re-specified",
            ),
            (
                {"commonStructs": [{"name": "Part", "versions": "0+", "fields": INNER}] * 2},
                "struct Part is specified twice",
            ),
            (
                {"commonStructs": [{"name": "part", "versions": "0+", "fields": INNER}]},
                "does not begin with a capital",
            ),
            ({"commonStructs": [{"name": "Part", "fields": INNER}]}, "versions is missing"),
            (
                {
                    "commonStructs": [
                        {"name": "Part", "versions": "0+", "fields": [field(type="[]Other")]},
                        {"name": "Other", "versions": "0+", "fields": [field(type="[]Part")]},
                    ]
                },
                "a common struct contains itself",
            ),
            (
                {
                    "commonStructs": [{"name": "Part", "versions": "0+", "fields": [field(type="[]Part")]}],
                    "fields": [field(type="Part")],
                },
                "a common struct contains itself",
            ),
            (
                {
                    "commonStructs": [
                        {"name": "Part", "versions": "0+", "fields": [field(type="Other", fields=INNER)]}
                    ]
                },
                "Part.First: a struct inside a common struct is common too",
            ),
            (
                {
                    "commonStructs": [{"name": "Part", "versions": "2+", "fields": INNER}],
                    "fields": [field(type="[]Part", versions="1+")],
                },
                "SampleRequest.First: struct Part exists at versions 2+, not at all of 1-3",
            ),
            (
                {
                    "commonStructs": [
                        {"name": "Part", "versions": "1+", "fields": [field(type="Deep")]},
                        {"name": "Deep", "versions": "0-2", "fields": INNER},
                    ]
                },
                "Part.First: struct Deep exists at versions 0-2, not at all of 1-3",
            ),
            ({"fields": [field(type="Message", fields=INNER)]}, "has a name that generated code needs"),
            (
                {"fields": [field(type="SampleRequest", fields=INNER)]},
                "struct SampleRequest is specified twice",
            ),
            ({"fields": [field(), field()]}, "field First is specified twice"),
            ({"fields": [field(name="AField"), field(name="aField")]}, "two fields would be called a_field"),
            (
                {"fields": [field(tag=1, taggedVersions="2+")]},
                "tags [1] are not unique and contiguous from 0",
            ),
            (
                {"fields": [field(type="[]Part", fields=TWO_TAGS)]},
                "SampleRequest.First: tags [0, 0] are not unique",
            ),
        ],
    )
    def test_rules_of_structs(self, change: dict[str, Any], problem: str) -> None:
        assert problem in refused(message(**change))

    def test_common_structs_are_used_often_and_in_each_other(self) -> None:
        part = {"name": "Part", "versions": "1+", "fields": [field(type="[]Deep", versions="2+")]}
        deep = {"name": "Deep", "versions": "2+", "fields": INNER}
        fields = [field(type="Part", versions="1+"), field(name="Second", type="[]Part", versions="1-2")]
        checked(message(commonStructs=[part, deep], fields=fields))

    def test_tags_of_any_order(self) -> None:
        checked(message(fields=[TWO_TAGS[0], field(name="C", tag=1, taggedVersions="2+")]))
        checked(message(fields=[field(name="C", tag=1, taggedVersions="2+"), TWO_TAGS[0]]))

    def test_a_map_key_in_an_array_of_structs(self) -> None:
        checked(message(fields=[field(type="[]Part", fields=[field(type="string", mapKey=True)])]))


class TestFields:
    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            ({"name": "1st"}, "a field's name is a letter"),
            ({"name": "a_b"}, "a field's name is a letter"),
            ({"name": "\N{LATIN SMALL LETTER E WITH ACUTE}"}, "a field's name is a letter"),
            ({"name": None}, "name is missing"),
            ({"versions": None}, "versions is missing"),
            ({"type": None}, "type is missing"),
            ({"type": "int128"}, "'int128' is no primitive type"),
            ({"type": "[][]int32"}, "arrays of arrays don't exist"),
            ({"type": "[]records"}, "arrays of records don't exist"),
            ({"color": "red"}, "SampleRequest.First: unknown key color"),
            ({"deprecatedVersions": "0"}, "SampleRequest.First: unknown key deprecatedVersions"),
            ({"fields": INNER}, "a field of type int32 has no fields"),
            *(
                ({"type": kind, "nullableVersions": "0+"}, f"type {kind} is never null")
                for kind in FIXED_SIZES
            ),
            ({"zeroCopy": True}, "zeroCopy is for bytes only"),
            ({"type": "[]bytes", "zeroCopy": True}, "zeroCopy is for bytes only"),
            ({"entityType": "brokerName"}, "entityType 'brokerName' is none of"),
            ({"entityType": "topicName"}, "entityType topicName is of type string, not int32"),
            ({"tag": 0}, "a tag without taggedVersions"),
            ({"taggedVersions": "2+"}, "taggedVersions without a tag"),
            ({"tag": -1, "taggedVersions": "2+"}, "tag -1 is negative"),
            ({"tag": 0, "taggedVersions": "2-3"}, "taggedVersions 2-3 is not open-ended"),
            ({"tag": 0, "taggedVersions": "2+", "versions": "3+"}, "is not within versions 3+"),
            ({"tag": 0, "taggedVersions": "1+"}, "taggedVersions 1+ is not within the flexible versions 2+"),
            (
                {"type": "string", "tag": 0, "taggedVersions": "2+", "nullableVersions": "3+"},
                "all tagged versions are nullable, or none",
            ),
            ({"tag": 0, "taggedVersions": "2+", "mapKey": True}, "a mapKey has no tag"),
            ({"type": "records", "tag": 0, "taggedVersions": "2+"}, "records have no tag"),
            ({"flexibleVersions": "none"}, "override is for string and bytes only"),
            ({"type": "[]string", "flexibleVersions": "none"}, "override is for string and bytes only"),
            ({"type": "records", "flexibleVersions": "none"}, "override is for string and bytes only"),
            (
                {"type": "string", "flexibleVersions": "1+"},
                "flexibleVersions 1+ is not within the message's 2+",
            ),
            ({"default": "x"}, "default 'x' is no integer"),
            ({"default": "0x"}, "default '0x' is no integer"),
            ({"default": "0x-1"}, "default '0x-1' is no integer"),
            ({"default": "1e3"}, "default '1e3' is no integer"),
            ({"default": "1_0"}, "default '1_0' is no integer"),
            ({"default": " 5"}, "default ' 5' is no integer"),
            ({"default": "\N{ARABIC-INDIC DIGIT THREE}"}, "is no integer"),
            ({"default": "-2147483649"}, "does not fit int32"),
            ({"default": "0x80000000"}, "does not fit int32"),
            ({"type": "int64", "default": "9223372036854775808"}, "does not fit int64"),
            ({"type": "int16", "default": "-32769"}, "does not fit int16"),
            ({"type": "int8", "default": "128"}, "default '128' does not fit int8"),
            ({"type": "uint16", "default": -1}, "default '-1' does not fit uint16"),
            ({"type": "uint32", "default": "0x100000000"}, "does not fit uint32"),
            ({"default": "null"}, "default 'null' is no integer"),
            ({"type": "bool", "default": "yes"}, "default 'yes' is neither true nor false"),
            ({"type": "bool", "default": 1}, "default '1' is neither true nor false"),
            ({"type": "float64", "default": "one"}, "default 'one' is no number"),
            ({"type": "float64", "default": "nan"}, "default 'nan' is no number"),
            ({"type": "float64", "default": "inf"}, "default 'inf' is no number"),
            ({"type": "float64", "default": "1_0"}, "default '1_0' is no number"),
            ({"type": "uuid", "default": "AAAA"}, "is no base64 id of 16 bytes"),
            ({"type": "uuid", "default": "AAAAAAAAAAAAAAAAAAAAAQ="}, "is no base64 id of 16 bytes"),
            ({"type": "uuid", "default": "AAAAAAAAAAAAAAAAAAAA+A"}, "is no base64 id of 16 bytes"),
            ({"type": "uuid", "default": "AAAAAAAAAAAAAAAAAAAAAQ!"}, "is no base64 id of 16 bytes"),
            ({"type": "string", "default": "null"}, "the default is null, but not every version is nullable"),
            (
                {"type": "string", "default": "null", "nullableVersions": "1+"},
                "the default is null, but not every version is nullable",
            ),
            ({"type": "bytes", "default": "x"}, "default 'x' is neither empty nor null, as bytes needs"),
            ({"type": "[]int8", "default": "1"}, "default '1' is neither empty nor null, as array needs"),
            (
                {"type": "Part", "fields": INNER, "default": "{}"},
                "default '{}' is neither empty nor null, as struct",
            ),
        ],
    )
    def test_rules_of_fields(self, change: dict[str, Any], problem: str) -> None:
        assert problem in refused(message(fields=[field(**change)]))

    @pytest.mark.parametrize(
        "change",
        [
            {"versions": None, "tag": 0, "taggedVersions": "2+"},
            {"type": "bool", "default": True},
            {"type": "bool", "default": "TRUE"},
            {"type": "int64", "default": "0x7fffffffffffffff"},
            {"type": "int16", "default": -7},
            {"type": "float64", "default": "1e3"},
            {"type": "uuid", "default": "AAAAAAAAAAAAAAAAAAAAAQ"},
            {"type": "string", "default": "null", "nullableVersions": "0+"},
            {"type": "string", "flexibleVersions": "none"},
            {"type": "[]string", "entityType": "topicName"},
            {"type": "[]int8", "default": "null", "nullableVersions": "0+"},
            {"type": "string", "default": 5},
            {"type": "float64", "default": "NaN"},
            {"type": "float64", "default": "-Infinity"},
            {"type": "float64", "default": " .5e-3 "},
            {"type": "uuid", "default": "AAAAAAAAAAAAAAAAAAAAAQ=="},
            {"type": "records", "default": "null"},
            {"type": "string", "default": "null", "nullableVersions": "0-3", "versions": "0-3"},
            {"type": "bytes", "default": "null", "nullableVersions": "0+"},
            {"type": "Part", "fields": INNER, "default": "null", "nullableVersions": "0+"},
            {"type": "[]Part", "fields": INNER, "default": "null", "nullableVersions": "0+"},
            {"type": "bytes", "default": ""},
            {"about": "prose"},
            {"ignorable": None},
            {"type": " [] int8 "},
            {"entityType": "unknown"},
            {"entityType": "brokerId"},
            {"type": "bytes", "zeroCopy": True},
            {"type": "bytes", "tag": 0, "taggedVersions": "3+", "versions": "1+", "nullableVersions": "0+"},
        ],
    )
    def test_what_is_allowed(self, change: dict[str, Any]) -> None:
        checked(message(fields=[field(**change)]))

    @pytest.mark.parametrize("kind", ["string", "bytes", "records", "[]int8", "[]uuid"])
    def test_what_can_be_null(self, kind: str) -> None:
        checked(message(fields=[field(type=kind, nullableVersions="1+")]))

    def test_all_problems_are_told_at_once(self) -> None:
        told = refused(
            message(validVersions="0+", fields=[field(default="x"), field(name="2", zeroCopy=True)])
        )
        assert told.count(";") == 3


class TestWhatKafkaLetsPass:
    """Kafka's generator takes these; here they are errors, and each has its reason."""

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            # Jackson turns more text into numbers and flags than published schemas need.
            ({"apiKey": 5.5}, "apiKey is 5.5 instead of an integer"),
            ({"latestVersionUnstable": "True"}, "latestVersionUnstable is 'True'"),
            # A range that is turned round would mean "none".
            ({"validVersions": "4-1"}, "'4-1' is not a range"),
            # A struct without fields is far more likely a misspelt common struct.
            ({"fields": [field(type="Part", fields=[])]}, "struct Part is not specified"),
            # In Java these names don't clash.
            ({"fields": [field(name="AField"), field(name="aField")]}, "would be called a_field in Python"),
            # Java would write the literal 010, which is 8.
            ({"fields": [field(default="010")]}, "default '010' is no integer"),
        ],
    )
    def test_it_is_refused(self, change: dict[str, Any], problem: str) -> None:
        with pytest.raises(SchemaError) as caught:
            checked(message(**change))
        assert problem in str(caught.value)
