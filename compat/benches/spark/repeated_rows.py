"""A data source whose rows needn't be decoded, to measure Spark alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kraft_wire.spark.options import Options, parse_options
from kraft_wire.spark.source import LogReader


class RepeatedRows(DataSource):
    """A source that repeats the first page of a log's table until it has returned ``rows`` rows in ``tasks``
    tasks.

    All other options are those of ``kraft``.
    """

    @classmethod
    def name(cls) -> str:
        return "repeated_rows"

    def schema(self) -> StructType:
        return from_arrow_schema(self._log_options.schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        rows, tasks = int(self.options["rows"]), int(self.options["tasks"])
        return _Reader(self._log_options, rows // tasks, tasks)

    @property
    def _log_options(self) -> Options:
        own = ("rows", "tasks")
        return parse_options({name: text for name, text in self.options.items() if name not in own})


class _Reader(DataSourceReader):
    def __init__(self, options: Options, rows_a_task: int, tasks: int) -> None:
        self._options = options
        self._rows_a_task = rows_a_task
        self._tasks = tasks

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(self._tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        log = LogReader(self._options)
        batch = next(log.read(log.partitions()[0]))
        left = self._rows_a_task
        while left > 0:
            yield batch.slice(0, left)
            left -= len(batch)
