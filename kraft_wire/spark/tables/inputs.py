"""Provide the tables of records: from the data source, from a lake's Parquet, or from DataFrames."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from errno import ENOTDIR
from functools import cached_property
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kraft_wire.spark.source import ends_now
from kraft_wire.tabular.arrow_types import table_schema
from kraft_wire.tabular.table_names import RECORDS


class Tables(Protocol):
    """The tables of records, by their names in the data source."""

    def read(self, table: str, *columns: str) -> DataFrame:
        """Return these columns of a table. Nothing is read until Spark needs it."""


class SourceTables:
    """The tables that the data source ``kraft`` reads; ``options`` are its own.

    Without ``endingOffsets``, all tables end where the logs ended when the first table was read. Each table
    is read by itself: without a common end, in a log that grows, one table would have records that another
    lacks, and the records of an aborted transaction would seem to take effect.
    """

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        self._spark = spark
        self._given = dict(options)

    def read(self, table: str, *columns: str) -> DataFrame:
        """See ``Tables.read``. The columns are an option, because Spark doesn't tell the source which ones it
        needs."""
        reader = self._spark.read.format("kraft").options(**self._options)
        return reader.option("table", table).option("columns", ",".join(columns)).load()

    @cached_property
    def _options(self) -> dict[str, str]:
        if any(name.lower() == "endingoffsets" for name in self._given):
            return self._given
        return {**self._given, "endingOffsets": ends_now(self._given)}


class LakeTables:
    """The tables that the pipeline keeps as Parquet below ``target``. Raises NotADirectoryError."""

    def __init__(self, spark: SparkSession, target: str | Path) -> None:
        self._spark = spark
        self._target = Path(target)
        if not self._target.is_dir():
            raise NotADirectoryError(ENOTDIR, "no folder; give the target of 'pipeline run'", str(target))

    def read(self, table: str, *columns: str) -> DataFrame:
        """See ``Tables.read``. A table without records is empty."""
        folder = self._target / table
        reader = self._spark.read.schema(spark_schema(table))
        found = reader.parquet(str(folder)) if folder.is_dir() else empty(self._spark, table)
        return found.select(*columns)


class FrameTables:
    """Tables given as DataFrames; missing ones are empty."""

    def __init__(self, spark: SparkSession, frames: Mapping[str, DataFrame]) -> None:
        self._spark = spark
        self._frames = frames

    def read(self, table: str, *columns: str) -> DataFrame:
        found = self._frames.get(table)
        return (empty(self._spark, table) if found is None else found).select(*columns)


class Until:
    """Other tables as they were when each cluster's log ended at ``offset`` (included), or with the last
    record that was written by ``time``."""

    def __init__(self, tables: Tables, offset: int | None = None, time: datetime | None = None) -> None:
        if offset is not None and time is not None:
            raise ValueError("as_of_offset and as_of_time: give one of them")
        self._tables = tables
        self._offset = offset
        self._time = time

    def read(self, table: str, *columns: str) -> DataFrame:
        if self._offset is None and self._time is None:
            return self._tables.read(table, *columns)
        needed = dict.fromkeys([*columns, "cluster", "offset"])
        rows = self._tables.read(table, *needed)
        if self._offset is not None:
            rows = rows.filter(F.col("offset") <= self._offset)
        else:
            rows = rows.join(F.broadcast(self._last_offsets()), "cluster").filter("offset <= last_offset")
        return rows.select(*columns)

    def _last_offsets(self) -> DataFrame:
        places = self._tables.read(RECORDS, "cluster", "offset", "timestamp")
        written = places.filter(F.col("timestamp") <= F.lit(self._time))
        return written.groupBy("cluster").agg(F.max("offset").alias("last_offset"))


def spark_schema(table: str) -> StructType:
    """Return the columns of one of the source's tables."""
    return from_arrow_schema(table_schema(table))


def empty(spark: SparkSession, table: str) -> DataFrame:
    """Return one of the source's tables without rows. The filter lets Spark's optimizer know that."""
    return spark.createDataFrame([], spark_schema(table)).filter(F.lit(False))


def without(rows: DataFrame, *columns: str) -> DataFrame:
    """Drop columns that exist.

    A declarative pipeline plans tables before it knows their columns, which ``drop`` would need on Spark
    Connect.
    """
    return rows.select(F.expr(f"* EXCEPT (`{'`, `'.join(columns)}`)"))
