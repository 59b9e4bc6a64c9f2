"""Regular expressions of client metrics are accepted exactly if Java accepts them: brokers compile them."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

from compat.harness.kafka.cluster import NEWEST_KAFKA
from compat.harness.kafka.jars import compiled, find_jars, java
from kraft_wire.configs.regex import properties, unicode_names
from kraft_wire.configs.regex.pattern import InvalidRegex, check_regex
from kraft_wire.configs.validation import validate_configs
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ApiError

CASES = 60_000
PIECES = (
    *(
        "a",
        "b",
        "Z",
        "0",
        "7",
        "9",
        " ",
        "-",
        "_",
        "#",
        "\n",
        "\u00e9",
        "\U0001f600",
        "\x00",
        ":",
        "<",
        ">",
        "=",
        "!",
    ),
    *(
        "(",
        "(",
        ")",
        ")",
        "(?:",
        "(?=",
        "(?!",
        "(?>",
        "(?<=",
        "(?<!",
        "(?<n>",
        "(?<n2>",
        "(?<2>",
        "(?P<n>",
        "(?#",
    ),
    *(
        "(?i)",
        "(?x)",
        "(?-x)",
        "(?x:",
        "(?i-s:",
        "(?d)",
        "(?U)",
        "(?c)",
        "(?L)",
        "(?-)",
        "(?)",
        "(?i-m-s)",
        "(?$",
        "(?@",
    ),
    *("[", "[", "]", "]", "[^", "&&", "&", "[]", "[^]", "[a-z]", "[a-", "a-z", "z-a", "-]", "[&&", "&&]"),
    *("{", "}", "{2}", "{2,}", "{2,3}", "{3,2}", "{,2}", "{x}", "{2", "{99999999999}", "{2147483647}"),
    *("*", "+", "?", "*?", "+?", "??", "*+", "++", "?+", "|", "^", "$", ".", ","),
    *("\\Q", "\\E", "\\Qa.b\\E", "\\Q(\\E", "\\Q1\\E", "\\Q\\E", "\\", "\\\\"),
    *(
        "\\p{Alpha}",
        "\\p{IsLatin}",
        "\\P{L}",
        "\\pL",
        "\\p",
        "\\p{",
        "\\p{}",
        "\\p{alpha}",
        "\\p{IsAlphabetic}",
    ),
    *("\\p{InGreek}", "\\p{sc=Grek}", "\\p{gc=Lu}", "\\p{blk=Basic Latin}", "\\p{x=y}", "\\p{javaLowerCase}"),
    *(
        "\\k<n>",
        "\\k<",
        "\\k",
        "\\1",
        "\\12",
        "\\0",
        "\\07",
        "\\0777",
        "\\08",
        "\\x4",
        "\\x41",
        "\\x{41}",
        "\\x{}",
    ),
    *(
        "\\x{110000}",
        "\\x{1F600}",
        "\\u0041",
        "\\u004",
        "\\uD83D\\uDE00",
        "\\uD83D\\u",
        "\\cA",
        "\\c",
        "\\N{DIGIT ONE}",
    ),
    *("\\N{NONE}", "\\N", "\\b{g}", "\\b{x}", "\\b{", "\\R", "\\X", "\\G", "\\Z", "\\z", "\\A", "\\B", "\\b"),
    *(f"\\{letter}" for letter in "CDFHIJKLMOSTUVWYadefghijlmnoqrstuvwy_.-[]{}()#é"),
)
"""Pieces of expressions, in Java's dialect, in Python's and in none."""


def test_random_expressions(tmp_path: Path) -> None:
    random = Random(17)
    cases = [_expression(random) for _ in range(CASES)]
    verdicts = _ask_java("regex", cases, tmp_path)
    differing = [
        f"{case!r}: Java {verdict}, ours {ours or 'accepted'}"
        for case, verdict in zip(cases, verdicts, strict=True)
        if (verdict == "accepted") != ((ours := _refusal(case)) is None)
        and not _is_known_difference(case, verdict)
    ]
    accepted = verdicts.count("accepted")
    assert CASES / 5 < accepted < CASES * 4 / 5
    assert not differing, "\n".join([f"{len(differing)} of {CASES}, {accepted} accepted:", *differing[:30]])


def test_names_of_properties(tmp_path: Path) -> None:
    general = properties.CATEGORIES | properties.POSIX | properties.JAVA_METHODS | properties.UNICODE_NAMES
    names = sorted({*general, *unicode_names.scripts(), *unicode_names.blocks(), "ASCII", "Nothing", ""})
    written = [form for name in names for form in (name, name.lower(), name.upper(), name.replace(" ", "_"))]
    prefixes = ("", "Is", "In", "java", "sc=", "Script=", "block=", "gc=")
    cases = [
        f"{flag}\\p{{{prefix}{name}}}" for flag in ("", "(?U)") for prefix in prefixes for name in written
    ]
    verdicts = _ask_java("regex", cases, tmp_path)
    differing = [
        case
        for case, verdict in zip(cases, verdicts, strict=True)
        if (verdict == "accepted") != (_refusal(case) is None)
    ]
    assert not differing, differing[:30]


def test_random_values(tmp_path: Path) -> None:
    random = Random(18)
    cases = [_value(random) for _ in range(CASES // 10)]
    verdicts = _ask_java("match", cases, tmp_path)
    differing = [
        f"{case!r}: Java {verdict}"
        for case, verdict in zip(cases, verdicts, strict=True)
        if (verdict == "accepted") != _is_valid(case)
    ]
    assert CASES / 100 < verdicts.count("accepted") < CASES * 9 / 100
    assert not differing, "\n".join([f"{len(differing)} of {len(cases)}:", *differing[:30]])


def _value(random: Random) -> str:
    parts = (
        "client_id",
        "client_id",
        "client_software_name",
        "other",
        "=",
        "=",
        "=",
        "a.*",
        "[",
        ",",
        " ",
        "\u00a0",
    )
    usual = random.choice(("", "client_id=", "client_id=a, client_source_port=", " client_id = x"))
    return usual + "".join(random.choices(parts, k=random.choice((0, 1, 2, 3, 4))))


def _is_valid(value: str) -> bool:
    try:
        validate_configs(ResourceType.CLIENT_METRICS, {"match": value}, {}, {})
    except ApiError:
        return False
    return True


def _expression(random: Random) -> str:
    """Few pieces, so that many expressions are right. Some are inside of a group or a class."""
    pieces = random.choices(PIECES, k=random.choice((1, 1, 2, 2, 3, 4, 6)))
    before, after = random.choice(
        (("", ""), ("", ""), ("(", ")"), ("[", "]"), ("(?x)", ""), ("(?<n>a)", ""), ("(?<=", ")"))
    )
    return before + "".join(pieces) + after


def _is_known_difference(expression: str, verdict: str) -> bool:
    """Whether it is a look-behind without a greatest length that Java accepts, or whose length overflows."""
    if "(?<=" not in expression and "(?<!" not in expression:
        return False
    return verdict == "accepted" or "2147483647" in expression


def _refusal(expression: str) -> str | None:
    try:
        check_regex(expression)
    except InvalidRegex as error:
        return f"refused: {error}"
    return None


def _ask_java(kind: str, texts: Sequence[str], folder: Path) -> list[str]:
    class_path = compiled("MatchJudge.java", find_jars(NEWEST_KAFKA), folder)
    done = subprocess.run(
        [java(), "-cp", class_path, "MatchJudge"],
        input="".join(f"{kind} {base64.b64encode(text.encode()).decode()}\n" for text in texts),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return [line for line in done.stdout.splitlines() if line.startswith(("accepted", "refused"))]
