"""IncrementalAlterConfigs answers and writes what Kafka's ConfigurationControlManager answers and writes.

The changes are random, and often have two faults. Intended differences: values that topics fall back on are
checked if they are set on brokers, and the longest value is measured in bytes.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

import msgspec

from compat.harness.kafka.cluster import NEWEST_KAFKA
from compat.harness.kafka.jars import compiled, find_jars, java
from kraft_wire.controller.config_apis import incremental_alter_configs
from kraft_wire.controller.config_apis.operation import Operation
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.controller.controller_harness import Harness

CASES = 6_000
NAMES = {
    ResourceType.TOPIC: ("t", "t", "t", "u", "", "a/b"),
    ResourceType.BROKER: ("0", "0", "", "", "3000", "+0", "-0", "99", "-1", "x", "9999999999", "\u0660"),
    ResourceType.CLIENT_METRICS: ("m", "m", ""),
    ResourceType.GROUP: ("g", "g", ""),
}
KEYS = {
    ResourceType.TOPIC: (
        "cleanup.policy",
        "retention.ms",
        "min.insync.replicas",
        "leader.replication.throttled.replicas",
    ),
    ResourceType.BROKER: (
        "cordoned.log.dirs",
        "min.insync.replicas",
        "num.io.threads",
        "ssl.cipher.suites",
    ),
    ResourceType.CLIENT_METRICS: ("metrics", "interval.ms", "match"),
    ResourceType.GROUP: ("consumer.session.timeout.ms", "streams.assignor.name"),
}
TEXTS = (
    "",
    " ",
    ",",
    "/a",
    "/a,/b",
    "/b,/a",
    "a,b",
    "a,,b",
    "delete",
    "compact,delete",
    "0:1",
    "5",
    "50000",
    "1",
    "x",
    "*",
)


class Case(msgspec.Struct):
    """A change of one resource."""

    level: int
    elr: bool
    forwarded: bool
    type: int
    name: str
    existing: dict[str, str]
    changes: list[tuple[str, int, str | None]]


class Verdict(msgspec.Struct):
    """The code of the answer, and the records."""

    code: int
    records: list[str] = []


def test_random_changes(tmp_path: Path) -> None:
    random = Random(44)
    cases = [_case(random) for _ in range(CASES)]
    verdicts = _ask_java(cases, tmp_path)
    differing = [
        f"{case}: Java {theirs}, ours {ours}"
        for case, theirs in zip(cases, verdicts, strict=True)
        if (ours := _ours(case)) != theirs
    ]
    accepted = sum(verdict.code == 0 for verdict in verdicts)
    assert CASES / 10 < accepted < CASES * 9 / 10
    assert not differing, "\n".join([f"{len(differing)} of {CASES}, {accepted} accepted:", *differing[:20]])


def _case(random: Random) -> Case:
    kind = random.choice(list(NAMES))
    keys = (*KEYS[kind], "no.such.key")
    name = random.choice(NAMES[kind])
    exists = name in ("t", "0", "", "m", "g") and (name or kind == ResourceType.BROKER)
    existing = {key: random.choice(TEXTS) for key in KEYS[kind] if exists and random.random() < 0.3}
    changed = random.sample(keys, random.choice((1, 1, 2)))
    return Case(
        level=random.choice((29, 30, 33)),
        elr=random.random() < 0.5,
        forwarded=random.random() < 0.5,
        type=kind.value,
        name=name,
        existing=existing,
        changes=[_change(random, key) for key in changed],
    )


def _change(random: Random, key: str) -> tuple[str, int, str | None]:
    operation = random.choice(tuple(Operation))
    if operation is Operation.DELETE:
        return key, operation, None
    return key, operation, "1" if key == "min.insync.replicas" else random.choice(TEXTS)


def _ours(case: Case) -> Verdict:
    harness = Harness(case.level, {"eligible.leader.replicas.version": int(case.elr)})
    harness.add_brokers(0)
    harness.add_topic("t", [0])
    harness.replay(
        (ConfigRecord(case.type, case.name, key, value), 0) for key, value in case.existing.items()
    )
    harness.is_forwarded = case.forwarded
    resource = AlterConfigsResource(
        case.type, case.name, [AlterableConfig(*change) for change in case.changes]
    )
    result = harness.decide(incremental_alter_configs, IncrementalAlterConfigsRequest([resource]), 1)
    assert isinstance(result.response, IncrementalAlterConfigsResponse)
    records = [
        f"{record.resource_name} {record.name}={'null' if record.value is None else record.value}"
        if isinstance(record, ConfigRecord)
        else type(record).__name__
        for record, _ in result.records
    ]
    return Verdict(result.response.responses[0].error_code, records)


def _ask_java(cases: Sequence[Case], folder: Path) -> list[Verdict]:
    class_path = compiled("ConfigChangesJudge.java", find_jars(NEWEST_KAFKA), folder)
    done = subprocess.run(
        [java(), "-cp", class_path, "org.apache.kafka.controller.ConfigChangesJudge"],
        input=b"".join(msgspec.json.encode(case) + b"\n" for case in cases),
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
    )
    lines = [
        line.removeprefix(b"verdict ") for line in done.stdout.splitlines() if line.startswith(b"verdict ")
    ]
    return [msgspec.json.decode(line, type=Verdict) for line in lines]
