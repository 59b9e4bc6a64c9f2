"""Derive tables of partitions: their states, leaders, ISRs, missing replicas and reassignments."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraft_wire.spark.tables.history import SPAN, current, intervals
from kraft_wire.spark.tables.inputs import Tables, Until
from kraft_wire.spark.tables.open_rows import OpenRows, nothing_before
from kraft_wire.spark.tables.partition_points import EPOCHS, FIELDS, KEY, partition_points

NAMES: Final = ("cluster", "topic_id", "topic", "partition")


def partition_history(tables: Tables) -> DataFrame:
    """Return every state of every partition.

    Key: cluster, topic_id, partition, start_offset. Columns: topic, leader (-1: none), isr, replicas,
    adding_replicas, removing_replicas, eligible_leader_replicas and last_known_elr (empty where ELR is not in
    use), directories (in the order of ``replicas``), leader_recovery_state (1 after an unclean election,
    until the leader has recovered), leader_epoch, partition_epoch, and those of SPAN.
    """
    return partition_intervals(partition_points(tables))


def partitions(
    tables: Tables, as_of_offset: int | None = None, as_of_time: datetime | None = None
) -> DataFrame:
    """Return the partitions, at the end of the logs or at an offset or time.

    Key: cluster, topic_id, partition. Columns: those of ``partition_history``; start_... are when the
    partition got this state.
    """
    return current(partition_history(Until(tables, as_of_offset, as_of_time)))


def leadership(tables: Tables) -> DataFrame:
    """Return the leader of each partition over time. Electing the same leader again begins another interval,
    because the epoch changes.

    Key: cluster, topic_id, partition, leader_epoch, start_offset. Columns: topic, leader (-1: none), unclean
    (whether the election was unclean), preferred (whether the leader was the first replica at the time), and
    those of SPAN.
    """
    return leadership_intervals(partition_points(tables))


def isr_history(tables: Tables) -> DataFrame:
    """Return the in-sync replicas of each partition over time.

    Key: cluster, topic_id, partition, start_offset. Columns: topic, isr, isr_size, and those of SPAN.
    """
    return isr_intervals(partition_points(tables))


def under_replicated(tables: Tables) -> DataFrame:
    """Return when fewer replicas were in sync than there should be, as Kafka counts under-replicated
    partitions: replicas that a reassignment is adding aren't expected yet.

    Key: cluster, topic_id, partition, start_offset. Columns: topic, missing_replicas (expected ones that were
    not in sync; a change begins another interval), leader (at the interval's start; -1: the partition was
    offline), and those of SPAN.
    """
    return under_replicated_intervals(partition_points(tables))


def reassignments(tables: Tables) -> DataFrame:
    """Return when replicas were being moved.

    Key: cluster, topic_id, partition, start_offset. Columns: topic, adding_replicas, removing_replicas,
    replicas and next_replicas (at the start and after the end), outcome (completed, cancelled, replaced by
    another reassignment, topic_removed; null while it lasts), and those of SPAN.
    """
    return reassignment_intervals(partition_points(tables))


def partition_intervals(points: DataFrame, before: OpenRows = nothing_before) -> DataFrame:
    """See ``partition_history``."""
    found = intervals(points, KEY, [*FIELDS, *EPOCHS], ["topic"], before("partition_history"))
    return found.select(*NAMES, *FIELDS, *EPOCHS, *SPAN)


def leadership_intervals(points: DataFrame, before: OpenRows = nothing_before) -> DataFrame:
    """See ``leadership``."""
    points = points.withColumns(
        {
            "unclean": F.col("leader_recovery_state") == 1,
            "preferred": F.col("leader") == F.get("replicas", F.lit(0)),
        }
    )
    found = intervals(
        points, KEY, ["leader", "leader_epoch"], ["topic", "unclean", "preferred"], before("leadership")
    )
    return found.select(*NAMES, "leader_epoch", "leader", "unclean", "preferred", *SPAN)


def isr_intervals(points: DataFrame, before: OpenRows = nothing_before) -> DataFrame:
    """See ``isr_history``."""
    found = intervals(points, KEY, ["isr"], ["topic"], before("isr_history"))
    return found.select(*NAMES, "isr", F.size("isr").alias("isr_size"), *SPAN)


def under_replicated_intervals(points: DataFrame, before: OpenRows = nothing_before) -> DataFrame:
    """See ``under_replicated``."""
    expected = F.array_except("replicas", "adding_replicas")
    missing = F.array_sort(F.array_except(expected, "isr"))
    lacks = F.size("isr") < F.size(expected)
    points = points.withColumn("missing_replicas", F.when(lacks & F.col("exists"), missing))
    found = intervals(points, KEY, ["missing_replicas"], ["topic", "leader"], before("under_replicated"))
    found = found.filter(F.col("missing_replicas").isNotNull())
    return found.select(*NAMES, "missing_replicas", "leader", *SPAN)


def reassignment_intervals(points: DataFrame, before: OpenRows = nothing_before) -> DataFrame:
    """See ``reassignments``."""
    moving = ["adding_replicas", "removing_replicas"]
    ended_how = ["exists", "replicas", *moving]
    found = intervals(points, KEY, moving, ["topic", "replicas"], before("reassignments"), ended_how)
    found = found.filter((F.size("adding_replicas") > 0) | (F.size("removing_replicas") > 0))
    over = F.col("end_offset").isNotNull()
    moved_on = (F.size("next_adding_replicas") > 0) | (F.size("next_removing_replicas") > 0)
    arrived = F.size(F.array_except("adding_replicas", "next_replicas")) == 0
    left = ~F.arrays_overlap("removing_replicas", "next_replicas")
    outcome = (
        F.when(over & ~F.col("next_exists"), "topic_removed")
        .when(over & moved_on, "replaced")
        .when(over & arrived & left, "completed")
        .when(over, "cancelled")
    )
    return found.select(*NAMES, *moving, "replicas", "next_replicas", outcome.alias("outcome"), *SPAN)
