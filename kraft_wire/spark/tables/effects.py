"""When records take effect, and in which order: transactions and snapshots, which concern all tables.

A row's moment is (at_offset, in_snapshot, offset, at_timestamp): where it takes effect, and its place among
others that do so there. What a snapshot holds comes after the record at the same offset, and replaces all
that was before.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraft_wire.spark.tables.inputs import RECORDS, Tables, without

ORDER: Final = ("at_offset", "in_snapshot", "offset")
"""Sorts rows by their moments."""
MOMENT_COLUMNS: Final = (*ORDER, "at_timestamp")
MOMENT: Final = "struct<at_offset: bigint, in_snapshot: boolean, offset: bigint, at_timestamp: timestamp>"

_BEGIN: Final = "BeginTransactionRecord"
_END: Final = "EndTransactionRecord"
_ABORT: Final = "AbortTransactionRecord"
_FEATURE: Final = "FeatureLevelRecord"


def read(tables: Tables, table: str, *columns: str) -> DataFrame:
    """These columns of a table of records, and the place of each."""
    return tables.read(table, "cluster", "offset", "timestamp", "in_snapshot", *columns)


def moment() -> Column:
    """Of a row that has the four columns."""
    return F.struct(*MOMENT_COLUMNS)


def facts(tables: Tables) -> DataFrame:
    """One row for each cluster that has any: ``transactions``, as structs of begin, end, end_timestamp (null
    while it is open) and completed; and ``resets``, the moments of the snapshots that were read.

    A snapshot shows by the metadata.version that each of them holds; a transaction whose end isn't to be seen
    is over with the next one.
    """
    rows = tables.read(RECORDS, "cluster", "offset", "timestamp", "type", "in_snapshot").filter(
        F.col("type").isin(_BEGIN, _END, _ABORT) | (F.col("in_snapshot") & (F.col("type") == _FEATURE))
    )
    following = Window.partitionBy("cluster").orderBy("offset", "in_snapshot")
    rows = rows.withColumns(
        {
            "end": F.lead("offset").over(following),
            "end_timestamp": F.lead("timestamp").over(following),
            "completed": F.lead("type").over(following) == _END,
        }
    )
    transaction = F.struct(F.col("offset").alias("begin"), "end", "end_timestamp", "completed")
    reset = F.struct(
        F.col("offset").alias("at_offset"),
        "in_snapshot",
        "offset",
        F.col("timestamp").alias("at_timestamp"),
    )
    return rows.groupBy("cluster").agg(
        F.collect_list(F.when(F.col("type") == _BEGIN, transaction)).alias("transactions"),
        F.collect_set(F.when(F.col("in_snapshot"), reset)).alias("resets"),
    )


def effective(rows: DataFrame, facts: DataFrame) -> DataFrame:
    """Rows that count, with ``at_offset``, ``at_timestamp`` and ``next_reset``, the moment of the next
    snapshot that was read (null where there is none), in place of their ``timestamp``."""
    joined = rows.join(F.broadcast(facts), "cluster", "left")

    def holds(transaction: Column) -> Column:
        after = transaction["end"].isNull() | (F.col("offset") < transaction["end"])
        return ~F.col("in_snapshot") & (transaction["begin"] < F.col("offset")) & after

    joined = joined.withColumn("_within", F.get(F.filter("transactions", holds), F.lit(0)))
    joined = joined.filter(F.col("_within").isNull() | F.col("_within.completed"))
    joined = joined.withColumns(
        {
            "at_offset": F.coalesce("_within.end", "offset"),
            "at_timestamp": F.coalesce("_within.end_timestamp", "timestamp"),
        }
    )
    return joined.withColumn("next_reset", _next_reset()).transform(
        without, "transactions", "resets", "_within", "timestamp"
    )


def _next_reset() -> Column:
    here = moment()
    return F.array_min(F.filter("resets", lambda reset: reset > here))
