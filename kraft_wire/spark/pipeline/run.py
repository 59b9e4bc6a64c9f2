"""The stream that feeds the lake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final, Literal

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from kraft_wire.log.errors import LogError
from kraft_wire.spark.pipeline.batch import Arrived, apply_batch
from kraft_wire.spark.pipeline.lake import Announce, Lake, LakeError, visible_tables

TableFormat = Literal["parquet", "delta"]
DELTA_LOG: Final = "_delta_log"
MOST_OFFSETS = 2_000_000
"""A batch's records, unless an option says otherwise."""


def run(
    spark: SparkSession,
    source: Mapping[str, str],
    target: Path,
    interval: str | None,
    progress: Callable[[str], None],
    table_format: TableFormat = "parquet",
) -> None:
    """Keep the tables below ``target`` up to date with what the options of ``source`` name. Without an
    ``interval``, until everything that is there now has been read.

    Raises LakeError, and whatever else the source has to say as LakeError too.
    """
    with Lake(target, _announcer(target, table_format)) as lake:
        if table_format == "delta":
            _announce_what_came_before(target)
        _run(spark, source, lake, interval, progress)


def _announcer(target: Path, table_format: TableFormat) -> Announce | None:
    if table_format == "delta":
        from kraft_wire.spark.pipeline.delta import announce

        return partial(announce, target)
    if next(target.glob(f"*/{DELTA_LOG}"), None) is not None:
        raise LakeError(
            f"{target}: its tables are Delta tables, which would miss what is new; give --format delta"
        )
    return None


def _announce_what_came_before(target: Path) -> None:
    from kraft_wire.spark.pipeline.delta import announce

    announce(target, visible_tables(target))


def _run(
    spark: SparkSession,
    source: Mapping[str, str],
    lake: Lake,
    interval: str | None,
    progress: Callable[[str], None],
) -> None:
    failures: list[Exception] = []

    def each(rows: DataFrame, batch: int) -> None:
        started = monotonic()
        try:
            arrived = apply_batch(lake, rows, batch)
        except Exception as error:
            failures.append(error)
            raise
        progress(_line(batch, arrived, lake, monotonic() - started))

    options = {"startingOffsets": "earliest", **_limits(source), **source}
    stream = spark.readStream.format("kraft").options(**options).option("table", "records").load()
    writer = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(lake.checkpoint))
    timed = writer.trigger(availableNow=True) if interval is None else writer.trigger(processingTime=interval)
    try:
        query = timed.start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
    except StreamingQueryException as error:
        if failures and isinstance(failures[0], LogError):
            raise failures[0] from None
        raise LakeError(f"{lake.target}: the stream that fills it failed: {error}") from error


def _limits(source: Mapping[str, str]) -> dict[str, str]:
    given = {name.lower() for name in source}
    if given & {"maxoffsetspertrigger", "maxbytespertrigger"}:
        return {}
    return {"maxOffsetsPerTrigger": str(MOST_OFFSETS)}


def _line(batch: int, arrived: Arrived | None, lake: Lake, seconds: float) -> str:
    if arrived is None:
        return f"batch {batch}: there already"
    rate = arrived.records / seconds
    return (
        f"batch {batch}: {arrived.records:,} records of {len(arrived.ends):,} clusters in {seconds:.1f} s, "
        f"{rate:,.0f} records/s; {sum(lake.ends.values()) + len(lake.ends):,} offsets of {len(lake.ends):,} "
        "clusters so far"
    )
