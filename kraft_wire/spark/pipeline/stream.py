"""The stream of records that feeds a lake."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from kraft_wire.spark.pipeline.lake import LakeError, checkpoint_of

MOST_OFFSETS: Final = 2_000_000
"""A batch's records, unless an option says otherwise."""

POLL_S: Final = 1
"""How often a query is looked at."""
_OURS: Final = re.compile(r"^kraft_wire\.[\w.]+: (.*)", re.MULTILINE)
"""The line that ends the stack of an error of ours."""


def stream_of(spark: SparkSession, source: Mapping[str, str], target: Path) -> DataStreamWriter:
    options = {"startingOffsets": "earliest", **_limits(source), **source}
    rows = spark.readStream.format("kraft").options(**options).option("table", "records").load()
    return rows.writeStream.option("checkpointLocation", str(checkpoint_of(target)))


@contextmanager
def running(stream: DataStreamWriter, interval: str | None) -> Iterator[StreamingQuery]:
    """Without an interval it ends when everything that is there now has been read; when it is left, it is
    stopped."""
    timed = stream.trigger(availableNow=True) if interval is None else stream.trigger(processingTime=interval)
    query = timed.start()
    try:
        yield query
    finally:
        query.stop()


def is_between_batches(query: StreamingQuery) -> bool:
    """Stopped amid one, it would fail it, and say so at length."""
    return not query.status["isTriggerActive"]


def failed(target: Path, error: PySparkException) -> LakeError:
    """What has stopped the stream, without the stacks of Python and Java that Spark puts around it."""
    text = str(error)
    ours = _OURS.findall(text)
    why = ours[-1] if ours else text.partition("\n=== Streaming Query")[0]
    return LakeError(f"{target}: the stream that fills it failed: {why}")


def _limits(source: Mapping[str, str]) -> dict[str, str]:
    given = {name.lower() for name in source}
    if given & {"maxoffsetspertrigger", "maxbytespertrigger"}:
        return {}
    return {"maxOffsetsPerTrigger": str(MOST_OFFSETS)}
