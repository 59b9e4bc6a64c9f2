"""The options of the data source ``kraft``, which Spark hands over with their names in lower case."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from kraft_wire.protocol.messages import METADATA_RECORDS
from kraft_wire.protocol.registry import message_class

if TYPE_CHECKING:
    import pyarrow as pa

    from kraft_wire.columnar.page import Page
    from kraft_wire.protocol.message import Message
    from kraft_wire.spark.record_tables import LogPlace

RECORDS: Final = "records"


class BadOption(ValueError):
    """An option that can't be used: which, and what it may be."""


class Options(msgspec.Struct, frozen=True):
    """``paths`` are folders or globs. ``table`` is one of ``table_names``; ``columns`` are some of its, None
    for all."""

    paths: tuple[str, ...]
    table: str = RECORDS
    columns: tuple[str, ...] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The table's columns, or those that were chosen. Raises BadOption."""
        import pyarrow as pa

        schema = _whole_schema(self.table)
        unknown = [name for name in self.columns or () if name not in schema.names]
        if unknown:
            raise BadOption(
                f"columns: {self.table} has no {', '.join(unknown)}; it has {', '.join(schema.names)}"
            )
        return schema if self.columns is None else pa.schema([schema.field(name) for name in self.columns])

    def batches_of(self, page: Page, place: LogPlace) -> list[pa.RecordBatch]:
        """A page's rows of the table."""
        from kraft_wire.spark.record_tables import record_batches, typed_batches

        if self.table == RECORDS:
            return record_batches(page, place, self.columns)
        return typed_batches(page, _record_classes()[self.table], place, self.columns)


def table_names() -> list[str]:
    """``records``, and one for each type of record: ``partition_change`` holds PartitionChangeRecords."""
    return [RECORDS, *sorted(_record_classes())]


def parse_options(options: Mapping[str, str]) -> Options:
    """Raises BadOption."""
    path = options.get("path")
    if not path:
        raise BadOption("path: give a folder with metadata logs in or below it, or a glob")
    table = options.get("table", RECORDS)
    if table not in table_names():
        raise BadOption(f"table: there is no {table!r}; there are {', '.join(table_names())}")
    columns = options.get("columns")
    chosen = None if columns is None else tuple(name.strip() for name in columns.split(","))
    parsed = Options((path,), table, chosen)
    assert parsed.schema is not None, "judges the columns"
    return parsed


def _whole_schema(table: str) -> pa.Schema:
    from kraft_wire.spark.arrow_types import schema_of
    from kraft_wire.spark.record_tables import RECORDS as RECORDS_SCHEMA

    return RECORDS_SCHEMA if table == RECORDS else schema_of(_record_classes()[table])


@cache
def _record_classes() -> dict[str, type[Message]]:
    return {_table_name(name): message_class(name) for name in METADATA_RECORDS.values()}


def _table_name(record_name: str) -> str:
    """PartitionChangeRecord -> partition_change."""
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", record_name.removesuffix("Record"))
    return words.lower()
