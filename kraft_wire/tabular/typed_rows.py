"""Make a typed table from a few rows of the table of all records, without Spark."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from kraft_wire.tabular.arrow_columns import decoded_column
from kraft_wire.tabular.arrow_types import PLACE, schema_of
from kraft_wire.tabular.table_names import record_class


def typed_rows(records: pa.Table, table: str) -> pa.Table:
    """Return the rows of a typed table, with all its columns. Raises ProtocolError for JSON that is no
    record."""
    message = record_class(table)
    rows = records.filter(pc.equal(records.column("type"), message.NAME))
    found = [
        message.from_json(msgspec.json.decode(json), version)
        for json, version in zip(
            rows.column("json").to_pylist(), rows.column("version").to_pylist(), strict=True
        )
    ]
    place = [rows.column(field.name) for field in PLACE]
    fields = [decoded_column(found, field) for field in message.FIELDS]
    return pa.Table.from_arrays([*place, *fields], schema=schema_of(message))
