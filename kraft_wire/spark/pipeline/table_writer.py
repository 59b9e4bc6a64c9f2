"""Declare what a batch needs to work with rows, in Spark or in the driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from pyspark.sql import Column, DataFrame

from kraft_wire.spark.tables.inputs import Tables


class TableWriter(Protocol):
    """The rows of a batch between its steps, and its folder of staged tables."""

    @property
    def settings(self) -> dict[str, str]:
        """Spark's settings while the batch is applied."""

    @property
    def records(self) -> Tables:
        """The records of the batch."""

    def tables_of(self, records: DataFrame) -> Tables:
        """Return all tables, made from a DataFrame that is the table ``records``."""

    def kept(self, rows: DataFrame) -> AbstractContextManager[DataFrame]:
        """Keep rows that are used more than once, so that they are computed once."""

    def read(self, table: str, files: Sequence[Path]) -> DataFrame:
        """Read files of a table that earlier batches wrote; there is at least one."""

    def write_typed(self, tables: Iterable[str]) -> None:
        """Stage the typed tables of the batch's records."""

    def write(self, rows: DataFrame, table: str, part: Column) -> None:
        """Stage a table. ``part`` is the part of its cluster's table that each row belongs to."""

    def open_now(self, table: str) -> DataFrame:
        """Return the open rows of a staged table."""
