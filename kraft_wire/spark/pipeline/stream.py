"""Stream the records that fill a lake."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from kraft_wire.lake.protocol import LakeError, checkpoint_of
from kraft_wire.tabular.table_names import RECORDS

MOST_OFFSETS: Final = 2_000_000
"""The offsets of a batch, unless an option limits them."""

POLL_S: Final = 1
"""Seconds between two checks of a query."""
MOST_STARTS: Final = 3
"""How often a stream is started if the server's Python is slow to start."""
_SLOW_PYTHON: Final = "Python worker failed to connect back"
"""Spark gives a server's Python ten seconds, which no setting changes (PythonWorkerFactory)."""
_OURS: Final = re.compile(r"^kraft_wire\.[\w.]+: (.*)", re.MULTILINE)
"""The last line of the stack of a kraft-wire error."""
_STACKS: Final = re.compile(r"\n\s*(=== Streaming Query|JVM stacktrace)")


def stream_of(spark: SparkSession, source: Mapping[str, str], target: Path) -> DataStreamWriter:
    options = {"startingOffsets": "earliest", **_limits(source), **source}
    rows = spark.readStream.format("kraft").options(**options).option("table", RECORDS).load()
    return rows.writeStream.option("checkpointLocation", str(checkpoint_of(target)))


@contextmanager
def running(
    stream: DataStreamWriter, interval: str | None, progress: Callable[[str], None]
) -> Iterator[StreamingQuery]:
    """Run the stream; without an interval, it ends when everything that there is now has been read. Stops it
    on exit."""
    timed = stream.trigger(availableNow=True) if interval is None else stream.trigger(processingTime=interval)
    query = _start(timed, progress)
    try:
        yield query
    finally:
        query.stop()


def _start(stream: DataStreamWriter, progress: Callable[[str], None]) -> StreamingQuery:
    """Start the stream, again if Python was slow on a busy server: no batch has begun then."""
    for start in range(1, MOST_STARTS):
        try:
            return stream.start()
        except PySparkException as error:
            if _SLOW_PYTHON not in str(error):
                raise
            progress(f"Python is slow to start where Spark runs; attempt {start + 1} of {MOST_STARTS}")
    return stream.start()


def is_between_batches(query: StreamingQuery) -> bool:
    """Whether no batch is being applied. Stopping a query within a batch makes it fail, with long
    messages."""
    return not query.status["isTriggerActive"]


def failed(target: Path, error: PySparkException) -> LakeError:
    """Return why the stream failed, without the stacks of Python and Java that Spark adds."""
    text = str(error)
    ours = _OURS.findall(text)
    why = ours[-1] if ours else _STACKS.split(text)[0]
    return LakeError(f"{target}: the stream that fills it failed: {why}")


def _limits(source: Mapping[str, str]) -> dict[str, str]:
    given = {name.lower() for name in source}
    if given & {"maxoffsetspertrigger", "maxbytespertrigger"}:
        return {}
    return {"maxOffsetsPerTrigger": str(MOST_OFFSETS)}
