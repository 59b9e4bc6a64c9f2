"""Run the pipeline: a stream, and the lake that it fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.utils import is_remote

from kraft_wire.lake.formats import TableFormat, announce_what_is_there, open_lake
from kraft_wire.lake.protocol import Lake, one_command
from kraft_wire.log.errors import LogError
from kraft_wire.spark.pipeline.batch import Arrived, apply_batch
from kraft_wire.spark.pipeline.stream import POLL_S, failed, is_between_batches, running, stream_of

LARGE_BATCH_RECORDS: Final = 100_000
"""Batches of more records are reported halfway, because they take long."""
_STREAM_LOGGER: Final = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"


class _Stopped(Exception):
    """The batch isn't started, because the pipeline was told to stop."""


def run(
    spark: SparkSession,
    source: Mapping[str, str],
    target: Path,
    interval: str | None,
    progress: Callable[[str], None],
    table_format: TableFormat = "parquet",
    should_stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Keep the tables below ``target`` up to date with what the options of ``source`` name.

    Without an ``interval``, ends when everything that there is now has been read. ``should_stop`` is called
    between batches; returns False if it stopped the stream. Through Spark Connect the server writes to the
    target, so it must see the target at the same path.

    Raises LakeError, also for errors of the source.
    """
    target = target.absolute()
    try:
        with one_command(target):
            with open_lake(target, table_format) as lake:
                announce_what_is_there(target, table_format)
                if not is_remote():
                    _hush(spark)
                    return _run(stream_of(spark, source, target), lake, interval, progress, should_stop)
                lake_id = lake.identify()
            from kraft_wire.spark.pipeline.connect_worker import run_on_connect

            stream = stream_of(spark, source, target)
            return run_on_connect(stream, target, lake_id, table_format, interval, progress, should_stop)
    except PySparkException as error:
        raise failed(target, error) from error


def _hush(spark: SparkSession) -> None:
    """Turn off Spark's log of failed streams, which repeats the raised error with the stacks of Java and
    Python."""
    assert spark._jvm is not None
    log4j = spark._jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(_STREAM_LOGGER, log4j.Level.OFF)


def _run(
    stream: DataStreamWriter,
    lake: Lake,
    interval: str | None,
    progress: Callable[[str], None],
    should_stop: Callable[[], bool],
) -> bool:
    failures: list[Exception] = []

    def report_large(batch: int, arrived: Arrived) -> None:
        if arrived.records > LARGE_BATCH_RECORDS:
            progress(f"batch {batch}: {arrived.records:,} records are stored; updating the tables")

    def each(rows: DataFrame, batch: int) -> None:
        started = monotonic()
        try:
            if should_stop():
                raise _Stopped
            arrived = apply_batch(lake, rows, batch, halfway=partial(report_large, batch))
        except Exception as error:
            failures.append(error)
            raise
        progress(_line(batch, arrived, lake, monotonic() - started))

    try:
        with running(stream.foreachBatch(each), interval, progress) as query:
            while not query.awaitTermination(POLL_S):
                if should_stop() and is_between_batches(query):
                    return False
    except StreamingQueryException:
        if failures and isinstance(failures[0], LogError):
            raise failures[0] from None
        if not failures or not isinstance(failures[0], _Stopped):
            raise
        return False
    return True


def _line(batch: int, arrived: Arrived | None, lake: Lake, seconds: float) -> str:
    if arrived is None:
        return f"batch {batch}: applied before"
    rate = arrived.records / seconds
    return (
        f"batch {batch}: {arrived.records:,} records of {len(arrived.ends):,} clusters in {seconds:.1f} s, "
        f"{rate:,.0f} records/s; {sum(lake.ends.values()) + len(lake.ends):,} offsets of {len(lake.ends):,} "
        "clusters so far"
    )
