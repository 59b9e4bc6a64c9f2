"""The data source's readers, asked as Spark asks them, without Spark."""

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
    """Option names reach a source in lower case. A quorum has no path."""
    given = {} if path is None else {"path": str(path)}
    return KraftDataSource({**given, **{name.lower(): text for name, text in options.items()}})


def batch_reader(path: Path | str | None, **options: str) -> LogReader:
    return cast(LogReader, source(path, **options).reader(StructType()))


def stream_reader(path: Path | str | None, **options: str) -> LogStreamReader:
    return cast(LogStreamReader, source(path, **options).streamReader(StructType()))


def batch(path: Path | str | None, **options: str) -> list[Row]:
    """A batch's rows."""
    reader = batch_reader(path, **options)
    return rows(reader, reader.partitions())


def rows(reader: LogReader | LogStreamReader, partitions: Iterable[InputPartition]) -> list[Row]:
    """Tasks get what was pickled."""
    found: list[Row] = []
    for partition in partitions:
        task, there = pickle.loads(pickle.dumps((partition, reader)))
        for each in there.read(task):
            assert isinstance(each, pa.RecordBatch)
            found += each.to_pylist()
    return found


class Stream:
    """A query: what it has in its checkpoint, and what it read in its triggers."""

    def __init__(self, path: Path | str | None, **options: str) -> None:
        self._path, self._options = path, options
        self.rows: list[Row] = []
        self._begin()
        self.start = self.position = self._json(self._reader.initialOffset())
        if options.get("startingOffsets", "latest") == "latest":
            assert self.trigger() == [], "Spark asks at once"

    def restart(self) -> None:
        """The driver's process is another one."""
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
        """What the next trigger reads: nothing where there is nothing new."""
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
        """Spark keeps the text."""
        there: Offset = json.loads(json.dumps(offset))
        return there
