"""Derive tables of dynamic configurations, of topics, brokers and other resources."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kraft_wire.metadata.configs import ResourceType
from kraft_wire.spark.tables.effects import effective, facts, moment, read
from kraft_wire.spark.tables.history import (
    SPAN,
    as_events,
    bounded,
    current,
    in_order,
    intervals,
    union,
    with_ends,
)
from kraft_wire.spark.tables.inputs import Tables, Until, without
from kraft_wire.spark.tables.open_rows import OpenRows, nothing_before
from kraft_wire.spark.tables.topics import topic_points

KEY: Final = ("resource_name", "name", "resource_type", "cluster")
RESOURCE: Final = ("resource_name", "resource_type", "cluster")
NAMES: Final = ("cluster", "resource_type", "resource_name", "name")


def config_history(tables: Tables) -> DataFrame:
    """Return the value of each configuration over time. Deleting a topic deletes its configurations.

    Key: cluster, resource_type (2: topic, 4: broker, 8: broker logger, 16: client metrics, 32: group),
    resource_name (empty: the default of all brokers), name, start_offset. Columns: value, and those of SPAN.
    """
    return config_intervals(config_points(tables, topic_points(tables)))


def configs(tables: Tables, as_of_offset: int | None = None, as_of_time: datetime | None = None) -> DataFrame:
    """Return the configurations that are set, at the end of the logs or at an offset or time.

    Key: cluster, resource_type, resource_name, name. Columns: value, start_offset, start_timestamp,
    known_start.
    """
    return current(config_history(Until(tables, as_of_offset, as_of_time)))


def config_changes(tables: Tables) -> DataFrame:
    """Return every change or deletion of a configuration. Records of snapshots aren't among them.

    Key: cluster, offset, resource_type, resource_name, name. Columns: timestamp (when it took effect), value
    (null: deleted), old_value (null: not set before), with_topic (deleted with its topic).
    """
    return config_change_rows(config_points(tables, topic_points(tables)))


def config_points(tables: Tables, topics: DataFrame, before: OpenRows = nothing_before) -> DataFrame:
    """Return the points of configurations. ``topics`` are the points of topics, which end their
    configurations.

    A snapshot ends all configurations that aren't in it. A topic that a snapshot ends may be in the snapshot
    with another id.
    """
    known = before("config_history")
    events = union(
        [
            read(tables, "config", *KEY[:3], "value").withColumns(
                {"exists": F.col("value").isNotNull(), "is_old": F.lit(False)}
            ),
            None if known is None else as_events(known).withColumn("is_old", F.lit(True)),
        ]
    )
    removed = (
        with_ends(topics)
        .filter(~F.col("exists") & ~F.col("in_snapshot"))
        .select(
            "cluster",
            "at_offset",
            "in_snapshot",
            "offset",
            "at_timestamp",
            F.col("topic").alias("resource_name"),
            F.lit(ResourceType.TOPIC.value).cast("tinyint").alias("resource_type"),
            F.lit(True).alias("removes"),
        )
    )
    rows = union([effective(events, facts(tables)), removed])
    from_here = in_order(RESOURCE).rowsBetween(Window.currentRow, Window.unboundedFollowing)
    rows = rows.withColumn("removed", F.min(F.when(F.col("removes"), moment())).over(from_here))
    rows = rows.filter(F.col("name").isNotNull()).transform(without, "removes")
    return bounded(rows, KEY, "removed", "next_reset")


def config_intervals(points: DataFrame, before: OpenRows = nothing_before) -> DataFrame:
    """See ``config_history``."""
    found = intervals(points, KEY, ["value"], before=before("config_history"))
    return found.select(*NAMES, "value", *SPAN)


def config_change_rows(points: DataFrame) -> DataFrame:
    """See ``config_changes``."""
    set_to = F.when(F.col("exists"), F.col("value"))
    points = with_ends(points).withColumn("old_value", F.lag(set_to).over(in_order(KEY)))
    happened = ~F.col("in_snapshot") & ~(F.col("is_old") & F.col("exists"))
    return points.filter(happened).select(
        "cluster",
        "offset",
        F.col("at_timestamp").alias("timestamp"),
        "resource_type",
        "resource_name",
        "name",
        set_to.alias("value"),
        "old_value",
        (~F.col("exists") & F.col("value").isNotNull()).alias("with_topic"),
    )
