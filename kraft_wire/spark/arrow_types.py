"""The Arrow types of records: one column a field, in the order and under the names of the generated class.

Ids are text as Kafka prints them. Unsigned numbers take the next larger signed type: Spark has no others.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import pyarrow as pa

from kraft_wire.protocol.schema import Field, Structure

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
"""Where a record is in which log: the first columns of every table of records.

A record that is ``in_snapshot`` is part of what the cluster was at ``offset``, the last that the snapshot
covers; when it was written, and in which epoch, the snapshot doesn't say.
"""

_TAKEN: Final = frozenset(field.name for field in PLACE)


@cache
def schema_of(record_class: type[Structure]) -> pa.Schema:
    """The table of one type of record: the fields of all its versions."""
    fields = [pa.field(column_name(field), type_of(field)) for field in record_class.FIELDS]
    return pa.schema([*PLACE, *fields])


def column_name(field: Field) -> str:
    """The field's name, unless one of the first columns has it."""
    return f"record_{field.name}" if field.name in _TAKEN else field.name


@cache
def type_of(field: Field) -> pa.DataType:
    """One field's type; whether it may be null, any column may."""
    if field.struct is not None:
        inner = pa.struct([pa.field(inner.name, type_of(inner)) for inner in field.struct.FIELDS])
    else:
        inner = _SCALARS[field.kind]
    return pa.list_(pa.field("element", inner)) if field.array else inner
