"""The pipeline runs on a Spark cluster through Spark Connect; client and server share only files."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from compat.harness.commands import running
from compat.harness.tables.connect_server import connect_server
from compat.harness.tables.lake_checks import DERIVED, compare
from compat.harness.tables.random_history import History, write_log
from compat.harness.tables.spark_session import FEW_ROWS
from compat.harness.waiting import wait_until
from kraft_wire.lake.protocol import Lake
from kraft_wire.spark.tables.typed_records import RecordsTables

SPARK_SETTINGS = FEW_ROWS
COMPARED = ("broker_sessions", "churn", "configs", "failovers", "features", "leadership", "topics")
"""One derived table of each kind."""
SPARKS_PATIENCE_S = 10
"""PythonWorkerFactory waits so long for a Python that it starts."""


@pytest.fixture(scope="module")
def unshared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the server sees another file system."""
    return tmp_path_factory.mktemp("unshared")


@pytest.fixture(scope="module")
def slow_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that makes the server's next Python for batches start after Spark has given it up."""
    return tmp_path_factory.mktemp("slow") / "once"


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory, unshared: Path, slow_once: Path) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("connect")
    python = folder / "python"
    python.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        f'*foreach_batch_worker*) rm "{slow_once}" 2> /dev/null && sleep {SPARKS_PATIENCE_S};;\n'
        "esac\n"
        f'exec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    with connect_server(folder, FEW_ROWS, unshared, python) as url:
        yield url


def pipeline_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), cwd=folder, capture_output=True, text=True, timeout=300)


def command(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("kraft-wire")), "pipeline", "run", "--once", *arguments]


def test_a_pipeline_on_a_server_makes_what_a_batch_makes(
    spark: SparkSession, remote: str, tmp_path: Path
) -> None:
    """The pipeline runs twice; folders are named as the client sees them."""
    for cluster, seed, read in (
        ("one", 1, "60 offsets of 1 cluster"),
        ("two", 2, "120 offsets of 2 clusters"),
    ):
        write_log(tmp_path / "logs" / cluster, History(cluster, seed, 60))
        few = ("--option", "maxOffsetsPerTrigger=40")
        ended = pipeline_run(tmp_path, "--remote", remote, "--source", "logs", "--target", "lake", *few)
        assert ended.returncode == 0, ended.stderr
        *batches, done = ended.stdout.splitlines()
        assert len(batches) == 2, ended.stdout
        assert done == f"done: {read}, tables in lake"
    records = spark.read.format("kraft").load(str(tmp_path / "logs")).toArrow()
    tables = RecordsTables(spark.createDataFrame(records))
    compare(spark, tmp_path / "lake" / "records", records)
    for name in COMPARED:
        compare(spark, tmp_path / "lake" / name, DERIVED[name](tables).toArrow())


def test_a_pipeline_whose_python_is_slow_to_start_is_started_again(
    remote: str, slow_once: Path, tmp_path: Path
) -> None:
    write_log(tmp_path / "logs", History("one", 1, 20))
    slow_once.touch()
    ended = pipeline_run(tmp_path, "--remote", remote, "--source", "logs", "--target", "lake")
    assert ended.returncode == 0, ended.stderr
    slow, batch, done = ended.stdout.splitlines()
    assert slow == "Python is slow to start where Spark runs; attempt 2 of 3"
    assert batch.startswith("batch 0: 20 records")
    assert done == "done: 20 offsets of 1 cluster, tables in lake"


def test_a_pipeline_that_is_asked_to_stop_does_so_after_its_batch(remote: str, tmp_path: Path) -> None:
    write_log(tmp_path / "logs", History("one", 1, 120))
    few = ["--option", "maxOffsetsPerTrigger=20"]
    words = command("--remote", remote, "--source", "logs", "--target", "lake", *few)
    with running(words, tmp_path) as process:
        wait_until(lambda: any(tmp_path.glob("lake/_kraft/staging/*")), "the first batch to be begun")
        process.send_signal(signal.SIGTERM)
        told, said = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert told.startswith("batch 0: 20 records") and len(told.splitlines()) < 4
    assert "stopping after this batch" in said and "Traceback" not in said
    with Lake(tmp_path / "lake") as lake:
        assert lake.last_batch >= 0


def test_what_fails_on_the_server_is_told_without_its_stack(remote: str, tmp_path: Path) -> None:
    ended = pipeline_run(tmp_path, "--remote", remote, "--source", "nowhere", "--target", "lake")
    assert ended.returncode != 0
    assert f"in or below {tmp_path}/nowhere: give a node's metadata folder" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_target_that_the_server_does_not_see_gets_no_rows(
    remote: str, unshared: Path, tmp_path: Path
) -> None:
    write_log(tmp_path / "logs", History("one", 1, 20))
    target = unshared / "lake"
    ended = pipeline_run(tmp_path, "--remote", remote, "--source", "logs", "--target", str(target))
    assert ended.returncode != 0, ended.stdout
    assert f"{target}: the Spark Connect server sees another folder there than this machine" in ended.stderr
    assert "Traceback" not in ended.stderr
