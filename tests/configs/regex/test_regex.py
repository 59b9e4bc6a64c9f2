"""Regular expressions are judged as Java 17 judges them."""

from __future__ import annotations

import re

import pytest

from kraft_wire.configs.regex.pattern import InvalidRegex, check_regex
from kraft_wire.configs.regex.quotes import without_quotes

ONLY_JAVAS = (
    *(r"a++", r"a*+b", r"a?+", r"(?>a|b)c", r"a{2}{3}", r"{3}"),
    *(r"\p{Alpha}", r"\pL", r"\PL", r"\p{IsLatin}", r"\p{InGreek}", r"\p{sc=Grek}", r"\p{gc=Lu}"),
    *(r"\p{javaLowerCase}", r"\p{IsAlphabetic}", r"\p{blk=Basic Latin}", r"(?U)\p{alpha}"),
    *(r"\Qa.b(\E", r"\Q(", r"a\Q\E{2}", r"[\Q]-a\E]", r"\p{\QAlpha\E}"),
    *(r"(?<name>a)\k<name>", r"(?<n1>(?<n2>a))", r"\1", r"(a)\99"),
    *(r"[a-z&&[^aeiou]]", r"[a&&b]", r"[a[bc]]", r"[a&&&b]", r"[&&a]", r"[]a]", r"[a-]", r"[\v-\x20]"),
    *(r"\x{1F600}", r"\07", r"\cA", r"\h\H\R\X\G\z\b{g}", r"\e", r"(?d)a", r"(?i-)a", r"a(?x) b # (", r"(?)"),
    *(r"(?<=a|bc)d", r"(?<=a{1,3})d", r"(?<=(?:ab){2})c", r"(?<=(a|b)?)c", r"(?<=(?:a|b){2}+)c"),
)
BOTH = (
    "",
    "a.*",
    "client-[0-9]+",
    "(a|b)?",
    "^a$",
    r"\d{2,3}",
    "[^]]",
    r"\\",
    "(?i)a",
    "(?:a)",
    "(?=a)",
    "(?!a)",
    "é",
)
NEITHER = (
    *("[", "(", ")", "*", "a)", "a**", "a{2", "[a", "[z-a]", "[a-\\d]", "\\", "(?", "(?<", "a{3,2}"),
    *(r"\p{Nope}", r"\q", r"\x4", r"\u12", r"(?<=a*)b", r"(?<=a+)b", r"(?<=a{2,})b", r"(?<=(a|b)*)c"),
    *("(?<n>a)(?<n>b)", "(?<n", "[&&]", "[]", "[^]", "(?<1a>b)", "(?i", "(?-i"),
)
ONLY_PYTHONS = (
    "(?P<name>a)",
    "(?#comment)",
    "(?P=name)",
    "(?L)a",
    "(?a)a",
    "a{,3}",
    "a{x}",
    "{",
    r"(a)(?(1)b)",
    r"\08",
)


@pytest.mark.parametrize("expression", [*ONLY_JAVAS, *BOTH])
def test_what_java_accepts(expression: str) -> None:
    check_regex(expression)


@pytest.mark.parametrize("expression", [*NEITHER, *ONLY_PYTHONS])
def test_what_java_refuses(expression: str) -> None:
    with pytest.raises(InvalidRegex, match=r"at character [0-9]+$"):
        check_regex(expression)


MORE_REFUSED = (
    *(
        "a{99999999999}",
        r"\x{110000}",
        r"\x{",
        r"\x{}",
        r"\uD83D\u",
        r"\c",
        r"\N",
        r"\N{NONE}",
        r"\N{DIGIT ONE",
    ),
    *(r"\0", r"\k", r"\k<n>", r"\k<n", r"[\b]", r"[\p{Nope}]", r"\p{", r"\p", r"\p{x=y}", "(?$", "[a&&"),
    *("(?<=(a|b){2})c", r"(?<=\1)a", r"[\1]", "(?i:a", "a{1", "a{1,", "a{1,2", "(?i-s-m)", "(?x)a{ 2}"),
)


@pytest.mark.parametrize("expression", MORE_REFUSED)
def test_more_that_java_refuses(expression: str) -> None:
    with pytest.raises(InvalidRegex):
        check_regex(expression)


@pytest.mark.parametrize(
    "expression",
    [r"\uD83D\uDE00", r"\uD83Da", r"\uD83D\u0041", r"\N{DIGIT ONE}", r"\0777", "(?x)[ a ]{2 }", "(?x)#"],
)
def test_escapes_and_comments(expression: str) -> None:
    check_regex(expression)


def test_flags_hold_up_to_the_end_of_their_group() -> None:
    check_regex("(?x)( # (\n)")
    check_regex("((?x) # (\n)")
    with pytest.raises(InvalidRegex):
        check_regex("((?x))# (")
    check_regex("(?xd)# (\r(\n")
    with pytest.raises(InvalidRegex):
        check_regex("(?x)# (\r(\n")


@pytest.mark.parametrize("nested", ["(", "[", "(?:", "[a&&", "a(b|", "(?<=("])
def test_a_deep_nest_is_refused_before_the_stack_ends(nested: str) -> None:
    with pytest.raises(InvalidRegex):
        check_regex(nested * 10_000)


def test_a_hundred_levels_are_fine() -> None:
    check_regex("(" * 100 + "a" + ")" * 100)
    with pytest.raises(InvalidRegex, match="more than 100 levels"):
        check_regex("(" * 101 + "a" + ")" * 101)


def test_quotations_become_escapes() -> None:
    assert without_quotes(r"a\Q1.b\E2\\Q\Q\E\Q-é") == r"a\x31\.b2\\Q\-\é"


def test_the_lists_are_what_they_say() -> None:
    """Python knows what only it knows, and not what only Java knows."""
    for expression in ONLY_PYTHONS[:2]:
        re.compile(expression)
    with pytest.raises(re.error):
        re.compile(ONLY_JAVAS[6])
