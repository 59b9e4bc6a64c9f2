"""Values of configuration keys: parsed, checked and printed as by Kafka's ConfigDef."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.configs.types import (
    ConfigKey,
    InvalidConfigValue,
    Synonym,
    Value,
    format_value,
    split_list,
)


def key(kind: str, **facts: object) -> ConfigKey:
    return msgspec.structs.replace(ConfigKey("the.key", kind), **facts)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("BOOLEAN", " TRUE ", True),
        ("BOOLEAN", "false", False),
        ("INT", " -5 ", -5),
        ("INT", "+7", 7),
        ("INT", "2147483647", 2**31 - 1),
        ("SHORT", "-32768", -(2**15)),
        ("LONG", "9223372036854775807", 2**63 - 1),
        ("DOUBLE", "0.5", 0.5),
        ("DOUBLE", "1e3", 1000.0),
        ("STRING", " text ", "text"),
        ("CLASS", "a.b.C", "a.b.C"),
        ("PASSWORD", "secret", "secret"),
        ("LIST", " a , b,c ", ["a", "b", "c"]),
        ("LIST", " ", []),
    ],
)
def test_values_are_read(kind: str, text: str, value: Value) -> None:
    assert key(kind).check(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("BOOLEAN", "yes"),
        ("BOOLEAN", ""),
        ("INT", "1.0"),
        ("INT", "2147483648"),
        ("INT", "1_000"),
        ("INT", ""),
        ("SHORT", "32768"),
        ("LONG", "9223372036854775808"),
        ("DOUBLE", "half"),
    ],
)
def test_what_is_no_value_of_the_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(InvalidConfigValue) as refused:
        key(kind).check(text)
    assert refused.value.name == "the.key"
    assert "the.key" in str(refused.value)


@pytest.mark.parametrize(
    ("facts", "good", "bad"),
    [
        ({"type": "INT", "minimum": 1}, "1", "0"),
        ({"type": "DOUBLE", "minimum": 0, "maximum": 1}, "1", "1.5"),
        ({"type": "STRING", "allowed": ("gzip", "zstd")}, "zstd", "ZSTD"),
        ({"type": "STRING", "allowed_in_any_case": ("UPGRADE",)}, "upgrade", "sidegrade"),
        ({"type": "STRING", "not_empty": True}, "x", " "),
        ({"type": "LIST", "not_empty": True, "distinct": True}, "x", ""),
        ({"type": "LIST", "allowed": ("a", "b"), "distinct": True}, "b,a", "a,c"),
        ({"type": "LIST", "distinct": True}, "", "a,,b"),
        ({"type": "INT", "rule": "[1,...,9] or -1"}, "-1", "0"),
        ({"type": "INT", "rule": "[1,...,9] or -1"}, "9", "10"),
        ({"type": "LIST", "rule": "ThrottledReplicaListValidator"}, "0:1,2:3", "0:1,x"),
        ({"type": "LIST", "rule": "ThrottledReplicaListValidator"}, "*", "*,1:1"),
        ({"type": "LIST", "rule": "ThrottledReplicaListValidator"}, "", "1"),
        ({"type": "STRING", "rule": "ShareGroupAutoOffsetResetStrategy.Validator"}, "earliest", "none"),
        (
            {"type": "STRING", "rule": "ShareGroupAutoOffsetResetStrategy.Validator"},
            "by_duration:PT1H30M",
            "by_duration:-PT1H",
        ),
    ],
)
def test_what_a_key_demands(facts: dict[str, object], good: str, bad: str) -> None:
    facts = dict(facts)
    checked = key(str(facts.pop("type")), **facts)
    checked.check(good)
    with pytest.raises(InvalidConfigValue):
        checked.check(bad)


def test_repetitions_are_dropped_where_a_list_is_to_be_distinct() -> None:
    assert key("LIST", distinct=True).check("a, b,a") == ["a", "b"]
    assert key("LIST", distinct=True).normalize("a, b,a") == "a,b"
    assert key("LIST").check("a,b,a") == ["a", "b", "a"]


def test_no_value_where_one_is_needed() -> None:
    assert key("LIST").check(None) is None
    for facts in ({"required": True}, {"not_null": True}):
        with pytest.raises(InvalidConfigValue):
            key("LIST", **facts).check(None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (7, "7"),
        (["a", "b"], "a,b"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (1e7, "1.0E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (0.00012, "1.2E-4"),
        (-12345678.5, "-1.23456785E7"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_values_are_printed_as_java_prints_them(value: Value, text: str) -> None:
    assert format_value(value) == text


@given(st.floats(allow_nan=False))
def test_printed_numbers_read_back(value: float) -> None:
    assert float(format_value(value)) == value


def test_normalizing() -> None:
    assert key("LIST").normalize(" a ,b") == "a,b"
    assert key("BOOLEAN").normalize("True") == "true"
    assert key("INT").normalize("+05") == "5"


@given(st.lists(st.text("abc", min_size=1)))
def test_lists_read_back(items: list[str]) -> None:
    assert split_list(" , ".join(items)) == items


def test_synonyms_convert_units() -> None:
    assert Synonym("log.roll.hours", 3_600_000).convert("2") == "7200000"
    assert Synonym("log.roll.hours", 3_600_000).convert("") == "0"
    assert Synonym("log.roll.ms").convert("text stays") == "text stays"
