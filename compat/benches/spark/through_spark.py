"""Measure the data source in Spark; the rows are discarded."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from compat.benches.spark.appenders import WritableLog
from compat.benches.spark.latency import WARM_UP_S, Latency, measure_latency
from compat.benches.spark.repeated_rows import RepeatedRows

_TABLES: Final = {"part": "partition", "mix": "partition_change"}
"""The table of most records in each log. Spark reads all pages and finds all records, whatever the table."""
CHOSEN: Final = {
    "part": ("offset", "timestamp", "topic_id", "partition_id", "replicas", "isr", "leader"),
    "mix": ("offset", "timestamp", "topic_id", "partition_id", "isr", "leader"),
}
"""The columns that a typical query uses, for the option ``columns``."""
_RUNS: Final = 3


class ThroughSpark:
    """Measurements with a session on ``cores`` cores."""

    def __init__(self, session: SparkSession, cores: int) -> None:
        self._cores = cores
        self._session = session
        self._session.dataSource.register(RepeatedRows)

    def measure(self, segment: Path, kind: str, columns: Sequence[str] = ()) -> float:
        """Return the seconds for reading a segment with all columns or some: the best run after a first one,
        which starts the workers."""
        return self._fastest(self._rows("kraft", segment, kind, columns))

    def measure_ready_rows(self, segment: Path, kind: str) -> float:
        """Return the seconds for as many rows with as many columns that needn't be decoded."""
        rows = self._rows("kraft", segment, kind, ["offset"]).count()
        repeated = {"rows": str(rows), "tasks": str(self._cores)}
        return self._fastest(self._rows("repeated_rows", segment, kind, (), repeated))

    def latency(self, log: WritableLog, seconds: float, warm_up_s: float = WARM_UP_S) -> Latency:
        """Measure the latency of records that are appended while a query runs."""
        return measure_latency(self._session, log, seconds, warm_up_s)

    def _rows(
        self,
        source: str,
        segment: Path,
        kind: str,
        columns: Sequence[str],
        options: Mapping[str, str] | None = None,
    ) -> DataFrame:
        chosen = {"columns": ",".join(columns)} if columns else {}
        asked = {"table": _TABLES[kind], **chosen, **(options or {})}
        return self._session.read.format(source).options(**asked).load(str(segment.parent))

    def _fastest(self, rows: DataFrame) -> float:
        _write(rows)
        return min(_write(rows) for _ in range(_RUNS))


def _write(rows: DataFrame) -> float:
    began = time.perf_counter()
    rows.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began
