"""The pipeline's tables are those that one batch computes, however the records are split."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from compat.harness.tables.lake_checks import check_lake
from compat.harness.tables.random_history import History, write_log
from compat.harness.tables.spark_session import FEW_ROWS
from kraft_wire.lake.protocol import Lake, LakeError
from kraft_wire.spark.pipeline.batch import SMALL_RECORDS, apply_batch
from kraft_wire.spark.pipeline.run import run
from kraft_wire.spark.pipeline.spark_writer import SparkWriter
from kraft_wire.spark.tables.typed_records import RecordsTables
from kraft_wire.tabular.arrow_types import RECORDS_SCHEMA

SPARK_SETTINGS = FEW_ROWS


def frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows, RECORDS_SCHEMA))


def cut(rows: list[dict[str, Any]], random: Random, count: int) -> list[list[dict[str, Any]]]:
    """Split the rows into parts, some of them empty, without splitting a snapshot."""
    inside = [before["in_snapshot"] and row["in_snapshot"] for before, row in pairwise(rows)]
    places = sorted(random.choices([n for n, whole in enumerate(inside, 1) if not whole], k=count - 1))
    return [rows[start:end] for start, end in zip([0, *places], [*places, len(rows)], strict=True)]


def test_batches_cut_anywhere_make_what_one_batch_makes(spark: SparkSession, tmp_path: Path) -> None:
    """The middle batch is handled as a large one; the target's path looks like a partition of a cluster."""
    random = Random(5)
    target = tmp_path / "cluster=other"
    histories = [History("one", 1, 120), History("gap", 11, 200, gap=(120, 170)), History("late", 8, 40)]
    parts = [cut(history.rows, random, 3) for history in histories[:2]] + [[[], [], histories[2].rows]]
    for batch, small_records in enumerate((SMALL_RECORDS, 0, SMALL_RECORDS)):
        rows = frame(spark, [row for of_cluster in parts for row in of_cluster[batch]])
        with Lake(target) as lake:
            apply_batch(lake, rows, batch, small_records)
            assert apply_batch(lake, frame(spark, []), batch) is None
    everything = [row for history in histories for row in history.rows]
    check_lake(spark, target, RecordsTables(frame(spark, everything).cache()))


def test_a_log_that_comes_again_is_an_error_that_names_the_cluster(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = History("one", 1, 20).rows
    with Lake(tmp_path) as lake:
        apply_batch(lake, frame(spark, rows), 0)
        with pytest.raises(LakeError, match="has been read to offset 19, and now offset 15 comes again"):
            apply_batch(lake, frame(spark, rows[15:]), 1)


def test_offsets_without_rows_are_reported(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Offsets are missing, as after a damaged batch, in the middle of a read, at its start, and at the log
    start."""
    histories = History("one", 1, 20), History("gap", 1, 12, gap=(3, 6)), History("start", 1, 9)
    whole, gap, start = (history.rows for history in histories)
    batches = [whole[:5] + whole[7:10] + gap[:4], whole[12:] + gap[4:] + start[1:]]
    with Lake(tmp_path) as lake:
        for batch, rows in enumerate(batches):
            apply_batch(lake, frame(spark, rows), batch)
    assert [record.getMessage() for record in caplog.records if "missing" in record.getMessage()] == [
        "cluster one: 2 of the offsets 0 to 9 weren't read and are missing in the tables",
        "cluster one: 2 of the offsets 10 to 19 weren't read and are missing in the tables",
        "cluster start: 1 of the offsets 0 to 8 weren't read and are missing in the tables",
    ]


def test_rows_that_were_kept_are_let_go_where_their_use_fails(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(1)
    with pytest.raises(ZeroDivisionError), SparkWriter(spark, tmp_path, tmp_path, 1).kept(rows) as kept:
        assert kept.storageLevel.useMemory
        raise ZeroDivisionError
    assert not rows.storageLevel.useMemory


@pytest.mark.parametrize("lost", ["checkpoint", "batches"])
def test_a_target_that_lost_its_place_or_its_tables_is_an_error(
    spark: SparkSession, tmp_path: Path, lost: str
) -> None:
    source, target = tmp_path / "logs", tmp_path / "lake"
    write_log(source, History("one", 1, 3))

    def run_once() -> None:
        run(spark, {"path": str(source)}, target, None, print)

    run_once()
    run_once()
    shutil.rmtree(target / "_kraft" / lost)
    with pytest.raises(LakeError, match="they don't match"):
        run_once()
