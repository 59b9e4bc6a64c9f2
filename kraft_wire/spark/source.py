"""Spark's data source ``kraft``. Imported wherever Spark looks for any source: what is heavy waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kraft_wire.spark.options import Options, parse_options

if TYPE_CHECKING:
    import pyarrow as pa

    from kraft_wire.spark.log_splits import Piece


class KraftDataSource(DataSource):
    """``spark.read.format("kraft").option("table", "partition").load(FOLDER)``; see ``options``."""

    @classmethod
    def name(cls) -> str:
        return "kraft"

    def schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(_options(self).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return LogReader(_options(self))


def _options(source: DataSource) -> Options:
    return parse_options(dict(source.options))


class Split(InputPartition):
    """What one task reads."""

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        self.pieces = pieces


class LogReader(DataSourceReader):
    """Reads logs on disk, all there is of them now."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[Split]:
        from kraft_wire.spark.log_folders import find_logs
        from kraft_wire.spark.log_splits import packed, pieces_of

        logs = find_logs(self._options.paths)
        return [Split(pieces) for pieces in packed(piece for log in logs for piece in pieces_of(log))]

    def read(self, partition: Split) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        from kraft_wire.spark.log_pages import pages_of
        from kraft_wire.spark.record_tables import LogPlace

        for piece in partition.pieces:
            place = LogPlace(piece.cluster, piece.committed_end_offset)
            for page in pages_of(piece):
                yield from self._options.batches_of(page, place)
