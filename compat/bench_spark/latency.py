"""How long a record takes from its append's return into the hands of a streaming query's sink."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession

from compat.bench_spark.appenders import Append, Appended
from compat.harness.waiting import wait_until

EVERY_S: Final = 0.1
AT_ONCE: Final = 3
"""So many records, each appended by itself, every so many seconds."""
WARM_UP_S: Final = 8.0
"""The JVM compiles what the first triggers run."""
_VALUES_FROM: Final = 1_000_000


class Latency(msgspec.Struct, frozen=True):
    """Of how many records, and how long the parts of a trigger took in the middle."""

    records: int
    p50_ms: float
    p99_ms: float
    trigger_ms: Mapping[str, int]


class _Sink:
    """When each value was first there."""

    def __init__(self) -> None:
        self.seen_s: dict[str, float] = {}

    def take(self, rows: DataFrame, batch_id: int) -> None:
        values = [value for (value,) in rows.collect()]
        now_s = time.perf_counter()
        for value in values:
            self.seen_s.setdefault(value, now_s)


def measure_latency(
    spark: SparkSession, log: Appended, seconds: float, warm_up_s: float = WARM_UP_S
) -> Latency:
    """A query with foreachBatch, without a trigger interval, whose checkpoint is on the local disk."""
    sink = _Sink()
    options = {**log.options, "table": "config", "columns": "value"}
    with tempfile.TemporaryDirectory(prefix="kraft-wire-latency-") as folder:
        write = spark.readStream.format("kraft").options(**options).load().writeStream
        write = write.option("checkpointLocation", str(Path(folder) / "checkpoint"))
        query = write.foreachBatch(sink.take).start()
        try:
            wait_until(lambda: query.lastProgress or query.exception(), "the query's first trigger", 120.0)
            _append(log.append, warm_up_s, _VALUES_FROM)
            appended_s = _append(log.append, seconds, 2 * _VALUES_FROM)
            wait_until(lambda: appended_s.keys() <= sink.seen_s.keys() or query.exception(), "all rows", 60.0)
            query.processAllAvailable()  # what the last trigger took is known when it is over
            triggers = [each.durationMs for each in query.recentProgress if each.numInputRows]
        finally:
            query.stop()
    took_ms = sorted((sink.seen_s[value] - then_s) * 1000 for value, then_s in appended_s.items())
    return Latency(len(took_ms), _at(took_ms, 0.5), _at(took_ms, 0.99), _middle(triggers[-50:]))


def _append(append: Append, seconds: float, first_value: int) -> dict[str, float]:
    """When each of the records that were appended was there."""
    appended_s: dict[str, float] = {}
    begin_s = time.perf_counter()
    for number in range(round(seconds / EVERY_S)):
        time.sleep(max(0.0, begin_s + number * EVERY_S - time.perf_counter()))
        for value in range(AT_ONCE):
            name = str(first_value + number * AT_ONCE + value)
            append(name)
            appended_s[name] = time.perf_counter()
    return appended_s


def _middle(triggers: list[dict[str, int]]) -> dict[str, int]:
    """The median of each part of a trigger, those that take longest first."""
    found = {
        part: int(_at(sorted(each.get(part, 0) for each in triggers), 0.5))
        for part in {part for each in triggers for part in each}
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _at(ordered: list[float] | list[int], quantile: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * quantile))]
