"""Derive the table of the controllers' epochs: who led, and how long there was no leader."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kraft_wire.spark.tables.history import union
from kraft_wire.spark.tables.inputs import Tables
from kraft_wire.spark.tables.open_rows import OpenRows, nothing_before
from kraft_wire.tabular.table_names import RECORDS

_LEADER_CHANGE: Final = "LeaderChangeMessage"
_PREVIOUS: Final = "struct<epoch: int, leader_id: int, last: struct<offset: bigint, timestamp: timestamp>>"


def failovers(tables: Tables, before: OpenRows = nothing_before) -> DataFrame:
    """Return the epochs of the controller quorum in which anything was written.

    Key: cluster, epoch. Columns: leader_id (null if the record that names it was deleted), previous_epoch,
    previous_leader_id, records (the number so far, control records included), start_offset and
    start_timestamp (of its first record), last_offset and last_timestamp (of its last), leaderless_ms (from
    the last record of the epoch before to the first one of this epoch: an upper bound for the time without a
    leader), end_offset and end_timestamp (where the next epoch began; null while this one lasts).
    """
    rows = tables.read(RECORDS, "cluster", "offset", "epoch", "timestamp", "type", "json", "in_snapshot")
    is_leader_change = F.col("type") == _LEADER_CHANGE
    leader = F.when(is_leader_change, F.get_json_object("json", "$.leaderId").cast("int"))
    place = F.struct("offset", "timestamp")
    found = rows.filter(~F.col("in_snapshot")).select(
        "cluster",
        "epoch",
        leader.alias("leader_id"),
        F.lit(1).cast("bigint").alias("records"),
        place.alias("first"),
        place.alias("last"),
        F.lit(None).cast(_PREVIOUS).alias("previous"),
        F.lit(None).cast("bigint").alias("leaderless_ms"),
    )
    epochs = _merged(union([found, _known(before)]))
    order = Window.partitionBy("cluster").orderBy("epoch")
    epochs = epochs.withColumns(
        {
            "_previous": F.coalesce("previous", F.lag(F.struct("epoch", "leader_id", "last")).over(order)),
            "_next": F.lead("first").over(order),
        }
    )
    waited = F.unix_millis("first.timestamp") - F.unix_millis("_previous.last.timestamp")
    return epochs.select(
        "cluster",
        "epoch",
        "leader_id",
        F.col("_previous.epoch").alias("previous_epoch"),
        F.col("_previous.leader_id").alias("previous_leader_id"),
        "records",
        F.col("first.offset").alias("start_offset"),
        F.col("first.timestamp").alias("start_timestamp"),
        F.col("last.offset").alias("last_offset"),
        F.col("last.timestamp").alias("last_timestamp"),
        F.coalesce("leaderless_ms", F.when(waited > 0, waited).otherwise(waited * 0)).alias("leaderless_ms"),
        F.col("_next.offset").alias("end_offset"),
        F.col("_next.timestamp").alias("end_timestamp"),
    )


def _merged(parts: DataFrame) -> DataFrame:
    """Merge rows of the same epoch. Only one of them knows the epoch before."""
    return parts.groupBy("cluster", "epoch").agg(
        F.max("leader_id").alias("leader_id"),
        F.sum("records").alias("records"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        F.max("previous").alias("previous"),
        F.max("leaderless_ms").alias("leaderless_ms"),
    )


def _known(before: OpenRows) -> DataFrame | None:
    rows = before("failovers")
    if rows is None:
        return None
    nowhere = F.lit(None).cast("struct<offset: bigint, timestamp: timestamp>")
    previous = F.struct(
        F.col("previous_epoch").alias("epoch"),
        F.col("previous_leader_id").alias("leader_id"),
        nowhere.alias("last"),
    )
    return rows.select(
        "cluster",
        "epoch",
        "leader_id",
        "records",
        F.struct(F.col("start_offset").alias("offset"), F.col("start_timestamp").alias("timestamp")).alias(
            "first"
        ),
        F.struct(F.col("last_offset").alias("offset"), F.col("last_timestamp").alias("timestamp")).alias(
            "last"
        ),
        F.when(F.col("previous_epoch").isNotNull(), previous).alias("previous"),
        "leaderless_ms",
    )
