"""Write small batches in the driver.

Spark's plans begin with rows in memory and end in Arrow, so they are short, and no task of Spark reads or
writes a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from kraft_wire.lake.files import dataset_of
from kraft_wire.lake.protocol import OPEN, PART_COLUMN
from kraft_wire.spark.tables.inputs import Tables
from kraft_wire.tabular.arrow_types import RECORDS_SCHEMA
from kraft_wire.tabular.table_names import RECORDS
from kraft_wire.tabular.typed_rows import typed_rows

SETTINGS: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
}


class DriverWriter:
    """A TableWriter for small batches. ``staging`` is the batch's folder; ``folders`` are those of its
    clusters."""

    def __init__(self, spark: SparkSession, staging: Path, folders: Mapping[str, str]) -> None:
        self._spark = spark
        self._staging = staging
        self._folders = folders
        self._written: dict[str, pa.Table] = {}
        self._arrived = _read(list(staging.glob(f"{RECORDS}/*/*.parquet"))).select(RECORDS_SCHEMA.names)
        self.records: Tables = _ArrowTables(spark, self._arrived)

    @property
    def settings(self) -> dict[str, str]:
        return dict(SETTINGS)

    def tables_of(self, records: DataFrame) -> Tables:
        return _ArrowTables(self._spark, records.toArrow())

    @contextmanager
    def kept(self, rows: DataFrame) -> Iterator[DataFrame]:
        yield _frame(self._spark, rows.toArrow())

    def read(self, table: str, files: Sequence[Path]) -> DataFrame:
        return _frame(self._spark, _read(files))

    def write_typed(self, tables: Iterable[str]) -> None:
        for table in tables:
            for cluster, rows in _split(typed_rows(self._arrived, table), "cluster"):
                self._write(rows.drop_columns("cluster"), table, self._folders[cluster])

    def write(self, rows: DataFrame, table: str, part: Column) -> None:
        found = rows.withColumn(PART_COLUMN, part).toArrow()
        self._written[table] = found
        for cluster, of_cluster in _split(found, "cluster"):
            for name, of_part in _split(of_cluster.drop_columns("cluster"), PART_COLUMN):
                folder = f"{self._folders[cluster]}/{PART_COLUMN}={name}"
                self._write(of_part.drop_columns(PART_COLUMN), table, folder)

    def open_now(self, table: str) -> DataFrame:
        rows = self._written[table]
        is_open = pc.equal(rows.column(PART_COLUMN), OPEN)
        return _frame(self._spark, rows.filter(is_open).drop_columns(PART_COLUMN))

    def _write(self, rows: pa.Table, table: str, folder: str) -> None:
        path = self._staging / table / folder
        path.mkdir(parents=True)
        schema = pa.schema(
            [field.with_type(_nullable(field.type)).with_nullable(True) for field in rows.schema]
        )
        pq.write_table(rows.cast(schema), path / "0.parquet", compression="zstd")


class _ArrowTables:
    """All tables, made from Arrow rows of the table ``records``."""

    def __init__(self, spark: SparkSession, records: pa.Table) -> None:
        self._spark = spark
        self._records = records
        self._frames: dict[str, DataFrame] = {}

    def read(self, table: str, *columns: str) -> DataFrame:
        if table not in self._frames:
            rows = self._records if table == RECORDS else typed_rows(self._records, table)
            self._frames[table] = _frame(self._spark, rows)
        return self._frames[table].select(*columns)


def _frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return a DataFrame. The schema is given, because Spark Connect needs one where there are no rows."""
    return spark.createDataFrame(rows, from_arrow_schema(rows.schema))


def _read(files: Sequence[Path]) -> pa.Table:
    """Read files of one table, TABLE/cluster=ID/FILE."""
    return dataset_of(list(map(str, files)), str(files[0].parents[1])).to_table()


def _split(rows: pa.Table, column: str) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each value, in their order."""
    values = rows.column(column)
    for value in values.unique():
        yield value.as_py(), rows.filter(pc.equal(values, value))


def _nullable(of_type: pa.DataType) -> pa.DataType:
    """Return the type with nulls allowed everywhere, so that all files of a table have the same schema."""
    if pa.types.is_list(of_type):
        return pa.list_(pa.field(of_type.value_field.name, _nullable(of_type.value_type)))
    if pa.types.is_struct(of_type):
        return pa.struct([pa.field(inner.name, _nullable(inner.type)) for inner in of_type])
    return of_type
