"""The judge finds mistakes: it compares code from schemas with one mistake with Kafka's own classes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from codegen.packages import NEWEST_KAFKA, SCHEMAS
from compat.harness.kafka.jars import find_jars
from compat.harness.paths import ROOT
from compat.judges.codec.cases import SHARES, Case, Judge
from compat.judges.codec.java import JavaCodec
from compat.judges.codec.packages import package_from

CASES = 400
Change = Callable[[dict[str, Any]], None]


def changed(path: str, **facts: object) -> Change:
    """Return a function that changes keys of the field at a dotted path, or of the message; None removes a
    key."""

    def change(schema: dict[str, Any]) -> None:
        found = schema
        for name in path.split(".") if path else ():
            found = next(each for each in found["fields"] if each["name"] == name)
        found.update(facts)
        for key in [key for key, value in facts.items() if value is None]:
            del found[key]

    return change


def first_fields_swapped(schema: dict[str, Any]) -> None:
    fields = schema["fields"]
    fields[0], fields[1] = fields[1], fields[0]


def tags_swapped(schema: dict[str, Any]) -> None:
    for each in schema["fields"]:
        if "tag" in each:
            each["tag"] = 1 - each["tag"]


FAULTS: dict[str, tuple[str, Change]] = {
    "a default": ("VoteRequest", changed("VoterId", default="0")),
    "a sign": ("AllocateProducerIdsRequest", changed("BrokerId", type="uint32", entityType=None)),
    "a size": ("AllocateProducerIdsRequest", changed("BrokerId", type="int64", entityType=None)),
    "a name": ("AllocateProducerIdsRequest", changed("BrokerEpoch", name="Epoch")),
    "the order of fields": ("AllocateProducerIdsRequest", first_fields_swapped),
    "the numbers of tags": ("BrokerHeartbeatRequest", tags_swapped),
    "the first tagged version": (
        "BrokerHeartbeatRequest",
        changed("CordonedLogDirs", versions="1+", nullableVersions="1+", taggedVersions="1+"),
    ),
    "the first version": ("VoteRequest", changed("Topics.Partitions.PreVote", versions="1+")),
    "the last version": ("MetadataRequest", changed("IncludeClusterAuthorizedOperations", versions="8-9")),
    "the first flexible version": ("DescribeGroupsRequest", changed("", flexibleVersions="4+")),
    "a header's string": ("RequestHeader", changed("ClientId", flexibleVersions=None)),
    "too little null": ("MetadataRequest", changed("Topics", nullableVersions="2+")),
    "too much null": ("DescribeGroupsRequest", changed("Groups", nullableVersions="0+")),
    "a struct that is never null": (
        "ConsumerGroupHeartbeatResponse",
        changed("Assignment", nullableVersions=None, default=None),
    ),
    "ignorable": ("BrokerHeartbeatRequest", changed("OfflineLogDirs", ignorable=True)),
    "not ignorable": ("VoteRequest", changed("VoterId", ignorable=None)),
}


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaCodec]:
    with JavaCodec(find_jars(NEWEST_KAFKA), tmp_path_factory.mktemp("codec-judge") / "java.log") as started:
        yield started


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(java: JavaCodec, tmp_path: Path, fault: str) -> None:
    message, change = FAULTS[fault]
    with faulty_package(tmp_path, message, change) as package:
        verdicts = Judge(java, package).judge(every_case(Judge(java, package)))
    assert verdicts.differences


def test_without_a_fault_nothing_is_found(java: JavaCodec, tmp_path: Path) -> None:
    for message in {message for message, _ in FAULTS.values()}:
        with faulty_package(tmp_path / message, message, lambda schema: None) as package:
            verdicts = Judge(java, package).judge(every_case(Judge(java, package)))
        assert not verdicts.differences, verdicts.report()


def test_a_difference_names_a_case_that_shows_it_again(java: JavaCodec, tmp_path: Path) -> None:
    with faulty_package(tmp_path, *FAULTS["a default"]) as package:
        judge = Judge(java, package)
        for difference in judge.judge(every_case(judge)).differences:
            named = re.search(rf"python -m compat\.judges\.codec --kafka {NEWEST_KAFKA} (\S+)$", difference)
            assert named is not None
            assert judge.judge([Case.parse(named[1])]).differences == [difference]


def faulty_package(folder: Path, message: str, change: Change) -> AbstractContextManager[str]:
    """Generate a package with this one message, from its changed schema."""
    schema = json.loads((ROOT / SCHEMAS / NEWEST_KAFKA / f"{message}.json").read_text())
    change(schema)
    schemas = folder / "schemas"
    schemas.mkdir(parents=True)
    (schemas / f"{message}.json").write_text(json.dumps(schema))
    return package_from(schemas, folder, "faulty_messages")


def every_case(judge: Judge) -> list[Case]:
    return [case for kind in SHARES for case in judge.cases(kind, CASES, seed=1)]
