"""Every state that a partition was ever in: the rules of org.apache.kafka.metadata.PartitionRegistration."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraft_wire.metadata.partition import DIRECTORY_MIGRATING, NO_LEADER_CHANGE
from kraft_wire.spark.tables.effects import MOMENT_COLUMNS, effective, facts, moment, read
from kraft_wire.spark.tables.history import as_events, bounded, in_order, last_known, so_far, union
from kraft_wire.spark.tables.inputs import Tables
from kraft_wire.spark.tables.open_rows import OpenRows, nothing_before

KEY: Final = ("topic_id", "partition", "cluster")
TOPIC_KEY: Final = ("topic_id", "cluster")
FIELDS: Final = (
    "leader",
    "isr",
    "replicas",
    "adding_replicas",
    "removing_replicas",
    "eligible_leader_replicas",
    "last_known_elr",
    "directories",
    "leader_recovery_state",
)
EPOCHS: Final = ("leader_epoch", "partition_epoch")

_STAYS: Final = -1
"""A leader recovery state that says nothing."""


def partition_points(tables: Tables, before: OpenRows = nothing_before) -> DataFrame:
    """Points of partitions: the topic's name, FIELDS and EPOCHS. ``whole`` rows say everything; others say
    what changes and leave the rest null."""
    rows = _of_known_topics(effective(_events(tables, before), facts(tables)))
    rows = _with_clearings(rows, _clearings(tables))
    rows = _filled(rows)
    rows = rows.filter(F.col("replicas").isNotNull()).withColumn("exists", F.lit(True))
    migrating = F.lit(str(DIRECTORY_MIGRATING))
    nowhere = F.forall("directories", lambda directory: directory == migrating)
    directories = F.when(nowhere, F.array_repeat(migrating, F.size("replicas"))).otherwise(
        F.col("directories")
    )
    return bounded(rows.withColumn("directories", directories), KEY, "removed", "next_reset")


def _events(tables: Tables, before: OpenRows) -> DataFrame:
    known = before("partition_history")
    topics = before("topic_history")
    created = read(tables, "partition", "partition_id", "topic_id", *FIELDS, *EPOCHS)
    for name in ("eligible_leader_replicas", "last_known_elr"):
        created = created.withColumn(name, F.coalesce(name, F.array().cast("array<int>")))
    changed = read(tables, "partition_change", "partition_id", "topic_id", *FIELDS)
    changed = changed.withColumns(
        {
            "leader": _unless("leader", NO_LEADER_CHANGE),
            "leader_recovery_state": _unless("leader_recovery_state", _STAYS),
        }
    )
    return union(
        [
            created.withColumnRenamed("partition_id", "partition").withColumn("whole", F.lit(True)),
            changed.withColumnRenamed("partition_id", "partition").withColumn("whole", F.lit(False)),
            read(tables, "topic", "topic_id", "name").withColumnRenamed("name", "topic"),
            read(tables, "remove_topic", "topic_id").withColumn("removes", F.lit(True)),
            None if topics is None else as_events(topics).drop("exists"),
            None if known is None else as_events(known).drop("exists").withColumn("whole", F.lit(True)),
        ]
    )


def _of_known_topics(rows: DataFrame) -> DataFrame:
    """Partitions' rows, with their topic's name, and when it was removed."""
    topic = Window.partitionBy(*TOPIC_KEY)
    rows = rows.withColumns(
        {
            "topic": F.max("topic").over(topic),
            "removed": F.min(F.when(F.col("removes"), moment())).over(topic),
        }
    )
    return rows.filter(F.col("partition").isNotNull()).drop("removes")


def _clearings(tables: Tables) -> DataFrame:
    """One row for each cluster: ``clearings``, when whose eligible leader replicas were forgotten."""
    rows = effective(read(tables, "clear_elr", "topic_name"), facts(tables))
    clearing = F.struct(*MOMENT_COLUMNS, "next_reset", F.col("topic_name").alias("of_topic"))
    return rows.groupBy("cluster").agg(F.collect_list(clearing).alias("clearings"))


def _with_clearings(rows: DataFrame, clearings: DataFrame) -> DataFrame:
    """Another row for each clearing behind a row that has something to clear. Too many are no harm: nothing
    comes of clearing what is empty."""
    rows = rows.join(F.broadcast(clearings), "cluster", "left")
    here = moment()

    def concerns(clearing: Column) -> Column:
        when = F.struct(*[clearing[name] for name in MOMENT_COLUMNS])
        there = F.col("removed").isNull() | (when < F.col("removed"))
        return clearing["of_topic"].isin("", F.col("topic")) & (when > here) & there

    has_any = (F.size("eligible_leader_replicas") > 0) | (F.size("last_known_elr") > 0)
    nothing = F.array(F.lit(None).cast(rows.schema["clearings"].dataType.elementType))  # type: ignore[attr-defined]
    also = F.when(has_any & F.col("clearings").isNotNull(), F.filter("clearings", concerns))
    rows = rows.withColumn("clears", F.explode(F.concat(nothing, F.coalesce(also, F.slice(nothing, 1, 0)))))
    cleared = F.col("clears").isNotNull()
    nobody = F.array().cast("array<int>")
    columns = {name: F.when(~cleared, F.col(name)) for name in (*FIELDS, *EPOCHS)}
    for name in ("eligible_leader_replicas", "last_known_elr"):
        columns[name] = F.when(cleared, nobody).otherwise(F.col(name))
    for name in (*MOMENT_COLUMNS, "next_reset"):
        columns[name] = F.when(cleared, F.col(f"clears.{name}")).otherwise(F.col(name))
    columns["whole"] = F.col("whole") & ~cleared
    columns["clears"] = cleared
    return rows.withColumns(columns).drop("clearings")


def _filled(rows: DataFrame) -> DataFrame:
    """What a row leaves out is as it was. Naming a leader raises the leader epoch, even where it is the same
    one; every change raises the partition epoch, and so does a clearing that clears anything."""
    window = so_far(KEY)
    order = in_order(KEY)
    names_leader = F.when(~F.col("whole") & F.col("leader").isNotNull(), 1).otherwise(0)
    rows = rows.withColumns(
        {
            **{name: last_known(name, window) for name in FIELDS},
            "_elections": F.sum(names_leader).over(window),
        }
    )
    had_any = F.lag((F.size("eligible_leader_replicas") > 0) | (F.size("last_known_elr") > 0)).over(order)
    rows = rows.withColumn("_had_any", had_any).filter(~F.col("clears") | F.col("_had_any"))
    rows = rows.withColumn("_changes", F.sum(F.when(F.col("whole"), 0).otherwise(1)).over(window))
    counts = {"leader_epoch": "_elections", "partition_epoch": "_changes"}
    rows = rows.withColumns(
        {
            epoch: (
                last_known(F.when(F.col("whole"), F.col(epoch) - F.col(count)), window) + F.col(count)
            ).cast("int")
            for epoch, count in counts.items()
        }
    )
    return rows.drop("clears", "whole", "_had_any", "_elections", "_changes")


def _unless(name: str, nothing: int) -> Column:
    return F.when(F.col(name) != nothing, F.col(name))
