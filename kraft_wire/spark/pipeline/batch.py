"""Apply one batch: store its records, and update every table that they change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kraft_wire.lake.files import CLUSTER_FOLDERS
from kraft_wire.lake.folding import fold_small_files
from kraft_wire.lake.protocol import CLUSTER_FOLDER, OPEN, PART, PENDING, Lake, LakeError, cluster_of
from kraft_wire.spark.pipeline.driver_writer import DriverWriter
from kraft_wire.spark.pipeline.spark_writer import SparkWriter
from kraft_wire.spark.pipeline.table_writer import TableWriter
from kraft_wire.spark.tables import brokers, churn, configs, failovers, features, partitions, topics
from kraft_wire.spark.tables.effects import facts
from kraft_wire.spark.tables.history import current
from kraft_wire.spark.tables.inputs import Tables, spark_schema
from kraft_wire.spark.tables.partition_points import partition_points
from kraft_wire.spark.tables.typed_records import RecordsTables
from kraft_wire.tabular.table_names import RECORDS, record_tables

_log = logging.getLogger(__name__)

SMALL_RECORDS: Final = 20_000
SMALL_OPEN_BYTES: Final = 8 * 2**20
"""Up to this many records, and bytes of open rows, the driver does the work: planning, starting and writing
Spark's jobs would take most of the time."""
_TRANSACTIONS: Final = {"BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"}
_WRITING: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


class Extent(NamedTuple):
    """The rows of a cluster's log, or of its snapshots: first offset, last offset, and number of rows."""

    first: int
    last: int
    rows: int

    def with_(self, other: Extent) -> Extent:
        return Extent(min(self.first, other.first), max(self.last, other.last), self.rows + other.rows)


class Arrived(NamedTuple):
    """The contents of a batch: ``extents`` by cluster and whether they are of snapshots, ``folders`` of the
    clusters, and ``types`` of the records."""

    extents: dict[tuple[str, bool], Extent]
    folders: list[str]
    types: set[str]

    @property
    def records(self) -> int:
        return sum(extent.rows for extent in self.extents.values())

    @property
    def ends(self) -> dict[str, int]:
        """The last offset of each cluster."""
        ascending = sorted(self.extents.items(), key=lambda item: item[1].last)
        return {cluster: extent.last for (cluster, _), extent in ascending}

    @property
    def has_snapshot(self) -> bool:
        return any(in_snapshot for _, in_snapshot in self.extents)


def apply_batch(
    lake: Lake,
    rows: DataFrame,
    batch: int,
    small_records: int = SMALL_RECORDS,
    halfway: Callable[[Arrived], None] = lambda arrived: None,
) -> Arrived | None:
    """Update all tables with rows of the table records; returns None if the batch was applied before.

    ``halfway`` is called when the rows are stored, before the other tables are. A batch of one number must
    always have the same rows. Raises LakeError for rows that were stored by an earlier batch.
    """
    if batch <= lake.last_batch:
        return None
    return _Batch(lake, rows.sparkSession, batch, small_records).apply(rows, halfway)


class _Batch:
    def __init__(self, lake: Lake, spark: SparkSession, batch: int, small_records: int) -> None:
        self._small_records = small_records
        self._lake = lake
        self._spark = spark
        self._number = batch
        self._staging = lake.begin(batch)
        self._replaced: dict[str, Sequence[str]] = {}

    def apply(self, rows: DataFrame, halfway: Callable[[Arrived], None]) -> Arrived:
        with _set(self._spark, _WRITING):
            ordered = rows.sortWithinPartitions("cluster", "offset").write.partitionBy("cluster")
            ordered.option("compression", "zstd").parquet(str(self._staging / RECORDS))
            arrived = self._arrived
            _check_order(self._lake, arrived)
            _warn_of_gaps(self._lake, arrived)
            halfway(arrived)
            if arrived.records:
                with _set(self._spark, self._work.settings):
                    self._derive()
        folded = fold_small_files(self._lake.target, self._staging)
        self._lake.commit(self._number, self._replaced, arrived.ends, folded)
        return arrived

    @cached_property
    def _arrived(self) -> Arrived:
        return _arrived(self._staging / RECORDS)

    @cached_property
    def _work(self) -> TableWriter:
        arrived = self._arrived
        open_bytes = self._lake.open_bytes(arrived.folders)
        if arrived.records > self._small_records or open_bytes > SMALL_OPEN_BYTES:
            return SparkWriter(self._spark, self._lake.target, self._staging, arrived.records)
        folders = {cluster_of(folder): folder for folder in arrived.folders}
        return DriverWriter(self._spark, self._staging, folders)

    # --- records that take effect now

    @cached_property
    def _tables(self) -> Tables:
        """The records that take effect now. Records of open transactions wait for the end of their
        transaction."""
        before = self._open(PENDING)
        if before is None and not self._arrived.types & _TRANSACTIONS:
            return self._work.records
        rows = self._work.records.read(RECORDS, *spark_schema(RECORDS).names)
        if before is not None:
            rows = rows.unionByName(before.select(*rows.columns))
        begun = facts(RecordsTables(rows)).select(
            "cluster", F.get(F.filter("transactions", _is_open), F.lit(0))["begin"].alias("begun")
        )
        rows = rows.join(F.broadcast(begun), "cluster", "left")
        waits = F.col("begun").isNotNull() & (F.col("offset") >= F.col("begun"))
        self._replace(rows.filter(waits).drop("begun"), PENDING)
        return self._work.tables_of(rows.filter(~waits | F.col("begun").isNull()).drop("begun"))

    @cached_property
    def _types(self) -> set[str]:
        """The typed tables of the records that take effect now."""
        types = self._arrived.types
        if self._tables is not self._work.records:
            types = {row.type for row in self._tables.read(RECORDS, "type").distinct().collect()}
        return self._tables_of(types)

    def _tables_of(self, types: set[str]) -> set[str]:
        tables = record_tables()
        return {tables[name] for name in types if name in tables}

    def _concerns(self, *needed: str) -> bool:
        return self._arrived.has_snapshot or bool(self._types & set(needed))

    # --- tables derived from them

    def _derive(self) -> None:
        self._work.write_typed(sorted(self._tables_of(self._arrived.types)))
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
            self._replace(current(self._work.open_now("broker_history")), "brokers")
        if self._concerns("feature_level"):
            points = features.feature_points(self._tables, self._open)
            self._histories(points, {"feature_history": features.feature_intervals})
            self._replace(current(self._work.open_now("feature_history")), "features")
        self._history(failovers.failovers(self._work.records, self._open), "failovers")
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
        self._replace(current(self._work.open_now("partition_history")), "partitions")

    def _topics_and_configs(self) -> None:
        has_topics = self._concerns("topic", "remove_topic", "partition")
        has_configs = self._concerns("config", "remove_topic")
        if not has_topics and not has_configs:
            return
        with self._work.kept(topics.topic_points(self._tables, self._open)) as points:
            if has_topics:
                self._history(topics.topic_intervals(points, self._open), "topic_history")
                topics_now, partitions_now = map(self._work.open_now, ("topic_history", "partitions"))
                self._replace(topics.current_topics(topics_now, partitions_now), "topics")
            if has_configs:
                self._configs(configs.config_points(self._tables, points, self._open))

    def _configs(self, points: DataFrame) -> None:
        with self._work.kept(points) as kept:
            self._history(configs.config_intervals(kept, self._open), "config_history")
            self._work.write(configs.config_change_rows(kept), "config_changes", F.lit(PART))
        self._replace(current(self._work.open_now("config_history")), "configs")

    def _churn(self) -> None:
        """Rewrite the months that the batch adds to, which are small."""
        month = F.date_format("hour", "yyyy-MM")
        with self._work.kept(churn.added_up(churn.counted(self._tables, self._work.records))) as added:
            months = sorted(row.month for row in added.select(month.alias("month")).distinct().collect())
            before = [
                file for name in months for file in self._lake.files("churn", self._arrived.folders, name)
            ]
            rows = added
            if before:
                known = self._work.read("churn", before).select(*rows.columns)
                rows = churn.added_up(rows.unionByName(known))
            self._work.write(rows, "churn", month)

    # --- reading and writing

    def _histories(self, points: DataFrame, tables: Mapping[str, Callable[..., DataFrame]]) -> None:
        with self._work.kept(points) as kept:
            for table, intervals in tables.items():
                self._history(intervals(kept, self._open), table)

    def _history(self, rows: DataFrame, table: str) -> None:
        self._replaced[table] = self._arrived.folders
        self._work.write(rows, table, F.when(F.col("end_offset").isNull(), OPEN).otherwise(PART))

    def _replace(self, rows: DataFrame, table: str) -> None:
        self._replaced[table] = self._arrived.folders
        self._work.write(rows, table, F.lit(OPEN))

    def _open(self, table: str) -> DataFrame | None:
        """Return the open rows of a table as the last batch left them."""
        files = self._lake.files(table, self._arrived.folders)
        return self._work.read(table, files) if files else None


def _arrived(folder: Path) -> Arrived:
    """Summarize the staged rows of the table ``records``."""
    keys = ["cluster", "in_snapshot", "type"]
    extents: dict[tuple[str, bool], Extent] = {}
    types: set[str] = set()
    dataset = ds.dataset(folder, format="parquet", partitioning=CLUSTER_FOLDERS)
    for batch in dataset.to_batches(columns=[*keys, "offset"]) if dataset.files else ():
        found = (
            pa.table(batch)
            .group_by(keys)
            .aggregate([("offset", "min"), ("offset", "max"), ("offset", "count")])
        )
        for cluster, in_snapshot, of_type, *numbers in zip(*found.to_pydict().values(), strict=True):
            extent, place = Extent(*numbers), (cluster, in_snapshot)
            extents[place] = extents[place].with_(extent) if place in extents else extent
            types.add(of_type)
    folders = sorted(path.name for path in folder.glob(f"{CLUSTER_FOLDER}*"))
    return Arrived(extents, folders, types)


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings, and restore them afterwards."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, was in before.items():
            if was is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, was)


def _check_order(lake: Lake, arrived: Arrived) -> None:
    """Check that each log continues where it ended, or with a snapshot that ends later."""
    for (cluster, in_snapshot), (first, _, _) in sorted(arrived.extents.items()):
        end = lake.ends.get(cluster, -1)
        if first < end or (first == end and not in_snapshot):
            raise LakeError(
                f"{lake.target}: cluster {cluster} has been read to offset {end}, and now offset {first} "
                "comes again: its log was truncated after it was read, so the tables are wrong. Start over "
                "with an empty target"
            )


def _warn_of_gaps(lake: Lake, arrived: Arrived) -> None:
    """Warn of offsets that the tables lack, because the source leaves out damaged batches if its option says
    so."""
    for (cluster, in_snapshot), log in sorted(arrived.extents.items()):
        if in_snapshot:
            continue
        snapshot = arrived.extents.get((cluster, True))
        before = max(lake.ends.get(cluster, -1), -1 if snapshot is None else snapshot.last)
        missing = log.last - before - log.rows
        if missing > 0:
            _log.warning(
                "cluster %s: %d of the offsets %d to %d weren't read and are missing in the tables",
                *(cluster, missing, before + 1, log.last),
            )


def _is_open(transaction: Column) -> Column:
    return transaction["end"].isNull()
