"""Turn records into rows of an Arrow table, whole columns at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from kraft_wire.columnar.fields import Unreadable, find_fields
from kraft_wire.columnar.gather import Chunk, Malformed
from kraft_wire.columnar.metadata import kinds
from kraft_wire.exporters.json_form import data_text
from kraft_wire.exporters.records import UNKNOWN, ExportBatch, ExportRecord
from kraft_wire.protocol.registry import message_class
from kraft_wire.tabular.arrow_columns import field_column
from kraft_wire.tabular.json_column import json_column

SCHEMA: Final = pa.schema(
    [
        pa.field("cluster", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("index", pa.int64()),
        pa.field("epoch", pa.int32()),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("type", pa.string()),
        pa.field("version", pa.int16()),
        pa.field("data", pa.string()),
        pa.field("undecoded", pa.string()),
        pa.field("raw", pa.binary()),
    ]
)
"""The columns have the members of the JSON form; ``data`` is its JSON text, null if it can't be decoded."""


def table_of(batch: ExportBatch) -> pa.Table:
    """Return the records as rows, in their order."""
    records = batch.records
    data = _data(records)
    failed = [record if is_null else None for record, is_null in zip(records, _nulls(data), strict=True)]
    columns = [
        pa.array([batch.cluster] * len(records), pa.string()),
        pa.array([record.offset for record in records], pa.int64()),
        pa.array([record.index for record in records], pa.int64()),
        pa.array([record.epoch for record in records], pa.int32()),
        pa.array([record.timestamp_ms for record in records], SCHEMA.field("timestamp").type),
        pa.array([record.type for record in records], pa.string()),
        pa.array([record.version for record in records], pa.int16()),
        data,
        pa.array([None if record is None else record.problem for record in failed], pa.string()),
        pa.array([None if record is None else record.value for record in failed], pa.binary()),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _nulls(column: pa.Array) -> list[bool]:
    return column.is_null().to_pylist() if column.null_count else [False] * len(column)


def _data(records: Sequence[ExportRecord]) -> pa.Array:
    """Return the column ``data``: each type and version at once, then in the order of the records."""
    groups: dict[tuple[str, int, bool], list[int]] = {}
    for row, record in enumerate(records):
        groups.setdefault((record.type, record.version, record.is_decoded), []).append(row)
    columns = [_data_of_kind(kind, [records[row] for row in rows]) for kind, rows in groups.items()]
    if len(columns) == 1:
        return columns[0]
    order = np.argsort(np.concatenate([np.array(rows) for rows in groups.values()]), kind="stable")
    return pa.concat_arrays(columns).take(pa.array(order))


def _data_of_kind(kind: tuple[str, int, bool], records: Sequence[ExportRecord]) -> pa.Array:
    name, version, is_decoded = kind
    if name != UNKNOWN and not is_decoded:
        try:
            return _in_columns(name, version, records)
        except (Malformed, Unreadable):
            pass  # one by one, each record says what is wrong with it
    return pa.array([data_text(record) for record in records], pa.string())


def _in_columns(name: str, version: int, records: Sequence[ExportRecord]) -> pa.Array:
    """Return the JSON of records of one type and version. Raises Malformed, Unreadable."""
    record_class = message_class(name)
    if not record_class.MIN_VERSION <= version <= record_class.MAX_VERSION:
        raise Unreadable(f"{name} version {version}")
    values = [record.value for record in records]
    ends = np.cumsum(np.array([len(value) for value in values], np.int64))
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    chunk = Chunk(b"".join(values))
    (kind,) = kinds(chunk, starts, ends)
    table = find_fields(record_class, version, chunk, kind.starts, kind.ends)
    return json_column(record_class, version, lambda field: field_column(table, field), len(records))
