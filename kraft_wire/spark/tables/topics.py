"""Derive tables of topics, and when each topic existed."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraft_wire.spark.tables.effects import effective, facts, read
from kraft_wire.spark.tables.history import as_events, bounded, current, intervals, last_known, so_far, union
from kraft_wire.spark.tables.inputs import Tables, Until
from kraft_wire.spark.tables.open_rows import OpenRows, nothing_before

KEY: Final = ("topic_id", "cluster")


def topic_history(tables: Tables) -> DataFrame:
    """Return one row for each topic that ever existed. A topic that is created again has another id.

    Key: cluster, topic_id. Columns: topic (its name), and those of SPAN.
    """
    return topic_intervals(topic_points(tables))


def topics(tables: Tables, as_of_offset: int | None = None, as_of_time: datetime | None = None) -> DataFrame:
    """Return the topics, at the end of the logs or at an offset or time.

    Key: cluster, topic_id. Columns: topic, partition_count, start_offset, start_timestamp, known_start.
    """
    from kraft_wire.spark.tables.partitions import partitions

    then = Until(tables, as_of_offset, as_of_time)
    return current_topics(topic_history(then), partitions(then))


def current_topics(history: DataFrame, partitions: DataFrame) -> DataFrame:
    """See ``topics``."""
    counts = partitions.groupBy("cluster", "topic_id").agg(F.count("*").alias("partition_count"))
    counted = current(history).join(counts, ["cluster", "topic_id"], "left")
    return counted.select(
        "cluster",
        "topic_id",
        "topic",
        F.coalesce("partition_count", F.lit(0).cast("bigint")).alias("partition_count"),
        "start_offset",
        "start_timestamp",
        "known_start",
    )


def topic_points(tables: Tables, before: OpenRows = nothing_before) -> DataFrame:
    """Return the points where topics begin and end."""
    known = before("topic_history")
    created = read(tables, "topic", "topic_id", "name").withColumnRenamed("name", "topic")
    events = union(
        [
            created.withColumn("exists", F.lit(True)),
            read(tables, "remove_topic", "topic_id").withColumn("exists", F.lit(False)),
            None if known is None else as_events(known),
        ]
    )
    rows = effective(events, facts(tables))
    return bounded(rows.withColumn("topic", last_known("topic", so_far(KEY))), KEY, "next_reset")


def topic_intervals(points: DataFrame, before: OpenRows = nothing_before) -> DataFrame:
    """See ``topic_history``."""
    return intervals(points, KEY, ["topic"], before=before("topic_history"))
