"""Compute intervals from events: the common form of all tables of history.

Points are the rows of a key in the order of their moments; each holds from its moment on. A key ends where
``exists`` is false, and at the moment ``until``, if that isn't null. An interval lies between two points
whose relevant values differ.

Sorting takes longer than all windows together. Spark sorts once for windows of the same key and order, if no
step between them turns one row into several. ``until`` avoids such a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_
from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from kraft_wire.spark.tables.effects import MOMENT, MOMENT_COLUMNS, ORDER
from kraft_wire.spark.tables.inputs import without

SPAN: Final = (
    "start_offset",
    "start_timestamp",
    "end_offset",
    "end_timestamp",
    "duration_ms",
    "known_start",
)
"""The last columns of every table of intervals.

``end_offset``, ``end_timestamp`` and ``duration_ms`` are null while the interval lasts. The clocks of two
leaders may differ: an interval that seems to end before it began has duration 0. If ``known_start`` is false,
the interval began at an unknown time, and start_offset is that of the first snapshot that has it.
"""


def in_order(key: Sequence[str]) -> WindowSpec:
    """Return a window of a key's rows, by their moments."""
    return Window.partitionBy(*key).orderBy(*ORDER)


def so_far(key: Sequence[str]) -> WindowSpec:
    """Return a window of each row with all rows before it, as ``in_order``."""
    return in_order(key).rowsBetween(Window.unboundedPreceding, Window.currentRow)


def last_known(column: Column | str, window: WindowSpec) -> Column:
    """Return the newest value that isn't null."""
    return F.last(column, ignorenulls=True).over(window)


def bounded(rows: DataFrame, key: Sequence[str], *bounds: str) -> DataFrame:
    """Return points, from rows with ``exists``.

    A key ends at a bound that comes before its next row; ``bounds`` are columns of moments, of which the
    earliest counts. Of several points at one offset the last one counts.
    """
    bound = F.least(*bounds) if len(bounds) > 1 else F.col(bounds[0])
    following = {f"_next_{name}": F.lead(name).over(in_order(key)) for name in ORDER}
    rows = rows.withColumns({"_bound": bound, **following})
    no_next = F.col("_next_at_offset").isNull()
    rows = rows.filter(no_next | (F.col("_next_at_offset") != F.col("at_offset")))
    after = F.struct(*[F.col(f"_next_{name}").alias(name) for name in ORDER])
    ends_first = no_next | (after > F.struct(*[F.col(f"_bound.{name}") for name in ORDER]))
    ends = F.col("exists") & F.col("_bound").isNotNull() & ends_first
    at_once = ends & (F.col("_bound.at_offset") == F.col("at_offset"))
    rows = rows.withColumns(
        {"until": F.when(ends & ~at_once, F.col("_bound")), "exists": F.col("exists") & ~at_once}
    )
    return rows.transform(without, "_bound", *following, *bounds)


def with_ends(points: DataFrame) -> DataFrame:
    """Return points without ``until``, which becomes another point that doesn't exist."""
    nothing = F.lit(None).cast(MOMENT)
    ending = F.when(F.col("until").isNotNull(), F.array(nothing, "until")).otherwise(F.array(nothing))
    points = points.withColumn("_ended", F.explode(ending))
    return points.withColumns(
        {
            **{name: F.coalesce(f"_ended.{name}", name) for name in MOMENT_COLUMNS},
            "exists": F.col("exists") & F.col("_ended").isNull(),
        }
    ).transform(without, "_ended", "until")


def intervals(
    points: DataFrame,
    key: Sequence[str],
    values: Sequence[str],
    carried: Sequence[str] = (),
    before: DataFrame | None = None,
    following: Sequence[str] = (),
) -> DataFrame:
    """Return the intervals between points that differ in ``values``.

    ``carried`` are columns as they were at the interval's start. ``following`` are columns as they are at the
    start of what follows, named next_.... ``before`` are intervals that were open before the first of these
    points: they continue, or end.
    """
    columns = [*key, *MOMENT_COLUMNS, "exists", "until", *values, *carried]
    points = points.select(*columns)
    if before is not None:
        points = points.unionByName(as_points(before).select(*columns))
    order = in_order(key)
    compared = ["exists", *values]
    previous = {f"_previous_{name}": F.lag(name).over(order) for name in compared}
    ended = F.lag("until.at_offset").over(order)
    points = points.withColumns({**previous, "_ended": ended})
    is_same = reduce(and_, [F.col(name).eqNullSafe(F.col(f"_previous_{name}")) for name in compared])
    went_on = F.col("_ended").isNull() | (F.col("_ended") > F.col("at_offset"))
    points = points.withColumn("_begins", ~(is_same & went_on)).transform(without, *previous, "_ended")
    is_over = F.col("until").isNotNull()
    points = points.filter(F.col("_begins") | is_over)
    then = {
        "at_offset": F.col("until.at_offset"),
        "at_timestamp": F.col("until.at_timestamp"),
        "exists": F.lit(False),
    }

    def end_of(name: str) -> Column:
        ended = then.get(name, F.col(name))
        return F.when(is_over, ended).otherwise(
            F.lead(F.when(F.col("_begins"), F.col(name)).otherwise(ended)).over(order)
        )

    ends = {"end_offset": end_of("at_offset"), "end_timestamp": end_of("at_timestamp")}
    after = {f"next_{name}": end_of(name) for name in following}
    found = points.withColumns({**ends, **after}).filter(F.col("_begins") & F.col("exists"))
    lasted_ms = F.unix_millis("end_timestamp") - F.unix_millis("at_timestamp")
    return found.select(
        "cluster",
        *[name for name in key if name != "cluster"],
        *values,
        *carried,
        *after,
        F.col("at_offset").alias("start_offset"),
        F.col("at_timestamp").alias("start_timestamp"),
        *ends,
        F.when(lasted_ms < 0, 0).otherwise(lasted_ms).alias("duration_ms"),
        (~F.col("in_snapshot")).alias("known_start"),
    )


def as_points(open_intervals: DataFrame) -> DataFrame:
    """Convert open intervals to points where they began: the columns of SPAN are replaced by those of
    points."""
    return open_intervals.withColumns(
        {
            "at_offset": F.col("start_offset"),
            "in_snapshot": ~F.col("known_start"),
            "offset": F.col("start_offset"),
            "at_timestamp": F.col("start_timestamp"),
            "exists": F.lit(True),
            "until": F.lit(None).cast(MOMENT),
        }
    ).transform(without, *SPAN)


def as_events(open_intervals: DataFrame) -> DataFrame:
    """Convert open intervals to rows from which points can be made, as ``as_points``."""
    return (
        as_points(open_intervals)
        .transform(without, "at_offset", "until")
        .withColumnRenamed("at_timestamp", "timestamp")
    )


def current(history: DataFrame) -> DataFrame:
    """Return the state where the records end, and since when it holds."""
    lasts = F.col("end_offset").isNull()
    return history.filter(lasts).transform(without, "end_offset", "end_timestamp", "duration_ms")


def union(frames: Iterable[DataFrame | None]) -> DataFrame:
    """Concatenate DataFrames; columns that one lacks are null there."""
    first, *others = [frame for frame in frames if frame is not None]
    for other in others:
        first = first.unionByName(other, allowMissingColumns=True)
    return first
