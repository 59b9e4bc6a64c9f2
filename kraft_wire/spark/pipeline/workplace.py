"""What a batch needs to work with rows, whether Spark has them or the driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from pyspark.sql import Column, DataFrame

from kraft_wire.spark.tables.inputs import Tables


class Workplace(Protocol):
    """Between the steps of a batch, and into its folder of staged tables."""

    @property
    def settings(self) -> dict[str, str]:
        """Spark's, while the batch is worked on."""

    @property
    def records(self) -> Tables:
        """The records that have come."""

    def tables_of(self, records: DataFrame) -> Tables:
        """All tables, of a DataFrame that is the table ``records``."""

    def kept(self, rows: DataFrame) -> AbstractContextManager[DataFrame]:
        """The same rows, for more than one use: how they were made is done once."""

    def read(self, table: str, files: Sequence[Path]) -> DataFrame:
        """What earlier batches have written to files of a table; there is one at least."""

    def write_typed(self, tables: Iterable[str]) -> None:
        """Stage the typed tables of the records that have come."""

    def write(self, rows: DataFrame, table: str, part: Column) -> None:
        """Stage a table; ``part`` says of each row which part of its cluster's table it belongs to."""

    def open_now(self, table: str) -> DataFrame:
        """The open rows of a table that has been staged."""
