"""Derive tables of the features that a cluster has finalized, metadata.version among them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraft_wire.metadata.features.supported import KRAFT_VERSION
from kraft_wire.spark.tables.effects import effective, facts, read
from kraft_wire.spark.tables.history import as_events, bounded, current, intervals, union
from kraft_wire.spark.tables.inputs import Tables, Until
from kraft_wire.spark.tables.open_rows import OpenRows, nothing_before

KEY: Final = ("feature", "cluster")


def feature_history(tables: Tables) -> DataFrame:
    """Return the level of each feature over time.

    Key: cluster, feature, start_offset. Columns: level (never 0: then there is no row), and those of SPAN.
    kraft.version isn't among the features, because it is in control records.
    """
    return feature_intervals(feature_points(tables))


def features(
    tables: Tables, as_of_offset: int | None = None, as_of_time: datetime | None = None
) -> DataFrame:
    """Return the finalized features, at the end of the logs or at an offset or time.

    Key: cluster, feature. Columns: level, start_offset, start_timestamp, known_start.
    """
    return current(feature_history(Until(tables, as_of_offset, as_of_time)))


def feature_points(tables: Tables, before: OpenRows = nothing_before) -> DataFrame:
    """Return the points of features."""
    known = before("feature_history")
    levels = read(tables, "feature_level", "name", "feature_level")
    levels = levels.withColumnsRenamed({"name": "feature", "feature_level": "level"})
    events = union(
        [
            levels.filter(F.col("feature") != KRAFT_VERSION).withColumn("exists", F.col("level") != 0),
            None if known is None else as_events(known),
        ]
    )
    return bounded(effective(events, facts(tables)), KEY, "next_reset")


def feature_intervals(points: DataFrame, before: OpenRows = nothing_before) -> DataFrame:
    """See ``feature_history``."""
    return intervals(points, KEY, ["level"], before=before("feature_history"))
