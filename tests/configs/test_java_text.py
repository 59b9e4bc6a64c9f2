"""Text means what it means to Java."""

from __future__ import annotations

import math

import pytest

from kraft_wire.configs.java_text import (
    equals_ignoring_case,
    is_duration_from_zero,
    parse_double,
    parse_integer,
    split,
    trim,
)


def test_blanks_up_to_u_0020_are_trimmed_and_no_others() -> None:
    assert trim("\x00\t 5 \x1f\r\n") == "5"
    assert trim("\u00a05\u2003") == "\u00a05\u2003"


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("+5", 5), ("-0012", -12), ("\u0661\u0662", 12), ("\uff11", 1), ("9" * 30, int("9" * 30))],
)
def test_whole_numbers_have_digits_of_any_script(text: str, number: int) -> None:
    assert parse_integer(text) == number


@pytest.mark.parametrize(
    "text", ["", "-", "+", "--1", "1_0", " 1", "1.0", "0x1", "\U0001d7cf", "\u0bf0", "\u00b2"]
)
def test_other_text_is_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError):
        parse_integer(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *[("0.5", 0.5), (".5", 0.5), ("5.", 5.0), ("0.5d", 0.5), ("-0.5F", -0.5), (" 1e-3\x00", 0.001)],
        *[
            ("0x1p-1", 0.5),
            ("0X.8P0f", 0.5),
            ("0x1p2000", math.inf),
            ("-0x1p2000", -math.inf),
            ("1e400", math.inf),
        ],
        *[("Infinity", math.inf), ("-Infinity", -math.inf)],
    ],
)
def test_numbers_in_java_s_notations(text: str, number: float) -> None:
    assert parse_double(text) == number


def test_not_a_number_is_spelled_in_one_way() -> None:
    assert math.isnan(parse_double("NaN"))


@pytest.mark.parametrize(
    "text", ["nan", "inf", "infinity", "Infinityd", "0_1", "0x1", "0x.p1", "\u0661", "", "d", "."]
)
def test_other_text_is_no_number(text: str) -> None:
    with pytest.raises(ValueError):
        parse_double(text)


def test_letters_are_compared_one_by_one() -> None:
    assert equals_ignoring_case("fal\u017fe", "FALSE")
    assert not equals_ignoring_case("\u00df", "ss")


@pytest.mark.parametrize(
    ("text", "parts"),
    [("", [""]), ("a", ["a"]), ("a,,b", ["a", "", "b"]), ("a,b,,", ["a", "b"]), (",", []), (",a", ["", "a"])],
)
def test_empty_parts_at_the_end_are_left_out(text: str, parts: list[str]) -> None:
    assert split(text) == parts


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        *[
            ("PT5S", True),
            ("P1D", True),
            ("pt1h30m", True),
            ("PT1,5S", True),
            ("PT1.S", True),
            ("PT0S", True),
        ],
        *[("-PT-5S", True), ("PT1H-30M", True), ("PT-5S", False), ("-PT5S", False), ("PT-0.5S", False)],
        *[("P", False), ("PT", False), ("P1DT", False), ("5S", False), ("PT\u0661S", False), ("P1W", False)],
        *[("P106751991167301D", False), ("PT9223372036854775807S", True), ("PT9223372036854775808S", False)],
    ],
)
def test_durations_that_are_not_negative(text: str, is_one: bool) -> None:
    assert is_duration_from_zero(text) == is_one
