"""Define the Arrow types of records: one column for each field, in the order and with the names of the
generated class.

Ids are text, as Kafka prints them. Unsigned numbers have the next larger signed type, as Spark has no
unsigned ones.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import pyarrow as pa

from kraft_wire.protocol.schema import Field, Structure
from kraft_wire.tabular.table_names import CORRUPT, RECORDS, record_class

NUMBERS: Final[dict[str, pa.DataType]] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "uint16": pa.int32(),
    "int32": pa.int32(),
    "uint32": pa.int64(),
    "int64": pa.int64(),
    "float64": pa.float64(),
}
_SCALARS: Final[dict[str, pa.DataType]] = {
    **NUMBERS,
    "uuid": pa.string(),
    "string": pa.string(),
    "bytes": pa.binary(),
}

PLACE: Final = (
    pa.field("cluster", pa.string()),
    pa.field("offset", pa.int64()),
    pa.field("epoch", pa.int32()),
    pa.field("timestamp", pa.timestamp("us", tz="UTC")),
    pa.field("committed", pa.bool_()),
    pa.field("in_snapshot", pa.bool_()),
    pa.field("version", pa.int16()),
)
"""The first columns of every table of records: which log a record is from, and where in it.

A record that is ``in_snapshot`` is part of the cluster's state at ``offset``, the last one that the snapshot
covers. A snapshot doesn't say when the record was written, nor in which epoch.
"""

RECORDS_SCHEMA: Final = pa.schema(
    [*PLACE[:-1], pa.field("type", pa.string()), PLACE[-1], pa.field("json", pa.string())]
)
"""The columns of table ``records``: every record of a log, control records included."""

CORRUPT_SCHEMA: Final = pa.schema(
    [
        pa.field("cluster", pa.string()),
        pa.field("file", pa.string()),
        pa.field("position", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("reason", pa.string()),
    ]
)
"""The columns of table ``corrupt``: each row is one damaged place. ``offset`` is the first record offset that
can't be read, ``position`` the byte in ``file`` where it should be."""

_TAKEN: Final = frozenset(field.name for field in PLACE)


def table_schema(table: str) -> pa.Schema:
    """Return the columns of one of ``table_names.table_names()``."""
    schemas = {RECORDS: RECORDS_SCHEMA, CORRUPT: CORRUPT_SCHEMA}
    return schemas[table] if table in schemas else schema_of(record_class(table))


@cache
def schema_of(record_class: type[Structure]) -> pa.Schema:
    """Return the columns of the table of one type of record: the fields of all its versions."""
    fields = [pa.field(column_name(field), type_of(field)) for field in record_class.FIELDS]
    return pa.schema([*PLACE, *fields])


def column_name(field: Field) -> str:
    """Return the name of a field's column, which differs if one of the first columns has the field's name."""
    return f"record_{field.name}" if field.name in _TAKEN else field.name


@cache
def type_of(field: Field) -> pa.DataType:
    """Return the type of a field. Any column may have nulls."""
    if field.struct is not None:
        inner = pa.struct([pa.field(inner.name, type_of(inner)) for inner in field.struct.FIELDS])
    else:
        inner = _SCALARS[field.kind]
    return pa.list_(pa.field("element", inner)) if field.array else inner
