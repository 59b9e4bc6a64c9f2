"""Turn records into rows of an Arrow table, whole columns at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kraft_wire.columnar.fields import Unreadable, find_fields
from kraft_wire.columnar.gather import Chunk, Malformed
from kraft_wire.columnar.metadata import Kind, kinds
from kraft_wire.exporters.columns import ColumnRecords, type_of
from kraft_wire.exporters.json_form import data_text, image_text
from kraft_wire.exporters.records import UNKNOWN, ExportBatch, ExportRecord
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.registry import message_class
from kraft_wire.tabular.arrow_columns import field_column
from kraft_wire.tabular.json_column import json_column

if TYPE_CHECKING:
    from kraft_wire.columnar.gather import Positions

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
SCHEMA_WITH_CHANGES: Final = pa.schema(
    [*SCHEMA, pa.field("before", pa.string()), pa.field("after", pa.string())]
)
"""``before`` and ``after`` are JSON texts; null if there is no such thing, or the record changes nothing."""


def table_with_changes(batch: ExportBatch) -> pa.Table:
    """Return the records as rows, in their order, with what they change."""
    images = [_images(batch.records, name) for name in ("before", "after")]
    return pa.Table.from_arrays([*table_of(batch).columns, *images], schema=SCHEMA_WITH_CHANGES)


def in_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table of either schema in this one. The columns that it lacks are null."""
    for field in schema:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table


def _images(records: Sequence[ExportRecord], name: str) -> pa.Array:
    if isinstance(records, ColumnRecords):  # those of a snapshot
        return pa.nulls(len(records), pa.string())
    return pa.array([image_text(getattr(record, name)) for record in records], pa.string())


def table_of(batch: ExportBatch) -> pa.Table:
    """Return the records as rows, in their order."""
    records = batch.records
    if isinstance(records, ColumnRecords):
        return _table_of_columns(batch.cluster, records)
    return _table_of_records(batch.cluster, records)


def _table_of_columns(cluster: str, records: ColumnRecords) -> pa.Table:
    tables = [_table_of_kind(cluster, records, kind) for kind in records.kinds]
    if records.control:
        tables.append(_table_of_records(cluster, records.control))
    if len(tables) == 1:
        return tables[0]
    together = pa.concat_tables(tables)
    order = np.lexsort([together[name].to_numpy() for name in ("index", "offset")])
    return together.take(pa.array(order))


def _table_of_kind(cluster: str, records: ColumnRecords, kind: Kind) -> pa.Table:
    name, rows, count = type_of(kind), kind.rows, len(kind.rows)
    if name == UNKNOWN:
        return _table_of_records(cluster, records.of_kind(kind))
    try:
        data = _json(message_class(name), kind.version, records.chunk, kind.starts, kind.ends)
    except (Malformed, Unreadable):
        return _table_of_records(cluster, records.of_kind(kind))
    columns = [
        pa.repeat(pa.scalar(cluster), count),
        pa.array(records.offsets[rows]),
        pa.array(records.indexes[rows]),
        pa.array(records.epochs[rows], pa.int32()),
        pa.array(records.timestamps_ms[rows]).cast(SCHEMA.field("timestamp").type),
        pa.repeat(pa.scalar(name), count),
        pa.repeat(pa.scalar(kind.version, pa.int16()), count),
        data,
        pa.nulls(count, pa.string()),
        pa.nulls(count, pa.binary()),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _table_of_records(cluster: str, records: Sequence[ExportRecord]) -> pa.Table:
    data = _data(records)
    failed = [record if is_null else None for record, is_null in zip(records, _nulls(data), strict=True)]
    columns = [
        pa.array([cluster] * len(records), pa.string()),
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
            return _data_in_columns(name, version, records)
        except (Malformed, Unreadable):
            pass  # one by one, each record says what is wrong with it
    return pa.array([data_text(record) for record in records], pa.string())


def _data_in_columns(name: str, version: int, records: Sequence[ExportRecord]) -> pa.Array:
    """Return the JSON of records of one type and version. Raises Malformed, Unreadable."""
    values = [record.value for record in records]
    ends = np.cumsum(np.array([len(value) for value in values], np.int64))
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    chunk = Chunk(b"".join(values))
    (kind,) = kinds(chunk, starts, ends)
    return _json(message_class(name), version, chunk, kind.starts, kind.ends)


def _json(
    record_class: type[Message], version: int, chunk: Chunk, starts: Positions, ends: Positions
) -> pa.Array:
    """Return the JSON of the records whose bodies lie there. Raises Malformed, Unreadable."""
    if not record_class.MIN_VERSION <= version <= record_class.MAX_VERSION:
        raise Unreadable(f"{record_class.NAME} version {version}")
    table = find_fields(record_class, version, chunk, starts, ends)
    return json_column(record_class, version, lambda field: field_column(table, field), table.row_count)
