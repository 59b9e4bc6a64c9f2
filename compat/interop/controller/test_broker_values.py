"""DescribeConfigs shows exactly those of the stored values of brokers that a node of Kafka takes."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from compat.harness.kafka.cluster import NEWEST_KAFKA
from compat.harness.kafka.jars import compiled, find_jars, java
from kraft_wire.configs.dynamic_broker import taken_values
from kraft_wire.configs.schema import broker_keys
from kraft_wire.configs.tables import BROKER_DYNAMIC, BROKER_DYNAMIC_ONLY

CASES = 10_000
VALUES = (
    "0",
    "1",
    "-1",
    "-2",
    "5",
    "0.5",
    "1.5",
    "x",
    "",
    "true",
    "delete",
    "gzip",
    "zstd,gzip",
    "a:1",
    "/a",
    "JKS",
)
PREFIXES = ("", "", "", "listener.name.x.", "listener.name.", "listener.name.x.y.")


class Case(NamedTuple):
    """A value that is set on one broker or on all."""

    is_for_all: bool
    key: str
    value: str


def test_the_values_that_java_takes(tmp_path: Path) -> None:
    """But for names of classes: Java looks whether it has such a class."""
    random = Random(8)
    keys = [
        *sorted(broker_keys()),
        *(key.name for key in BROKER_DYNAMIC_ONLY),
        *sorted(BROKER_DYNAMIC) * 3,
        "own.key",
    ]
    classes = {key.name for key in broker_keys().values() if key.type == "CLASS"}
    keys = [key for key in keys if key not in classes]
    cases = [_case(random, keys) for _ in range(CASES)]
    verdicts = _ask_java(cases, tmp_path)
    differing = [
        f"{case}: Java {verdict}"
        for case, verdict in zip(cases, verdicts, strict=True)
        if (verdict == "verdict taken") != _is_taken(case)
    ]
    assert CASES / 10 < verdicts.count("verdict taken") < CASES * 9 / 10
    assert not differing, "\n".join([f"{len(differing)} of {CASES}:", *differing[:20]])


def _case(random: Random, keys: Sequence[str]) -> Case:
    key = random.choice(PREFIXES) + random.choice(keys)
    defined = broker_keys().get(key)
    near = (*defined.allowed, defined.default or "") if defined else ()
    return Case(random.random() < 0.5, key, random.choice((*VALUES, *near, *near)))


def _is_taken(case: Case) -> bool:
    return bool(taken_values({case.key: case.value}, for_all_brokers=case.is_for_all))


def _ask_java(cases: Sequence[Case], folder: Path) -> list[str]:
    class_path = compiled("BrokerConfigJudge.java", find_jars(NEWEST_KAFKA), folder)
    lines = [
        f"{'all' if case.is_for_all else 'one'} {case.key} {base64.b64encode(case.value.encode()).decode()}\n"
        for case in cases
    ]
    done = subprocess.run(
        [java(), "-cp", class_path, "BrokerConfigJudge"],
        input="".join(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return [line for line in done.stdout.splitlines() if line.startswith("verdict")]
