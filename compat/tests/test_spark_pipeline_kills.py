"""The pipeline's command, killed again and again, ends with what a batch makes from scratch."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from compat.harness.histories import History, write_log
from compat.harness.lakes import check_lake
from kraft_wire.spark.session import session
from kraft_wire.spark.tables.typed_records import RecordsTables

QUICK = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
KILLS = 3


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    started = session("local[1]", QUICK)
    yield started
    started.stop()


def command(source: Path, target: Path) -> list[str]:
    settings = [word for name, value in QUICK.items() for word in ("--setting", f"{name}={value}")]
    words = ["pipeline", "run", "--source", str(source), "--target", str(target), "--once"]
    options = ["--option", "maxOffsetsPerTrigger=70", "--master", "local[1]"]
    return [sys.executable, "-m", "kraft_wire.cli", *words, *options, *settings]


def run_and_kill(words: list[str], after_seconds: float) -> int:
    """The command's exit code, below 0 where it was killed. Its JVM ends with it."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        return process.wait(after_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def test_a_pipeline_that_is_killed_ends_exact(spark: SparkSession, tmp_path: Path) -> None:
    random = Random(1)
    source, target = tmp_path / "logs", tmp_path / "lake"
    for history in (History("one", 1, 120), History("two", 2, 90)):
        write_log(source / history.cluster, history)
    words = command(source, target)
    killed = [run_and_kill(words, random.uniform(15, 90)) for _ in range(KILLS)]
    assert -signal.SIGKILL in killed, "none was killed: all were quicker than that"
    subprocess.run(words, check=True)
    records = spark.read.format("kraft").load(str(source)).cache()
    check_lake(spark, target, RecordsTables(records))
