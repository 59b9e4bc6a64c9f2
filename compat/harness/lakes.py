"""What the pipeline keeps, beside what a batch makes of all the records from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kraft_wire.spark.options import CORRUPT, table_names
from kraft_wire.spark.tables.brokers import broker_history, broker_sessions, brokers
from kraft_wire.spark.tables.churn import churn
from kraft_wire.spark.tables.configs import config_changes, config_history, configs
from kraft_wire.spark.tables.failovers import failovers
from kraft_wire.spark.tables.features import feature_history, features
from kraft_wire.spark.tables.inputs import Tables, spark_schema
from kraft_wire.spark.tables.partitions import (
    isr_history,
    leadership,
    partition_history,
    partitions,
    reassignments,
    under_replicated,
)
from kraft_wire.spark.tables.topics import topic_history, topics

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
    """Every table that anybody reads below the target has just the rows that it should have."""
    for table in set(table_names()) - {CORRUPT}:
        compare(spark, target / table, tables.read(table, *spark_schema(table).names))
    for name, derived in DERIVED.items():
        compare(spark, target / name, derived(tables))


def compare(spark: SparkSession, folder: Path, expected: DataFrame) -> None:
    rows = contents(expected, expected.columns)
    if not list(folder.rglob("*.parquet")):
        assert not rows, f"{folder} is missing"
        return
    kept = spark.read.parquet(str(folder))
    assert set(kept.columns) == set(expected.columns)
    found = contents(kept, expected.columns)
    assert found == rows, f"{folder.name}: too many {found - rows}, missing {rows - found}"


def contents(frame: DataFrame, columns: list[str]) -> Counter[Any]:
    return Counter(plain(tuple(row)) for row in frame.select(*columns).collect())


def plain(value: Any) -> Any:
    return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else bytes_of(value)


def bytes_of(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
