"""Every rule of the schema language, each broken once."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.schema.check import check
from codegen.schema.errors import SchemaError
from codegen.schema.kafka_json import parse
from codegen.schema.versions import ALL, NONE, Versions
from tests.support.schema_cases import (
    ALLOWED_FIELDS,
    ALLOWED_MESSAGES,
    COORDINATOR_KEY,
    INNER,
    OURS_ALONE,
    REFUSED_FIELDS,
    REFUSED_MESSAGES,
    REFUSED_STRUCTS,
    TWO_TAGS,
)
from tests.support.schema_samples import checked, field, message


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
                "A: validVersions: 'x' is not a version range",
            ),
            (
                '{"name": "A", "type": "data", "validVersions": "0", "apiKey": "one"}',
                "apiKey is 'one' instead of",
            ),
            ('{"name": "A", "type": "data", "validVersions": "0", "fields": [3]}', "3 instead of an object"),
            ('{"name": "A", "about": "prose"}', "unknown key about"),
            ('{"name": "A", "default": NaN}', "NaN is not JSON"),
            ("", "not one JSON object"),
            ("null", "a schema is one JSON object"),
        ],
    )
    def test_text_that_is_not_a_schema(self, text: str, problem: str) -> None:
        assert problem in self.parsed(text)

    @pytest.mark.parametrize(("change", "problem"), REFUSED_MESSAGES)
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

    @pytest.mark.parametrize("change", ALLOWED_MESSAGES)
    def test_what_is_allowed(self, change: dict[str, Any]) -> None:
        checked(message(**change))


class TestStructs:
    @pytest.mark.parametrize(("change", "problem"), REFUSED_STRUCTS)
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
    @pytest.mark.parametrize(("change", "problem"), REFUSED_FIELDS)
    def test_rules_of_fields(self, change: dict[str, Any], problem: str) -> None:
        assert problem in refused(message(fields=[field(**change)]))

    @pytest.mark.parametrize("change", ALLOWED_FIELDS)
    def test_what_is_allowed(self, change: dict[str, Any]) -> None:
        checked(message(fields=[field(**change)]))

    @pytest.mark.parametrize("kind", ["string", "bytes", "records", "[]int8", "[]uuid"])
    def test_what_can_be_null(self, kind: str) -> None:
        checked(message(fields=[field(type=kind, nullableVersions="1+")]))

    def test_all_problems_are_reported_together(self) -> None:
        told = refused(
            message(validVersions="0+", fields=[field(default="x"), field(name="2", zeroCopy=True)])
        )
        assert told.count(";") == 3


@pytest.mark.parametrize(("change", "problem"), OURS_ALONE)
def test_schemas_that_kafka_accepts(change: dict[str, Any], problem: str) -> None:
    assert problem in refused(message(**change))
