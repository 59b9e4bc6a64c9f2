"""The pipeline's tables are those of one batch even if its command is killed again and again."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from compat.harness.commands import running
from compat.harness.tables.lake_checks import check_lake
from compat.harness.tables.random_history import History, write_log
from compat.harness.tables.spark_session import FEW_ROWS
from kraft_wire.lake.protocol import BATCHES, STAGING, Lake
from kraft_wire.lake.report.tables import LakeTables
from kraft_wire.log.files import PARTITION_FOLDER, segment_file_name
from kraft_wire.spark.tables.typed_records import RecordsTables

SPARK_SETTINGS = FEW_ROWS
LONGEST_S = {STAGING: 3.0, BATCHES: 0.05}
"""The longest time until the kill, after the command has begun a batch, or has completed one and moves its
files into place."""


def command(source: Path, target: Path, records: int, *more: str) -> list[str]:
    settings = [word for name, value in FEW_ROWS.items() for word in ("--setting", f"{name}={value}")]
    words = ["pipeline", "run", "--source", str(source), "--target", str(target)]
    options = ["--option", f"maxOffsetsPerTrigger={records}", "--master", "local[1]"]
    return [sys.executable, "-m", "kraft_wire.cli", *words, *options, *settings, *(more or ["--once"])]


def run_and_kill(words: list[str], folder: Path, after_seconds: float) -> int:
    """Kill the command some time after a change in the folder; its JVM ends with it.

    Return its exit code, which is below 0 if it was killed."""
    names = names_in(folder)
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    while process.poll() is None and names_in(folder) <= names:
        time.sleep(0.001)
    try:
        return process.wait(after_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*") if path.suffix in ("", ".json")}


def test_a_pipeline_that_is_killed_ends_exact(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    random = Random(1)
    kills = request.config.getoption("--kills")
    source, target = tmp_path / "logs", tmp_path / "lake"
    histories = History("one", 1, 120), History("two", 2, 90)
    for history in histories:
        write_log(source / history.cluster, history)
    words = command(source, target, sum(len(history.rows) for history in histories) // (kills + 1))
    killed = []
    for number in range(kills):
        where = (STAGING, BATCHES)[number % 2]
        killed.append(run_and_kill(words, target / where, random.uniform(0, LONGEST_S[where])))
        print(f"{where}: exit code {killed[-1]}; {len(list(target.rglob('*.parquet')))} files")
    assert -signal.SIGKILL in killed, "none was killed: all were quicker than that"
    subprocess.run(words, check=True)
    records = spark.read.format("kraft").load(str(source)).cache()
    check_lake(spark, target, RecordsTables(records))
    for history in histories:
        figures = LakeTables(str(target)).figures(history.cluster)
        assert figures.records == len(history.rows)
        check_restored(target, history, tmp_path / "restored" / history.cluster)


@pytest.mark.parametrize(
    ("when", "exit_code"), [(["--trigger-interval", "1 millisecond"], 0), (["--once"], 128 + signal.SIGTERM)]
)
def test_a_pipeline_that_is_asked_to_stop_does_so_between_batches_and_quietly(
    when: list[str], exit_code: int, tmp_path: Path
) -> None:
    """The run with --once hasn't read everything when it stops."""
    write_log(tmp_path / "logs", History("one", 1, 120))
    words = command(tmp_path / "logs", tmp_path / "lake", 30, *when)
    with running(words, tmp_path) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        rest, said = process.communicate(timeout=120)
    assert process.returncode == exit_code
    batches = [first, *rest.splitlines()]
    assert first.startswith("batch 0: 30 records") and len(batches) < 4
    assert "stopping after this batch" in said and "Traceback" not in said and "Exception" not in said
    with Lake(tmp_path / "lake") as lake:
        assert lake.last_batch == len(batches) - 1


def test_a_pipeline_says_what_it_does_at_the_start_and_at_the_end(tmp_path: Path) -> None:
    history = History("one", 1, 120)
    write_log(tmp_path / "logs", history)
    done = subprocess.run(command(tmp_path / "logs", tmp_path / "lake", 60), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"it reads {tmp_path / 'logs'} into {tmp_path / 'lake'}" in done.stderr
    offsets = history.rows[-1]["offset"] + 1
    assert done.stdout.splitlines()[-1] == (
        f"done: {offsets:,} offsets of 1 cluster, tables in {tmp_path / 'lake'}"
    )


def check_restored(target: Path, history: History, into: Path) -> None:
    words = ["--target", str(target), "--cluster", history.cluster, "--into", str(into), "--node-id", "1"]
    subprocess.run([sys.executable, "-m", "kraft_wire.cli", "pipeline", "restore", *words], check=True)
    write_log(into.with_suffix(".expected"), history)
    restored, written = (
        folder.joinpath(PARTITION_FOLDER, segment_file_name(0)).read_bytes()
        for folder in (into, into.with_suffix(".expected"))
    )
    assert restored == written
