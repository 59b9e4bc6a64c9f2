"""Our codec agrees with Kafka's own generated classes in random cases of every message and version.

``--judge-cases N`` sets their number, ``--judge-seed S`` selects other ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from codegen.packages import NEWEST_KAFKA
from compat.harness.kafka.jars import find_jars
from compat.judges.codec.cases import SHARES, Judge
from compat.judges.codec.coverage import ALL_TRAITS, traits
from compat.judges.codec.differences import stricter_than
from compat.judges.codec.java import JavaCodec
from compat.judges.codec.packages import package_of

OTHER_KAFKAS = ("4.3.1", "3.9.2")
GROUPS = {
    "requests": ("request",),
    "responses": ("response",),
    "records": ("metadata", "coordinator-key", "coordinator-value", "data", "header"),
}
LEAST_PART = 0.1
"""The smallest share of either outcome: if nearly all cases were refused, or accepted, they would prove
little."""


@pytest.fixture(scope="module", params=[NEWEST_KAFKA, *OTHER_KAFKAS])
def judge(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    jars, folder = find_jars(request.param), tmp_path_factory.mktemp("codec-judge")
    with package_of(jars, folder) as package, JavaCodec(jars, folder / "java.log") as java:
        yield Judge(java, package, stricter_than(jars.version))


def test_every_message_and_version_of_kafka_is_judged(judge: Judge) -> None:
    ours = {name: (cls.MIN_VERSION, cls.MAX_VERSION) for name, cls in judge.classes.items()}
    java = {each.name: (each.first_version, each.last_version) for each in judge.java_classes.values()}
    assert ours == java


def test_no_message_is_without_a_json_converter(judge: Judge) -> None:
    assert [each.name for each in judge.java_classes.values() if not each.has_json] == []


def test_the_cases_are_as_many_as_asked_for(judge: Judge) -> None:
    for total in (1, 50_000):
        cases = [case for kind in SHARES for case in judge.cases(kind, total, seed=1)]
        assert len(set(cases)) == len(cases) >= total
    assert {(case.java_name, case.version) for case in cases} == {
        (name, version)
        for name, cls in judge.classes.items()
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1)
    }


@pytest.mark.parametrize("judge", [NEWEST_KAFKA], indirect=True)
def test_the_random_instances_leave_nothing_out(judge: Judge, pytestconfig: pytest.Config) -> None:
    found: set[str] = set()
    for case, message in judge.instances(
        judge.cases("instance", 25_000, pytestconfig.getoption("judge_seed"))
    ):
        found.update(traits(message, case.version))
    assert found == ALL_TRAITS


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("kind", SHARES)
def test_java_says_the_same(judge: Judge, kind: str, group: str, pytestconfig: pytest.Config) -> None:
    """All cases run with the newest Kafka, a part of them with the others."""
    total = pytestconfig.getoption("judge_cases")
    if judge.kafka != NEWEST_KAFKA:
        total //= 5
    cases = [
        case
        for case in judge.cases(kind, total, pytestconfig.getoption("judge_seed"))
        if judge.classes[case.java_name].KIND in GROUPS[group]
    ]
    verdicts = judge.judge(cases)
    assert not verdicts.differences, verdicts.report()
    assert verdicts.outcomes.total() == len(cases)
    assert min(verdicts.outcomes["accepted"], verdicts.outcomes["refused"]) > LEAST_PART * len(cases)
