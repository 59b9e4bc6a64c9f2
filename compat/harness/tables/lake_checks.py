"""Compare the pipeline's tables with those that one batch computes from all records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession

from kraft_wire.spark.options import Options
from kraft_wire.spark.tables.brokers import broker_history, broker_sessions, brokers
from kraft_wire.spark.tables.churn import churn
from kraft_wire.spark.tables.configs import config_changes, config_history, configs
from kraft_wire.spark.tables.failovers import failovers
from kraft_wire.spark.tables.features import feature_history, features
from kraft_wire.spark.tables.inputs import FrameTables, Tables, spark_schema
from kraft_wire.spark.tables.partitions import (
    isr_history,
    leadership,
    partition_history,
    partitions,
    reassignments,
    under_replicated,
)
from kraft_wire.spark.tables.topics import topic_history, topics
from kraft_wire.tabular.table_names import CORRUPT, table_names

DERIVED: dict[str, Callable[[Tables], DataFrame]] = {
    "broker_history": broker_history,
    "broker_sessions": broker_sessions,
    "brokers": brokers,
    "churn": churn,
    "config_changes": config_changes,
    "config_history": config_history,
    "configs": configs,
    "failovers": failovers,
    "feature_history": feature_history,
    "features": features,
    "isr_history": isr_history,
    "leadership": leadership,
    "partition_history": partition_history,
    "partitions": partitions,
    "reassignments": reassignments,
    "topic_history": topic_history,
    "topics": topics,
    "under_replicated": under_replicated,
}


def check_lake(spark: SparkSession, target: Path, tables: Tables) -> None:
    """Check that every table in the target has exactly the expected rows."""
    at_hand = {}
    for table in set(table_names()) - {CORRUPT}:
        rows = tables.read(table, *spark_schema(table).names).toArrow()
        compare(spark, target / table, rows)
        at_hand[table] = spark.createDataFrame(rows)
    check_derived(spark, target, FrameTables(spark, at_hand))


def check_derived(spark: SparkSession, target: Path, tables: Tables) -> None:
    """Check that every derived table in the target has exactly the expected rows."""
    for name, derived in DERIVED.items():
        compare(spark, target / name, derived(tables).toArrow())


def read_table(target: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table of records, sorted by offset, read without Spark."""
    folder = target / table
    if not folder.is_dir():
        return []
    schema = Options((), table).schema
    found = ds.dataset(folder, format="parquet", partitioning="hive").to_table(columns=schema.names)
    rows: list[dict[str, Any]] = found.cast(schema).sort_by("offset").to_pylist()
    return rows


def compare(spark: SparkSession, folder: Path, expected: pa.Table) -> None:
    rows = row_counts(expected)
    if not list(folder.rglob("*.parquet")):
        assert not rows, f"{folder} is missing"
        return
    kept = spark.read.parquet(str(folder))
    assert set(kept.columns) == set(expected.column_names)
    found = row_counts(kept.select(*expected.column_names).toArrow())
    assert found == rows, f"{folder.name}: too many {found - rows}, missing {rows - found}"


def row_counts(rows: pa.Table) -> Counter[Any]:
    return Counter(plain(list(row.values())) for row in rows.to_pylist())


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((name, plain(inner)) for name, inner in value.items())
    return tuple(map(plain, value)) if isinstance(value, list) else value
