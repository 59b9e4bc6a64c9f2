"""Measure the latency of a streaming query, from the return of an append to the query's sink."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession

from compat.benches.spark.appenders import Append, WritableLog
from compat.harness.waiting import wait_until

EVERY_S: Final = 0.1
AT_ONCE: Final = 3
"""``AT_ONCE`` records, each appended by itself, every ``EVERY_S`` seconds."""
WARM_UP_S: Final = 8.0
"""The time for which the JVM may compile the code of the triggers."""
_VALUES_FROM: Final = 1_000_000


class Latency(msgspec.Struct, frozen=True):
    """The latency of ``records`` records, and the median time of each part of a trigger."""

    records: int
    p50_ms: float
    p99_ms: float
    trigger_ms: Mapping[str, int]


class _Sink:
    """A sink that keeps the time at which each value came first."""

    def __init__(self) -> None:
        self.seen_s: dict[str, float] = {}

    def take(self, rows: DataFrame, batch_id: int) -> None:
        values = [value for (value,) in rows.collect()]
        now_s = time.perf_counter()
        for value in values:
            self.seen_s.setdefault(value, now_s)


def measure_latency(
    spark: SparkSession, log: WritableLog, seconds: float, warm_up_s: float = WARM_UP_S
) -> Latency:
    """Measure a query with foreachBatch, without a trigger interval, and with its checkpoint on the local
    disk."""
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
            query.processAllAvailable()  # the last trigger's times are known when it has ended
            triggers = [each.durationMs for each in query.recentProgress if each.numInputRows]
        finally:
            query.stop()
    took_ms = sorted((sink.seen_s[value] - then_s) * 1000 for value, then_s in appended_s.items())
    return Latency(len(took_ms), _at(took_ms, 0.5), _at(took_ms, 0.99), _middle(triggers[-50:]))


def _append(append: Append, seconds: float, first_value: int) -> dict[str, float]:
    """Append records for some seconds; return the time of each append by value."""
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
    """Return the median of each part of a trigger, the longest first."""
    found = {
        part: int(_at(sorted(each.get(part, 0) for each in triggers), 0.5))
        for part in {part for each in triggers for part in each}
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _at(ordered: list[float] | list[int], quantile: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * quantile))]
