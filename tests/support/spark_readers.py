"""Call the data source's readers as Spark does, but without Spark."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from kraft_wire.spark.source import KraftDataSource, LogReader, LogStreamReader

Row = dict[str, Any]
Offset = dict[str, Any]


def source(path: Path | str | None, **options: str) -> KraftDataSource:
    """Create the source. Spark passes option names in lower case; a live quorum has no path."""
    given = {} if path is None else {"path": str(path)}
    return KraftDataSource({**given, **{name.lower(): text for name, text in options.items()}})


def batch_reader(path: Path | str | None, **options: str) -> LogReader:
    return cast(LogReader, source(path, **options).reader(StructType()))


def stream_reader(path: Path | str | None, **options: str) -> LogStreamReader:
    return cast(LogStreamReader, source(path, **options).streamReader(StructType()))


def batch(path: Path | str | None, **options: str) -> list[Row]:
    """Return the rows of a batch."""
    reader = batch_reader(path, **options)
    return rows(reader, reader.partitions())


def rows(reader: LogReader | LogStreamReader, partitions: Iterable[InputPartition]) -> list[Row]:
    """Read partitions in tasks, which get pickled copies of partition and reader, as in Spark."""
    found: list[Row] = []
    for partition in partitions:
        task, there = pickle.loads(pickle.dumps((partition, reader)))
        for each in there.read(task):
            assert isinstance(each, pa.RecordBatch)
            found += each.to_pylist()
    return found


class Stream:
    """A streaming query: the offset in its checkpoint, and the rows that its triggers read."""

    def __init__(self, path: Path | str | None, **options: str) -> None:
        self._path, self._options = path, options
        self.rows: list[Row] = []
        self._begin()
        self.start = self.position = self._json(self._reader.initialOffset())
        if options.get("startingOffsets", "latest") == "latest":
            assert self.trigger() == [], "the first trigger fixes the position, as in Spark"

    def restart(self) -> None:
        """Restart the query as in another driver process."""
        self.stop()
        self._begin()

    def stop(self) -> None:
        self._reader.stop()

    def _begin(self) -> None:
        self._reader = stream_reader(self._path, **self._options)
        self.limit: ReadLimit = self._reader.getDefaultReadLimit()

    def available_now(self) -> None:
        self._reader.prepareForTriggerAvailableNow()

    def reported(self) -> Offset:
        return self._reader.reportLatestOffset()

    def trigger(self) -> list[Row]:
        """Run the next trigger and return its rows; none if there is nothing new."""
        end = self._json(self._reader.latestOffset(self.position, self.limit))
        if end == self.position:
            return []
        found = rows(self._reader, self._reader.partitions(self.position, end))
        self._reader.commit(end)
        self.position = end
        self.rows += found
        return found

    @staticmethod
    def _json(offset: Offset) -> Offset:
        """Convert an offset to JSON and back, because Spark stores the text."""
        there: Offset = json.loads(json.dumps(offset))
        return there
