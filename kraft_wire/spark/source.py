"""Serve the data source ``kraft`` to Spark. Spark imports this module to find any source, so large imports
wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from kraft_wire.logs.admission import Limit
from kraft_wire.logs.positions import positions_from, positions_json, positions_tree
from kraft_wire.spark.filters import EVERY_ROW, pushed
from kraft_wire.spark.options import LATEST, BadOption, Options, parse_options

if TYPE_CHECKING:
    import pyarrow as pa

    from kraft_wire.logs.store import LogRange, LogStore
    from kraft_wire.spark.planning import Planner


class KraftDataSource(DataSource):
    """``spark.read.format("kraft").option("table", "partition").load(FOLDER)``, and ``readStream``; for
    options see ``kraft_wire.spark.options``."""

    @classmethod
    def name(cls) -> str:
        return "kraft"

    def schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(_options(self).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = _options(self)
        return FilteringLogReader(options) if options.push_filters else LogReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = _options(self)
        if options.ending_offsets != LATEST:
            raise BadOption("endingOffsets: a stream has no end; use it for a batch")
        return LogStreamReader(options)


def _options(source: DataSource) -> Options:
    return parse_options(dict(source.options))


class Split(InputPartition):
    """The pieces that one task reads."""

    def __init__(self, pieces: tuple[Any, ...]) -> None:
        self.pieces = pieces


class _LogSource:
    """The common part of both readers. It is pickled as its options."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._filter = EVERY_ROW

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_store", "_planner")}

    @cached_property
    def _store(self) -> LogStore[Any]:
        if self._options.quorum is not None:
            from kraft_wire.logs.live_store import LiveStore

            return LiveStore(self._options.quorum)
        from kraft_wire.logs.folder_store import FolderStore

        return FolderStore(self._options.paths)

    @cached_property
    def _planner(self) -> Planner[Any]:
        from kraft_wire.spark.planning import Planner

        return Planner(self._store, self._options)

    def _splits(self, ranges: Sequence[LogRange]) -> list[Split]:
        from kraft_wire.logs.splits import packed

        pieces = (piece for wanted in ranges for piece in self._store.pieces(wanted))
        return [Split(task) for task in packed(pieces)]

    def stop(self) -> None:
        self._store.close()

    def _rows(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from kraft_wire.spark.reading import rows_of

        # Spark makes a partition itself if there is nothing to read.
        pieces = partition.pieces if isinstance(partition, Split) else ()
        return rows_of(self._store, pieces, self._options, self._filter.types)


class LogReader(_LogSource, DataSourceReader):
    """A reader of the records that there are now."""

    def partitions(self) -> Sequence[Split]:
        try:
            return self._splits(self._planner.batch(self._filter))
        finally:
            self.stop()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._rows(partition)


class FilteringLogReader(LogReader):
    """A reader to which Spark passes filters. Spark refuses such a reader unless
    spark.sql.python.filterPushdown.enabled is set."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._filter, others = pushed(filters, self._options.table)
        return others


class LogStreamReader(_LogSource, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A reader of a stream."""

    def initialOffset(self) -> dict[str, Any]:
        return positions_tree(self._planner.initial())

    def getDefaultReadLimit(self) -> ReadLimit:
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._planner.stop_at_what_is_there()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return positions_tree(self._planner.latest(positions_from(start), _limit(limit)))

    def reportLatestOffset(self) -> dict[str, Any]:
        return positions_tree(self._planner.available())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Split]:
        return self._splits(self._planner.between(positions_from(start), positions_from(end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._rows(partition)


def ends_now(options: Mapping[str, str]) -> str:
    """Return the option ``endingOffsets`` for where the logs end now, as far as the other options read them.

    Reads the logs without Spark. Raises BadOption, and what reading raises.
    """
    source = _LogSource(parse_options({name.lower(): text for name, text in options.items()}))
    try:
        return positions_json(source._planner.available())
    finally:
        source.stop()


def _limit(limit: ReadLimit) -> Limit:
    """Convert the limit of a trigger: Spark passes the default limit, or none."""
    if isinstance(limit, ReadMaxRows):
        return Limit(offsets=limit.max_rows)
    return Limit(size_bytes=limit.max_bytes) if isinstance(limit, ReadMaxBytes) else Limit()
