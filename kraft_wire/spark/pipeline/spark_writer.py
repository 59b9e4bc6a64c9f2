"""Write large batches with Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyarrow.parquet import read_schema
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructType

from kraft_wire.lake.protocol import OPEN, PART_COLUMN
from kraft_wire.spark.tables.inputs import LakeTables, Tables, spark_schema
from kraft_wire.spark.tables.typed_records import RecordsTables, typed_rows
from kraft_wire.tabular.table_names import RECORDS

_ROWS_PER_TASK: Final = 100_000
_COMPILED_FROM: Final = 200_000
"""Below this many rows, compiling Spark's plans takes longer than running them uncompiled."""


class SparkWriter:
    """A TableWriter for large batches. ``target`` is the lake's, ``staging`` the batch's folder."""

    def __init__(self, spark: SparkSession, target: Path, staging: Path, row_count: int) -> None:
        self._spark = spark
        self._target = target
        self._staging = staging
        self._row_count = row_count
        self._schemas: dict[str, StructType] = {}
        self.records: Tables = LakeTables(spark, staging)

    @property
    def settings(self) -> dict[str, str]:
        compiled = self._row_count > _COMPILED_FROM
        return {
            "spark.sql.codegen.wholeStage": str(compiled).lower(),
            "spark.sql.codegen.factoryMode": "FALLBACK" if compiled else "NO_CODEGEN",
            "spark.sql.shuffle.partitions": str(1 + self._row_count // _ROWS_PER_TASK),
        }

    def tables_of(self, records: DataFrame) -> Tables:
        return RecordsTables(records)

    @contextmanager
    def kept(self, rows: DataFrame) -> Iterator[DataFrame]:
        rows = rows.persist()
        try:
            yield rows
        finally:
            rows.unpersist()

    def read(self, table: str, files: Sequence[Path]) -> DataFrame:
        reader = self._spark.read.schema(_schema_of(files[0])).option("basePath", str(self._target / table))
        return reader.parquet(*map(str, files))

    def write_typed(self, tables: Iterable[str]) -> None:
        records = self.records.read(RECORDS, *spark_schema(RECORDS).names)
        for table in tables:
            self._write(typed_rows(records, table), table, "cluster")

    def write(self, rows: DataFrame, table: str, part: Column) -> None:
        rows = rows.withColumn(PART_COLUMN, part)
        self._schemas[table] = rows.schema
        self._write(rows, table, "cluster", PART_COLUMN)

    def open_now(self, table: str) -> DataFrame:
        rows = self._spark.read.schema(self._schemas[table]).parquet(str(self._staging / table))
        return rows.filter(F.col(PART_COLUMN) == OPEN).drop(PART_COLUMN)

    def _write(self, rows: DataFrame, table: str, *by: str) -> None:
        rows.write.partitionBy(*by).option("compression", "zstd").parquet(str(self._staging / table))


def _schema_of(file: Path) -> StructType:
    """Return the file's columns, and the column in the folder's name."""
    return from_arrow_schema(read_schema(file)).add("cluster", StringType())
