"""Where the tables of records come from: the data source, a lake's Parquet, or DataFrames at hand."""

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

from kraft_wire.spark.options import Options
from kraft_wire.spark.source import ends_now

RECORDS = "records"


class Tables(Protocol):
    """The tables of records, by the names that the data source gives them."""

    def read(self, table: str, *columns: str) -> DataFrame:
        """These columns of a table. Nothing is read before Spark needs it."""


class SourceTables:
    """Tables that the data source ``kraft`` reads; ``options`` are its own.

    Where these name no ``endingOffsets``, all tables end where the logs did when the first one was asked for.
    Each is read by itself: in a log that grows, one would know of records that another doesn't know yet, and
    what an aborted transaction did would seem to have happened.
    """

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        self._spark = spark
        self._given = dict(options)

    def read(self, table: str, *columns: str) -> DataFrame:
        """The source is told which columns: Spark itself doesn't tell it."""
        reader = self._spark.read.format("kraft").options(**self._options)
        return reader.option("table", table).option("columns", ",".join(columns)).load()

    @cached_property
    def _options(self) -> dict[str, str]:
        if any(name.lower() == "endingoffsets" for name in self._given):
            return self._given
        return {**self._given, "endingOffsets": ends_now(self._given)}


class LakeTables:
    """Tables that the pipeline keeps as Parquet below ``target``. Raises NotADirectoryError."""

    def __init__(self, spark: SparkSession, target: str | Path) -> None:
        self._spark = spark
        self._target = Path(target)
        if not self._target.is_dir():
            raise NotADirectoryError(ENOTDIR, "no folder; give the target of 'pipeline run'", str(target))

    def read(self, table: str, *columns: str) -> DataFrame:
        """A table that no record has been written to yet is empty."""
        folder = self._target / table
        reader = self._spark.read.schema(spark_schema(table))
        found = reader.parquet(str(folder)) if folder.is_dir() else empty(self._spark, table)
        return found.select(*columns)


class FrameTables:
    """Tables that somebody has as DataFrames; those that are missing are empty."""

    def __init__(self, spark: SparkSession, frames: Mapping[str, DataFrame]) -> None:
        self._spark = spark
        self._frames = frames

    def read(self, table: str, *columns: str) -> DataFrame:
        found = self._frames.get(table)
        return (empty(self._spark, table) if found is None else found).select(*columns)


class Until:
    """Other tables, as they were when each cluster's log ended at ``offset`` (included), or at ``time``: with
    the last record that had been written until then."""

    def __init__(self, tables: Tables, offset: int | None = None, time: datetime | None = None) -> None:
        if offset is not None and time is not None:
            raise ValueError("as of an offset or as of a time: give one of them")
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
    """The columns of one of the source's tables."""
    return from_arrow_schema(Options((), table).schema)


def empty(spark: SparkSession, table: str) -> DataFrame:
    """One of the source's tables without rows. Spark's optimizer knows it, by the filter."""
    return spark.createDataFrame([], spark_schema(table)).filter(F.lit(False))


def without(rows: DataFrame, *columns: str) -> DataFrame:
    """Without columns that are there. A declarative pipeline doesn't know its tables' columns yet when it is
    told of their plans, and Spark Connect has to where ``drop`` is called."""
    return rows.select(F.expr(f"* EXCEPT (`{'`, `'.join(columns)}`)"))
