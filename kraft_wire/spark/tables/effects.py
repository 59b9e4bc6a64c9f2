"""Compute when records take effect, and in which order: transactions and snapshots concern all tables.

A row's moment is (at_offset, in_snapshot, offset, at_timestamp): the offset where it takes effect, and its
place among other rows there. The records of a snapshot come after the record at the same offset, and replace
everything before.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraft_wire.spark.tables.inputs import Tables, without
from kraft_wire.tabular.table_names import RECORDS

ORDER: Final = ("at_offset", "in_snapshot", "offset")
"""The columns that sort rows by their moments."""
MOMENT_COLUMNS: Final = (*ORDER, "at_timestamp")
MOMENT: Final = "struct<at_offset: bigint, in_snapshot: boolean, offset: bigint, at_timestamp: timestamp>"

_BEGIN: Final = "BeginTransactionRecord"
_END: Final = "EndTransactionRecord"
_ABORT: Final = "AbortTransactionRecord"
_FEATURE: Final = "FeatureLevelRecord"


def read(tables: Tables, table: str, *columns: str) -> DataFrame:
    """Return these columns of a table of records, and each record's place."""
    return tables.read(table, "cluster", "offset", "timestamp", "in_snapshot", *columns)


def moment() -> Column:
    """Return the moment of a row that has the four columns."""
    return F.struct(*MOMENT_COLUMNS)


def facts(tables: Tables) -> DataFrame:
    """Return the transactions and snapshots of each cluster that has any, in one row.

    ``transactions`` are structs of begin, end, end_timestamp (null while it is open) and completed;
    ``resets`` are the moments of the snapshots that were read. A snapshot is recognised by its
    metadata.version, which every snapshot has. A transaction whose end isn't among the records ends with the
    next one.
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
    """Return the rows that take effect.

    Adds ``at_offset``, ``at_timestamp`` and ``next_reset``, the moment of the next snapshot that was read
    (null if there is none), and drops ``timestamp``.
    """
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
