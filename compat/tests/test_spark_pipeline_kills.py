"""The pipeline's command, killed again and again, ends with what a batch makes from scratch."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from compat.harness.histories import History, write_log
from compat.harness.lakes import check_lake
from compat.harness.spark import FEW_ROWS
from kraft_wire.spark.tables.typed_records import RecordsTables

SPARK_SETTINGS = FEW_ROWS
KILLS = 3


def command(source: Path, target: Path) -> list[str]:
    settings = [word for name, value in FEW_ROWS.items() for word in ("--setting", f"{name}={value}")]
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
