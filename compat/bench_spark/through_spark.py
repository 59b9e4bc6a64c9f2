"""The data source under Spark, its rows thrown away."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from compat.bench_spark.appenders import Appended
from compat.bench_spark.latency import WARM_UP_S, Latency, measure_latency
from compat.bench_spark.same_again import SameAgain

_TABLES: Final = {"part": "partition", "mix": "partition_change"}
"""What most records of each log are. All pages are read and all records found, whatever the table."""
CHOSEN: Final = {
    "part": ("offset", "timestamp", "topic_id", "partition_id", "replicas", "isr", "leader"),
    "mix": ("offset", "timestamp", "topic_id", "partition_id", "isr", "leader"),
}
"""What a query may look at: option ``columns``."""
_RUNS: Final = 3


class ThroughSpark:
    """A session of so many cores, and what it reads."""

    def __init__(self, session: SparkSession, cores: int) -> None:
        self._cores = cores
        self._session = session
        self._session.dataSource.register(SameAgain)

    def measure(self, segment: Path, kind: str, columns: Sequence[str] = ()) -> float:
        """Seconds for all of a log's segment, with all columns or some; the best of some runs once the
        workers are there."""
        return self._fastest(self._rows("kraft", segment, kind, columns))

    def measure_rows_at_hand(self, segment: Path, kind: str) -> float:
        """Seconds for as many rows with as many columns, which needn't be decoded."""
        rows = self._rows("kraft", segment, kind, ["offset"]).count()
        same = {"rows": str(rows), "tasks": str(self._cores)}
        return self._fastest(self._rows("same_again", segment, kind, (), same))

    def latency(self, log: Appended, seconds: float, warm_up_s: float = WARM_UP_S) -> Latency:
        """Of records that are appended while a query runs."""
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
