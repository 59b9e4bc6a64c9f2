"""Measure the derived tables of leaders and in-sync replicas over time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from compat.benches.spark.processor_time import Stopwatch
from kraft_wire.spark.tables.inputs import LakeTables, SourceTables, Tables
from kraft_wire.spark.tables.partitions import isr_history, leadership

HISTORIES: Final[dict[str, Callable[[Tables], DataFrame]]] = {
    "leadership": leadership,
    "isr_history": isr_history,
}
_TABLES: Final = ("partition", "partition_change", "topic", "feature_level")
_READ: Final = ("cluster", "offset", "timestamp", "in_snapshot", "partition_id", "topic_id", "leader", "isr")
_RUNS: Final = 5
"""Several runs, because the JVM compiles frequently run code: the first runs take several times as long."""


class Took(NamedTuple):
    """The times of the best run; the processor time is that of all processes."""

    wall_s: float
    processor_s: float


class Histories:
    """The typed tables of a log, read from the log itself and from Parquet in ``lake``."""

    def __init__(self, session: SparkSession, log: Path, lake: Path) -> None:
        self.source = SourceTables(session, {"path": str(log)})
        for table in _TABLES:
            rows = session.read.format("kraft").option("table", table).load(str(log))
            rows.write.partitionBy("cluster").parquet(str(lake / table))
        columns = ("cluster", "offset", "timestamp", "type", "in_snapshot")
        self.source.read("records", *columns).write.partitionBy("cluster").parquet(str(lake / "records"))
        self.lake = LakeTables(session, lake)

    def measure_reading(self) -> Took:
        """Measure only reading the Parquet files of the tables below, discarding the rows."""
        return _best(
            lambda: self.lake.read("partition", *_READ).union(self.lake.read("partition_change", *_READ))
        )

    def measure(self, history: str) -> Took:
        """Measure a table of HISTORIES from Parquet."""
        return _best(lambda: HISTORIES[history](self.lake))

    def measure_from_source(self, history: str) -> Took:
        """Measure a table of HISTORIES from the log itself."""
        return _best(lambda: HISTORIES[history](self.source))


def _best(make: Callable[[], DataFrame]) -> Took:
    return min(_once(make()) for _ in range(_RUNS))


def _once(rows: DataFrame) -> Took:
    watch = Stopwatch()
    rows.write.format("noop").mode("overwrite").save()
    return Took(watch.wall_s(), watch.processor_s())
