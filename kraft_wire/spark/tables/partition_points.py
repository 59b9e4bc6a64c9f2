"""Compute every state of every partition, by the rules of org.apache.kafka.metadata.PartitionRegistration."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraft_wire.metadata.partitions.partition import DIRECTORY_MIGRATING, NO_LEADER_CHANGE
from kraft_wire.spark.tables.effects import ORDER, effective, facts, moment, read
from kraft_wire.spark.tables.history import as_events, bounded, last_known, so_far, union
from kraft_wire.spark.tables.inputs import Tables, without
from kraft_wire.spark.tables.open_rows import OpenRows, nothing_before

TOPIC_KEY: Final = ("topic_id", "cluster")
KEY: Final = (*TOPIC_KEY, "partition")
"""In this order, a topic's rows, whose partition is null, come before those of its partitions."""
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
"""A leader recovery state that means no change."""


def partition_points(tables: Tables, before: OpenRows = nothing_before) -> DataFrame:
    """Return the points of partitions: the topic's name, FIELDS and EPOCHS.

    ``whole`` rows set all fields; others set the fields that change and leave the rest null.
    """
    rows = _of_known_topics(effective(_events(tables, before), facts(tables)))
    rows = _filled(rows).withColumn("exists", F.lit(True))
    migrating = F.lit(str(DIRECTORY_MIGRATING))
    nowhere = F.size(F.array_remove("directories", migrating)) == 0
    directories = F.when(nowhere, F.array_repeat(migrating, F.size("replicas"))).otherwise(
        F.col("directories")
    )
    return bounded(rows.withColumn("directories", directories), KEY, "removed", "next_reset")


def _events(tables: Tables, before: OpenRows) -> DataFrame:
    topics = [
        read(tables, "topic", "topic_id", "name").withColumnRenamed("name", "topic"),
        _known(before, "topic_history"),
    ]
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
    partitions = [
        created.withColumnRenamed("partition_id", "partition").withColumn("whole", F.lit(True)),
        _known(before, "partition_history", whole=True),
    ]
    changed = changed.withColumnRenamed("partition_id", "partition").withColumn("whole", F.lit(False))
    removed = read(tables, "remove_topic", "topic_id").withColumn("removes", F.lit(True))
    cleared = _clearings(tables, union(topics), union(partitions))
    return union([*partitions, changed, cleared, *topics, removed])


def _known(before: OpenRows, table: str, **also: bool) -> DataFrame | None:
    rows = before(table)
    if rows is None:
        return None
    more = [F.lit(value).alias(name) for name, value in also.items()]
    return as_events(rows).transform(without, "exists").select("*", *more)


def _clearings(tables: Tables, topics: DataFrame, partitions: DataFrame) -> DataFrame:
    """Return a row for each partition whose eligible leader replicas a record clears. Superfluous rows do no
    harm: clearing what is empty or missing changes nothing."""
    records = read(tables, "clear_elr", "topic_name")
    topics = topics.select("cluster", "topic_id", "topic")
    partitions = partitions.select("cluster", "topic_id", "partition")
    concerned = records.join(topics, "cluster").filter(F.col("topic_name").isin("", F.col("topic")))
    rows = concerned.transform(without, "topic_name", "topic").join(partitions, ["cluster", "topic_id"])
    nobody = F.array().cast("array<int>")
    return rows.withColumns(
        {
            "eligible_leader_replicas": nobody,
            "last_known_elr": nobody,
            "whole": F.lit(False),
            "clears": F.lit(True),
        }
    )


def _of_known_topics(rows: DataFrame) -> DataFrame:
    """Return the rows of partitions, with their topic's name, and when the topic was removed."""
    topic = Window.partitionBy(*TOPIC_KEY).orderBy("partition", *ORDER)
    topic = topic.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    removed = last_known(F.when(F.col("removes"), moment()), topic)
    rows = rows.withColumns({"topic": last_known("topic", topic), "removed": removed})
    return rows.filter(F.col("partition").isNotNull()).transform(without, "removes")


def _filled(rows: DataFrame) -> DataFrame:
    """Fill in the fields that rows leave out.

    Naming a leader raises the leader epoch, even if it is the same leader. Every change raises the partition
    epoch, also a clearing that clears anything.
    """
    window = so_far(KEY)
    earlier = window.rowsBetween(Window.unboundedPreceding, -1)
    names_leader = ~F.col("whole") & F.col("leader").isNotNull()
    had_any = [
        F.coalesce(last_known(F.size(name) > 0, earlier), F.lit(False))
        for name in ("eligible_leader_replicas", "last_known_elr")
    ]
    changes = ~F.col("whole") & (F.col("clears").isNull() | had_any[0] | had_any[1])
    next_reset = F.coalesce("next_reset.at_offset", F.lit(-1))
    rows = rows.withColumns(
        {
            **{name: last_known(name, window) for name in FIELDS},
            "_reset": last_known(F.when(F.col("whole"), next_reset), window),
            "_elections": F.sum(names_leader.cast("int")).over(window),
            "_changes": changes.cast("int"),
        }
    )
    rows = rows.withColumn("_changes", F.sum("_changes").over(window))
    counts = {"leader_epoch": "_elections", "partition_epoch": "_changes"}
    rows = rows.withColumns(
        {
            epoch: (
                last_known(F.when(F.col("whole"), F.col(epoch) - F.col(count)), window) + F.col(count)
            ).cast("int")
            for epoch, count in counts.items()
        }
    )
    is_there = F.col("removed").isNull() | (F.col("removed") > moment())
    rows = rows.filter((F.col("_reset") == next_reset) & is_there)
    return rows.transform(without, "clears", "whole", "_reset", "_elections", "_changes")


def _unless(name: str, nothing: int) -> Column:
    return F.when(F.col(name) != nothing, F.col(name))
