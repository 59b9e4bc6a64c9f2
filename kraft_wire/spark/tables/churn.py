"""Derive the table of changes in each hour."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraft_wire.metadata.partitions.partition import NO_LEADER_CHANGE
from kraft_wire.spark.tables.effects import effective, facts, read
from kraft_wire.spark.tables.history import union
from kraft_wire.spark.tables.inputs import Tables
from kraft_wire.tabular.table_names import RECORDS

COUNTS: Final = (
    "records",
    "controller_changes",
    "topics_created",
    "topics_removed",
    "partitions_created",
    "partition_changes",
    "elections",
    "isr_changes",
    "broker_registrations",
    "broker_unregistrations",
    "fencings",
    "unfencings",
    "config_changes",
)


def churn(tables: Tables) -> DataFrame:
    """Return how many records of each kind each hour had.

    Key: cluster, hour (a timestamp, UTC). Columns: records (all, control records included, when they were
    written), controller_changes; and of the records that took effect, when they did: topics_created,
    topics_removed, partitions_created, partition_changes, elections (changes that name a leader), isr_changes
    (that name an ISR), broker_registrations, broker_unregistrations, fencings, unfencings, config_changes.
    Records of snapshots aren't counted.
    """
    return added_up(counted(tables, tables))


def added_up(parts: DataFrame) -> DataFrame:
    """Sum up rows that count parts of an hour, one row for each hour."""
    return parts.groupBy("cluster", "hour").agg(*[F.sum(name).alias(name) for name in COUNTS])


def counted(tables: Tables, all_tables: Tables) -> DataFrame:
    """Return one row of counts for each record. ``all_tables`` also have the records that wait for the end of
    a transaction."""
    written = read(all_tables, RECORDS, "type").filter(~F.col("in_snapshot"))
    changes = read(tables, "partition_change", "leader", "isr")
    fenced = F.col("fenced")
    fencing = read(tables, "broker_registration_change", "fenced")
    parts = [
        _counts(
            changes,
            {
                "partition_changes": F.lit(True),
                "elections": F.col("leader") != NO_LEADER_CHANGE,
                "isr_changes": F.col("isr").isNotNull(),
            },
        ),
        _counts(fencing, {"fencings": fenced == 1, "unfencings": fenced == -1}),
        *[_counts(read(tables, table), {name: F.lit(True)}) for table, name in _OWN.items()],
    ]
    took_effect = effective(union(parts), facts(tables)).withColumnRenamed("at_timestamp", "timestamp")
    all_written = _counts(
        written, {"records": F.lit(True), "controller_changes": F.col("type") == "LeaderChangeMessage"}
    )
    rows = union([all_written, took_effect.filter(~F.col("in_snapshot"))])
    counts = [F.coalesce(name, F.lit(0).cast("bigint")).alias(name) for name in COUNTS]
    hours = F.floor(F.unix_seconds("timestamp") / 3600)
    return rows.select("cluster", F.timestamp_seconds(hours * 3600).alias("hour"), *counts)


_OWN: Final = {
    "topic": "topics_created",
    "remove_topic": "topics_removed",
    "partition": "partitions_created",
    "register_broker": "broker_registrations",
    "unregister_broker": "broker_unregistrations",
    "fence_broker": "fencings",
    "unfence_broker": "unfencings",
    "config": "config_changes",
}


def _counts(rows: DataFrame, what: dict[str, Column]) -> DataFrame:
    counted = [F.when(column, 1).otherwise(0).cast("bigint").alias(name) for name, column in what.items()]
    return rows.select("cluster", "offset", "timestamp", "in_snapshot", *counted)
