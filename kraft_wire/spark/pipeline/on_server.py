"""A pipeline through Spark Connect: a Python process of the server applies the batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from kraft_wire.spark.pipeline.batch import apply_batch
from kraft_wire.spark.pipeline.formats import TableFormat, open_lake
from kraft_wire.spark.pipeline.lake import LakeError, lake_id
from kraft_wire.spark.pipeline.stream import POLL_S, is_between_batches, running


def run_on_server(
    stream: DataStreamWriter,
    target: Path,
    wanted_id: str,
    table_format: TableFormat,
    interval: str | None,
    progress: Callable[[str], None],
    should_stop: Callable[[], bool],
) -> bool:
    """Returns whether it has ended by itself. Raises StreamingQueryException, also where the server's
    ``target`` isn't the lake of this id; LakeError where somebody else has stopped it."""
    told = -1
    with running(stream.foreachBatch(partial(_apply, target, wanted_id, table_format)), interval) as query:
        has_ended = False
        while not has_ended:
            has_ended = bool(query.awaitTermination(POLL_S))
            news = _news(query, told)
            for batch in news:
                progress(_line(batch))
                told = batch.batchId
            if should_stop() and (news or is_between_batches(query)):
                break  # a batch that follows at once has hardly begun
    if has_ended and interval is not None:
        raise LakeError(f"{target}: the stream that fills it was stopped on the Spark Connect server")
    return has_ended


def _apply(target: Path, wanted_id: str, table_format: TableFormat, rows: DataFrame, batch: int) -> None:
    """The lake is the process's for one batch only: nobody tells it that the stream has ended. Two streams of
    one target have one checkpoint, so the same batches, and each is applied once."""
    if lake_id(target) != wanted_id:
        raise LakeError(
            f"{target}: the Spark Connect server has another folder there than this machine, or none; name "
            "one that both see by the same path"
        )
    with open_lake(target, table_format) as lake:
        apply_batch(lake, rows, batch)


def _news(query: StreamingQuery, told: int) -> list[StreamingQueryProgress]:
    return [batch for batch in query.recentProgress if batch.batchId > told and batch.numInputRows]


def _line(batch: StreamingQueryProgress) -> str:
    return (
        f"batch {batch.batchId}: {batch.numInputRows:,} records in {batch.batchDuration / 1000:.1f} s, "
        f"{batch.processedRowsPerSecond:,.0f} records/s"
    )
