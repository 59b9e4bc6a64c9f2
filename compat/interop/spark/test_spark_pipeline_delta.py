"""A reader of Delta sees the same rows in the pipeline's tables as a reader of Parquet.

Spark itself can read them with the jar of Delta on pyspark 4.2; that isn't tested here."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow.dataset import dataset
from pyspark.sql import SparkSession

from compat.harness.tables.random_history import History, write_log
from compat.harness.tables.spark_session import FEW_ROWS
from kraft_wire.lake.protocol import visible_tables
from kraft_wire.spark.pipeline.run import run

SPARK_SETTINGS = FEW_ROWS


def test_every_table_that_spark_has_written_is_a_delta_table(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "lake"
    write_log(source, History("one", 1, 60))
    lines: list[str] = []
    run(spark, {"path": str(source), "maxOffsetsPerTrigger": "40"}, target, None, lines.append, "delta")
    assert len(lines) > 1, "more than one batch"
    tables = visible_tables(target)
    assert {"records", "topic", "leadership", "partitions", "churn"} <= set(tables)
    for table in tables:
        assert _delta_rows(target / table) == _parquet_rows(target / table), table


def _delta_rows(folder: Path) -> list[str]:
    return _in_order(DeltaTable(str(folder)).to_pyarrow_table())


def _parquet_rows(folder: Path) -> list[str]:
    return _in_order(dataset(folder, format="parquet", partitioning="hive").to_table())


def _in_order(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.select(sorted(rows.column_names)).to_pylist()))
