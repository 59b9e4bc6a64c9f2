"""Our schema language is that of Kafka's generator: both refuse the same schemas and generate equal
codecs."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.harness.kafka.jars import TOOLS_VERSION, KafkaJars, find_jars, java, tool_server_classes
from compat.judges.codec.cases import SHARES, Judge
from compat.judges.codec.differences import stricter_than
from compat.judges.codec.java import JavaCodec
from compat.judges.codec.packages import package_from
from compat.judges.schema import DEADLINE_S, verdicts
from tests.support.schema_cases import (
    ALLOWED_FIELDS,
    ALLOWED_MESSAGES,
    OURS_ALONE,
    REFUSED_FIELDS,
    REFUSED_MESSAGES,
    REFUSED_STRUCTS,
)
from tests.support.schema_samples import everything, field, message, oddities

SAMPLE_CASES = 6_000


def those_not(outcome: str, schemas: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
    """Return the schemas with another verdict."""
    told = zip(schemas, verdicts(schemas), strict=True)
    return [(schema, verdict) for schema, verdict in told if not verdict.startswith(outcome)]


def test_it_refuses_what_we_refuse() -> None:
    broken = [message(**change) for change, _ in (*REFUSED_MESSAGES, *REFUSED_STRUCTS)]
    broken += [message(fields=[field(**change)]) for change, _ in REFUSED_FIELDS]
    assert those_not("refused", broken) == []


def test_it_accepts_what_we_accept() -> None:
    sound = [message(**change) for change in ALLOWED_MESSAGES]
    sound += [message(fields=[field(**change)]) for change in ALLOWED_FIELDS]
    assert those_not("accepted", sound) == []


def test_it_accepts_what_we_alone_refuse() -> None:
    assert those_not("accepted", [message(**change) for change, _ in OURS_ALONE]) == []


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """A judge of the code that we and Kafka generate from the sample schemas."""
    folder = tmp_path_factory.mktemp("samples")
    whole = everything()
    # The Java code that Kafka generates for these arrays doesn't compile.
    samples = [
        whole | {"fields": [each for each in whole["fields"] if each["type"] != "[]bytes"]},
        *oddities(),
    ]
    schemas = folder / "schemas"
    schemas.mkdir()
    for each in samples:
        (schemas / f"{each['name']}.json").write_text(json.dumps(each))
    jars = with_samples(samples, folder)
    with (
        package_from(schemas, folder, "kafka_samples") as package,
        JavaCodec(jars, folder / "java.log") as codec,
    ):
        yield Judge(codec, package, stricter_than(jars.version))


def with_samples(samples: list[dict[str, Any]], folder: Path) -> KafkaJars:
    """Add a jar with the classes that Kafka's generator makes of the samples to Kafka's jars."""
    kafka = find_jars(TOOLS_VERSION)
    sources, classes, jars = (folder / name for name in ("sources", "classes", "jars"))
    for each in (sources, jars):
        each.mkdir()
    assert [told.split()[0] for told in verdicts(samples, str(sources))] == ["accepted"] * len(samples)
    (compiler,) = tool_server_classes().parent.glob("compiler/ecj-*.jar")
    compile_java = [java(), "-jar", str(compiler), "--release", "17", "-nowarn", "-cp", kafka.class_path]
    files = [str(each) for each in sorted(sources.iterdir())]
    subprocess.run([*compile_java, "-d", str(classes), *files], check=True, timeout=DEADLINE_S)
    for jar in kafka.folder.glob("*.jar"):
        (jars / jar.name).symlink_to(jar)
    with zipfile.ZipFile(jars / "kafka-samples.jar", "w") as archive:
        for path in sorted(classes.rglob("*.class")):
            archive.write(path, path.relative_to(classes))
    return KafkaJars(kafka.version, jars)


@pytest.mark.parametrize("kind", SHARES)
def test_its_code_of_odd_schemas_says_the_same(judge: Judge, kind: str) -> None:
    cases = judge.cases(kind, SAMPLE_CASES, seed=1)
    found = judge.judge(cases)
    assert not found.differences, found.report()
    assert found.outcomes["accepted"] > len(cases) // 10
    assert found.outcomes["refused"] > 0
