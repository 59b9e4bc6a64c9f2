"""The data source under Spark, its rows thrown away."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from compat.bench_spark.appenders import Appended
from compat.bench_spark.latency import WARM_UP_S, Latency, measure_latency
from kraft_wire.spark.session import session

_TABLES: Final = {"part": "partition", "mix": "partition_change"}
"""What most records of each log are. All pages are read and all records found, whatever the table."""
_RUNS: Final = 3


class Sparks:
    """A session of so many cores."""

    def __init__(self, cores: int) -> None:
        self._session = session(f"local[{cores}]", {"spark.ui.enabled": "false"})
        self._session.sparkContext.setLogLevel("ERROR")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.stop()

    def measure(self, segment: Path, kind: str) -> float:
        """Seconds for all of a log's segment, the best of some runs once the workers are there."""
        self._once(segment, kind)
        return min(self._once(segment, kind) for _ in range(_RUNS))

    def latency(self, log: Appended, seconds: float, warm_up_s: float = WARM_UP_S) -> Latency:
        """Of records that are appended while a query runs."""
        return measure_latency(self._session, log, seconds, warm_up_s)

    def _once(self, segment: Path, kind: str) -> float:
        began = time.perf_counter()
        rows = self._session.read.format("kraft").option("table", _TABLES[kind]).load(str(segment.parent))
        rows.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - began
