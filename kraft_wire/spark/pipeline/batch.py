"""One batch: the records that have come, and what they change in every table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from pyarrow.parquet import read_schema
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from kraft_wire.spark.options import record_tables
from kraft_wire.spark.pipeline.lake import OPEN, PART, PART_COLUMN, PENDING, Lake, LakeError
from kraft_wire.spark.tables import brokers, churn, configs, failovers, features, partitions, topics
from kraft_wire.spark.tables.effects import facts
from kraft_wire.spark.tables.inputs import RECORDS, LakeTables, Tables, spark_schema
from kraft_wire.spark.tables.partition_points import partition_points
from kraft_wire.spark.tables.typed_records import RecordsTables, typed_rows

SMALL_ROWS: Final = 200_000
"""Up to so many, compiling Spark's plans takes longer than running them as they are."""
_ROWS_PER_TASK: Final = 100_000
_TRANSACTIONS: Final = {"BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"}


class Arrived(NamedTuple):
    """What a batch holds: ``ends`` are the last offsets by cluster, ``folders`` the clusters' folders, and
    ``types`` those of all records that count now."""

    records: int
    ends: dict[str, int]
    folders: list[str]
    types: set[str]
    has_snapshot: bool


def apply_batch(lake: Lake, rows: DataFrame, batch: int) -> Arrived | None:
    """Bring all tables up to date with rows of the table records; None where that has been done.

    The same batch always has to have the same rows. Raises LakeError for rows that were there before.
    """
    if batch <= lake.last_batch:
        return None
    return _Batch(lake, rows.sparkSession, batch).apply(rows)


class _Batch:
    def __init__(self, lake: Lake, spark: SparkSession, batch: int) -> None:
        self._lake = lake
        self._spark = spark
        self._number = batch
        self._staging = lake.begin(batch)
        self._replaced: dict[str, Sequence[str]] = {}
        self._schemas: dict[str, StructType] = {}

    def apply(self, rows: DataFrame) -> Arrived:
        _tune(self._spark, 0)
        self._write(rows.sortWithinPartitions("cluster", "offset"), RECORDS)
        arrived = self._arrived
        _check_order(self._lake, self._firsts)
        _tune(self._spark, arrived.records)
        tables = record_tables()
        for record_type in sorted(arrived.types):
            if record_type in tables:
                table = tables[record_type]
                self._write(typed_rows(self._raw.read(RECORDS, *spark_schema(RECORDS).names), table), table)
        if arrived.records:
            self._derive()
        self._lake.commit(self._number, self._replaced, arrived.ends)
        return arrived

    # --- what has come

    @cached_property
    def _raw(self) -> LakeTables:
        return LakeTables(self._spark, self._staging)

    @cached_property
    def _summary(self) -> list[tuple[str, str, bool, int, int, int]]:
        found = (
            self._raw.read(RECORDS, "cluster", "type", "in_snapshot", "offset")
            .groupBy("cluster", "type", "in_snapshot")
            .agg(F.count("*"), F.min("offset"), F.max("offset"))
        )
        return [tuple(row) for row in found.collect()]

    @cached_property
    def _arrived(self) -> Arrived:
        ends: dict[str, int] = {}
        for cluster, _, _, _, _, last in self._summary:
            ends[cluster] = max(last, ends.get(cluster, -1))
        folder = self._staging / RECORDS
        return Arrived(
            records=sum(row[3] for row in self._summary),
            ends=ends,
            folders=sorted(path.name for path in folder.glob("cluster=*")),
            types={row[1] for row in self._summary},
            has_snapshot=any(row[2] for row in self._summary),
        )

    @cached_property
    def _firsts(self) -> dict[tuple[str, bool], int]:
        """The first offset by cluster, in the log and in snapshots."""
        firsts: dict[tuple[str, bool], int] = {}
        for cluster, _, in_snapshot, _, first, _ in self._summary:
            firsts[cluster, in_snapshot] = min(first, firsts.get((cluster, in_snapshot), first))
        return firsts

    # --- what counts now

    @cached_property
    def _tables(self) -> Tables:
        """The records that count now: those of open transactions wait for their ends."""
        before = self._open(PENDING)
        if before is None and not self._arrived.types & _TRANSACTIONS:
            return self._raw
        rows = self._raw.read(RECORDS, *spark_schema(RECORDS).names)
        if before is not None:
            rows = rows.unionByName(before.select(*rows.columns))
        begun = facts(RecordsTables(rows)).select(
            "cluster", F.get(F.filter("transactions", _is_open), F.lit(0))["begin"].alias("begun")
        )
        rows = rows.join(F.broadcast(begun), "cluster", "left")
        waits = F.col("begun").isNotNull() & (F.col("offset") >= F.col("begun"))
        self._replace(rows.filter(waits).drop("begun"), PENDING)
        return RecordsTables(rows.filter(~waits | F.col("begun").isNull()).drop("begun"))

    @cached_property
    def _types(self) -> set[str]:
        """The tables of the records that count now, as far as they say more than the state that was."""
        tables = record_tables()
        if self._tables is self._raw:
            return {tables[name] for name in self._arrived.types if name in tables}
        rows = self._tables.read(RECORDS, "type").distinct().collect()
        return {tables[row.type] for row in rows if row.type in tables}

    def _concerns(self, *needed: str) -> bool:
        return self._arrived.has_snapshot or bool(self._types & set(needed))

    # --- what that means

    def _derive(self) -> None:
        self._partitions()
        self._topics_and_configs()
        if self._concerns(
            "register_broker",
            "broker_registration_change",
            "fence_broker",
            "unfence_broker",
            "unregister_broker",
        ):
            points = brokers.broker_points(self._tables, self._open)
            self._histories(
                points,
                {"broker_history": brokers.broker_intervals, "broker_sessions": brokers.session_intervals},
            )
            self._replace(brokers.current_brokers(self._now("broker_history")), "brokers")
        if self._concerns("feature_level"):
            points = features.feature_points(self._tables, self._open)
            self._histories(points, {"feature_history": features.feature_intervals})
            self._replace(features.current_features(self._now("feature_history")), "features")
        self._history(failovers.failovers(self._raw, self._open), "failovers")
        self._churn()

    def _partitions(self) -> None:
        if not self._concerns("partition", "partition_change", "topic", "remove_topic", "clear_elr"):
            return
        points = partition_points(self._tables, self._open)
        self._histories(
            points,
            {
                "partition_history": partitions.partition_intervals,
                "leadership": partitions.leadership_intervals,
                "isr_history": partitions.isr_intervals,
                "under_replicated": partitions.under_replicated_intervals,
                "reassignments": partitions.reassignment_intervals,
            },
        )
        self._replace(partitions.current_partitions(self._now("partition_history")), "partitions")

    def _topics_and_configs(self) -> None:
        points = topics.topic_points(self._tables, self._open)
        if self._concerns("topic", "remove_topic", "partition"):
            self._histories(points, {"topic_history": topics.topic_intervals})
            current = topics.current_topics(self._now("topic_history"), self._now("partitions"))
            self._replace(current, "topics")
        if self._concerns("config", "remove_topic"):
            values = configs.config_points(self._tables, points, self._open)
            self._histories(values, {"config_history": configs.config_intervals})
            self._replace(configs.current_configs(self._now("config_history")), "configs")
            self._write(configs.config_change_rows(values), "config_changes")

    def _churn(self) -> None:
        """Months are small: those that the batch adds to are written anew."""
        added = churn.added_up(churn.counted(self._tables, self._raw)).persist()
        month = F.date_format("hour", "yyyy-MM")
        touched = added.select("cluster", month.alias("month")).distinct().collect()
        months = {row.month for row in touched}
        before = [
            file for name in sorted(months) for file in self._lake.files("churn", self._arrived.folders, name)
        ]
        rows = added
        if before:
            rows = churn.added_up(rows.unionByName(self._read("churn", before).select(*rows.columns)))
        self._write(rows, "churn", month)
        added.unpersist()

    # --- reading and writing

    def _histories(self, points: DataFrame, tables: Mapping[str, Callable[..., DataFrame]]) -> None:
        points = points.persist()
        for table, intervals in tables.items():
            self._history(intervals(points, self._open), table)
        points.unpersist()

    def _history(self, rows: DataFrame, table: str) -> None:
        self._replaced[table] = self._arrived.folders
        self._write(rows, table, F.when(F.col("end_offset").isNull(), OPEN).otherwise(PART))

    def _replace(self, rows: DataFrame, table: str) -> None:
        self._replaced[table] = self._arrived.folders
        self._write(rows, table, F.lit(OPEN))

    def _write(self, rows: DataFrame, table: str, part: Column | None = None) -> None:
        by = ["cluster"] if part is None else ["cluster", PART_COLUMN]
        if part is not None:
            rows = rows.withColumn(PART_COLUMN, part)
        self._schemas[table] = rows.schema
        rows.write.partitionBy(*by).option("compression", "zstd").parquet(str(self._staging / table))

    def _open(self, table: str) -> DataFrame | None:
        """The open rows of a table as the last batch left them."""
        files = self._lake.files(table, self._arrived.folders)
        return self._read(table, files) if files else None

    def _now(self, table: str) -> DataFrame:
        """The open rows of a table as this batch leaves them."""
        rows = self._spark.read.schema(self._schemas[table]).parquet(str(self._staging / table))
        return rows.filter(F.col(PART_COLUMN) == OPEN).drop(PART_COLUMN)

    def _read(self, table: str, files: Sequence[Path]) -> DataFrame:
        reader = self._spark.read.schema(_schema_of(files[0])).option(
            "basePath", str(self._lake.target / table)
        )
        return reader.parquet(*map(str, files))


def _schema_of(file: Path) -> StructType:
    """What Spark wrote into the file of its columns, and the one that is in the folder's name."""
    written = read_schema(file).metadata[b"org.apache.spark.sql.parquet.row.metadata"]
    return StructType.fromJson(json.loads(written)).add("cluster", StringType())


def _check_order(lake: Lake, firsts: Mapping[tuple[str, bool], int]) -> None:
    """A log goes on where it ended, or with a snapshot that goes further."""
    for (cluster, in_snapshot), first in sorted(firsts.items()):
        end = lake.ends.get(cluster, -1)
        if first < end or (first == end and not in_snapshot):
            raise LakeError(
                f"{lake.target}: cluster {cluster} has been read to offset {end}, and now offset {first} "
                "comes again: its log was cut, and what had been read never happened. Start over with "
                "an empty target"
            )


def _tune(spark: SparkSession, rows: int) -> None:
    small = rows <= SMALL_ROWS
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.codegen.wholeStage": str(not small).lower(),
        "spark.sql.codegen.factoryMode": "NO_CODEGEN" if small else "FALLBACK",
        "spark.sql.shuffle.partitions": str(1 + rows // _ROWS_PER_TASK),
    }
    for name, value in settings.items():
        spark.conf.set(name, value)


def _is_open(transaction: Column) -> Column:
    return transaction["end"].isNull()
