"""Run a pipeline through Spark Connect: a Python process of the server applies the batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from kraft_wire.lake.formats import TableFormat, open_lake
from kraft_wire.lake.protocol import LakeError, lake_id
from kraft_wire.spark.pipeline.batch import apply_batch
from kraft_wire.spark.pipeline.stream import POLL_S, is_between_batches, running


def run_on_connect(
    stream: DataStreamWriter,
    target: Path,
    wanted_id: str,
    table_format: TableFormat,
    interval: str | None,
    progress: Callable[[str], None],
    should_stop: Callable[[], bool],
) -> bool:
    """Run the stream; returns whether it ended by itself. Raises StreamingQueryException, also if the
    server's ``target`` isn't the lake with this id; LakeError if the stream was stopped on the server."""
    reported = -1
    each = partial(_apply, target, wanted_id, table_format)
    with running(stream.foreachBatch(each), interval, progress) as query:
        has_ended = False
        while not has_ended:
            has_ended = bool(query.awaitTermination(POLL_S))
            batches = _new_batches(query, reported)
            for batch in batches:
                progress(_line(batch))
                reported = batch.batchId
            if should_stop() and (batches or is_between_batches(query)):
                break  # if the next batch began at once, it has hardly started
    if has_ended and interval is not None:
        raise LakeError(f"{target}: the stream that fills it was stopped on the Spark Connect server")
    return has_ended


def _apply(target: Path, wanted_id: str, table_format: TableFormat, rows: DataFrame, batch: int) -> None:
    """Apply a batch, with the lake open for this batch only: the process isn't told when the stream ends.

    Two streams of one target share a checkpoint. So they have the same batches, and each batch is applied
    once.
    """
    if lake_id(target) != wanted_id:
        raise LakeError(
            f"{target}: the Spark Connect server sees another folder there than this machine, or none; name "
            "one that both see by the same path"
        )
    with open_lake(target, table_format) as lake:
        apply_batch(lake, rows, batch)


def _new_batches(query: StreamingQuery, reported: int) -> list[StreamingQueryProgress]:
    return [batch for batch in query.recentProgress if batch.batchId > reported and batch.numInputRows]


def _line(batch: StreamingQueryProgress) -> str:
    return (
        f"batch {batch.batchId}: {batch.numInputRows:,} records in {batch.batchDuration / 1000:.1f} s, "
        f"{batch.processedRowsPerSecond:,.0f} records/s"
    )
