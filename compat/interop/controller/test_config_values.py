"""A value of a topic is accepted exactly if Kafka accepts it: brokers parse it at their start.

The values are random, near what is right: numbers in all notations, odd white space, digits of other scripts.
"""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Sequence
from random import Random

from compat.harness.kafka.cluster import NEWEST_KAFKA
from compat.harness.kafka.jars import config_judge_classes, find_jars, java
from kraft_wire.configs.schema import topic_keys, validate_topic_configs
from kraft_wire.configs.types import ConfigKey
from kraft_wire.protocol.errors import ApiError

CASES = 20_000
BLANKS = " \t\n\r\x00\x1f\x0b\x0c\x85\u00a0\u2003\u2028\u3000"
"""Java trims those up to U+0020, and its patterns know six of them."""
NUMBERS = (
    *("0", "1", "-1", "+5", "-0", "1000", "2147483647", "2147483648", "-2147483649", "9223372036854775807"),
    *("9223372036854775808", "00012", "1_000", "1e3", "0x10", "1.0", "\u0661\u0662", "\uff11", "\U0001d7cf"),
    *("0.5", ".5", "5.", "0.5d", "0.5F", "0x1p-1", "0x.8p0", "1e-3", "NaN", "nan", "inf", "Infinity", "-0.0"),
    *("1e400", "1e-400", "0x1p2000", "0.5dd", "0_1", "", "-", "+", "--1", "\u0bf0"),
)
BOOLEANS = ("true", "false", "TRUE", "False", "fal\u017fe", "yes", "1", "tr\u00fce", "\uff54rue")
SEPARATORS = (",", " , ", ",\u00a0", "\x0b,", ",,", " ,\t", "\x1f,")


def test_random_values_are_accepted_or_refused_as_java_does() -> None:
    random = Random(14)
    keys = [key for key in topic_keys().values() if not key.internal]
    cases = [(key, _value(random, key)) for key in (random.choice(keys) for _ in range(CASES))]
    verdicts = _ask_java(cases)
    differing = [
        f"{key.name}={value!r}: Java {verdict}, ours {ours or 'accepted'}"
        for (key, value), verdict in zip(cases, verdicts, strict=True)
        if (verdict == "accepted") != ((ours := _refusal(key, value)) is None)
    ]
    accepted = verdicts.count("accepted")
    assert CASES / 5 < accepted < CASES * 4 / 5
    assert not differing, "\n".join([f"{len(differing)} of {CASES}:", *differing[:20]])


def _value(random: Random, key: ConfigKey) -> str:
    text = _core(random, key)
    if random.random() < 0.3:
        text = random.choice(BLANKS) + text
    if random.random() < 0.3:
        text += random.choice(BLANKS)
    return text


def _core(random: Random, key: ConfigKey) -> str:
    match key.type:
        case "BOOLEAN":
            return random.choice(BOOLEANS)
        case "LIST":
            items = [*(key.allowed or ("1:2", "*", "0:\u0661", "3:4")), "", "x"]
            count = random.choice((0, 1, 1, 2, 3))
            return random.choice(SEPARATORS).join(random.choice(items) for _ in range(count))
        case "STRING":
            allowed = (*key.allowed, *key.allowed_in_any_case, "producer", "3.0-IV1", "x", "")
            text = random.choice(allowed)
            return random.choice((text, text.lower(), text.upper()))
        case _:
            return random.choice((*NUMBERS, str(random.randint(-5, 200))))


def _refusal(key: ConfigKey, value: str) -> str | None:
    try:
        validate_topic_configs({key.name: value})
    except ApiError as error:
        return f"refused: {error.message}"
    return None


def _ask_java(cases: Sequence[tuple[ConfigKey, str]]) -> list[str]:
    lines = [f"{key.name} {base64.b64encode(value.encode()).decode()}\n" for key, value in cases]
    class_path = f"{config_judge_classes()}:{find_jars(NEWEST_KAFKA).class_path}"
    done = subprocess.run(
        [java(), "-cp", class_path, "ConfigJudge"],
        input="".join(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return [line for line in done.stdout.splitlines() if line.startswith(("accepted", "refused"))]
