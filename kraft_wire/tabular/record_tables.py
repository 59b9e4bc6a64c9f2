"""Make Arrow tables of records: one of all types, and one for each type."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from kraft_wire.columnar.fields import find_fields, is_readable
from kraft_wire.columnar.gather import Malformed
from kraft_wire.columnar.metadata import Kind
from kraft_wire.columnar.page import Page
from kraft_wire.log.batch import Batch, BatchHeader, Record, iter_records
from kraft_wire.log.control import CONTROL_RECORD_VERSION, decode_control_record
from kraft_wire.logs.places import LogPlace
from kraft_wire.logs.store import Damage
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import METADATA_RECORDS
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.protocol.registry import metadata_record_class
from kraft_wire.protocol.schema import Field
from kraft_wire.tabular.arrow_columns import decoded_column, field_column, number_column, same_in_all
from kraft_wire.tabular.arrow_types import CORRUPT_SCHEMA, RECORDS_SCHEMA, column_name, schema_of
from kraft_wire.tabular.json_column import json_column

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")


class _Rows(NamedTuple):
    """Records of one type and version: their places, and functions that return their columns."""

    record_class: type[Message]
    version: int
    offsets: Any
    epochs: Any
    timestamps_ms: Any
    field: Callable[[Any], pa.Array]
    json: Callable[[], pa.Array]


def typed_batches(
    page: Page, record_class: type[Message], log: LogPlace, columns: Sequence[str] | None = None
) -> list[pa.RecordBatch]:
    """Return the records of one type, in the order of their offsets, with all columns or the named ones.

    Raises CorruptBatch, DecodeError, UnsupportedVersion for records that can't be read.
    """
    schema = _selected(schema_of(record_class), columns)
    fields = _fields(record_class)

    def batch_of(rows: _Rows) -> pa.RecordBatch:
        return _assemble(
            schema, rows, log, {name: rows.field(fields[name]) for name in schema.names if name in fields}
        )

    return _in_order(page, schema, log, batch_of, frozenset([record_class.API_KEY]))


def record_batches(
    page: Page,
    log: LogPlace,
    columns: Sequence[str] | None = None,
    types: Collection[str] | None = None,
) -> list[pa.RecordBatch]:
    """Return the records of all types, or of the named types, in the order of their offsets.

    The column ``json`` takes most of the time. Raises what ``typed_batches`` raises.
    """
    schema = _selected(RECORDS_SCHEMA, columns)

    def batch_of(rows: _Rows) -> pa.RecordBatch:
        own: dict[str, pa.Array] = {}
        if "type" in schema.names:
            own["type"] = pa.array([rows.record_class.NAME] * len(rows.offsets), pa.string())
        if "json" in schema.names:
            own["json"] = rows.json()
        return _assemble(schema, rows, log, own)

    if types is None:
        return _in_order(page, schema, log, batch_of, None, _control(page))
    api_keys = frozenset(key for key, name in METADATA_RECORDS.items() if name in types)
    control = (rows for rows in _control(page) if rows.record_class.NAME in types)
    return _in_order(page, schema, log, batch_of, api_keys, control)


def corrupt_batch(damage: Damage, columns: Sequence[str] | None = None) -> pa.RecordBatch:
    """Return a row of table ``corrupt``."""
    schema = _selected(CORRUPT_SCHEMA, columns)
    row = {name: getattr(damage, name) for name in schema.names}
    return pa.RecordBatch.from_pylist([row], schema)


@cache
def _fields(record_class: type[Message]) -> dict[str, Field]:
    """Return a type's fields by the names of their columns."""
    return {column_name(field): field for field in record_class.FIELDS}


def _json(record: Message, version: int) -> str:
    return msgspec.json.encode(record.to_json(version)).decode()


def _selected(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    return schema if columns is None else pa.schema([schema.field(name) for name in columns])


def _in_order(
    page: Page,
    schema: pa.Schema,
    log: LogPlace,
    batch_of: Callable[[_Rows], pa.RecordBatch],
    only: frozenset[int] | None,
    others: Iterable[_Rows] = (),
) -> list[pa.RecordBatch]:
    try:
        groups = [(rows.offsets, batch_of(rows)) for rows in _in_columns(page, only)]
    except Malformed:
        groups = [(rows.offsets, batch_of(rows)) for rows in _one_by_one(page, only)]
    groups += [(rows.offsets, batch_of(rows)) for rows in others]
    if _straddles(page, log):
        groups = [_cut(offsets, batch, log) for offsets, batch in groups]
    if len(groups) < 2:
        return [batch for _, batch in groups]
    order = np.argsort(np.concatenate([offsets for offsets, _ in groups]), kind="stable")
    together = pa.Table.from_batches([batch for _, batch in groups], schema)
    sorted_batches: list[pa.RecordBatch] = together.take(pa.array(order)).combine_chunks().to_batches()
    return sorted_batches


def _straddles(page: Page, log: LogPlace) -> bool:
    """Whether some of the page's records lie outside the range that is read."""
    headers = [header for _, header in (*page.batches, *page.control_batches)]
    if log.snapshot is not None or not headers:
        return False
    is_before = min(header.base_offset for header in headers) < log.start_offset
    return is_before or (
        log.end_offset is not None and max(header.last_offset for header in headers) >= log.end_offset
    )


def _cut(offsets: Any, batch: pa.RecordBatch, log: LogPlace) -> tuple[Any, pa.RecordBatch]:
    wanted = offsets >= log.start_offset
    if log.end_offset is not None:
        wanted &= offsets < log.end_offset
    return offsets[wanted], batch.filter(pa.array(wanted))


def _in_columns(page: Page, only: frozenset[int] | None) -> Iterator[_Rows]:
    for kind in page.kinds:
        if only is None or kind.api_key in only:
            yield _rows(page, kind)


def _rows(page: Page, kind: Kind) -> _Rows:
    try:
        record_class = metadata_record_class(kind.api_key)
    except KeyError:
        raise Malformed(f"there is no record {kind.api_key}") from None
    if not record_class.MIN_VERSION <= kind.version <= record_class.MAX_VERSION:
        raise Malformed(f"{record_class.NAME} has no version {kind.version}")

    rows = slice(None) if len(kind.rows) == len(page.offsets) else kind.rows
    place = page.offsets[rows], page.epochs[rows], page.timestamps_ms[rows]
    if not is_readable(record_class, kind.version):
        data = page.chunk.data
        records = [
            _decoded(record_class, data[start:end], kind.version)
            for start, end in zip(kind.starts.tolist(), kind.ends.tolist(), strict=True)
        ]
        return _of_messages(kind.version, records, place)
    table = find_fields(record_class, kind.version, page.chunk, kind.starts, kind.ends)

    def column(field: Field) -> pa.Array:
        return field_column(table, field)

    def json() -> pa.Array:
        return json_column(record_class, kind.version, column, table.row_count)

    return _Rows(record_class, kind.version, *place, column, json)


def _of_messages(version: int, messages: Sequence[Message], place: tuple[Any, Any, Any]) -> _Rows:
    return _Rows(
        type(messages[0]),
        version,
        *place,
        lambda field: decoded_column(messages, field),
        lambda: pa.array([_json(message, version) for message in messages], pa.string()),
    )


def _one_by_one(page: Page, only: frozenset[int] | None) -> Iterator[_Rows]:
    """Decode the records one by one, for a page with unusual records. A malformed record raises its own
    error."""
    found: dict[tuple[int, int], list[tuple[int, int, int, Message]]] = {}
    for header, record in _records(page, page.batches):
        message, version = decode_metadata_record(record.value)
        if only is None or message.API_KEY in only:
            row = record.offset, header.leader_epoch, header.base_timestamp, message
            found.setdefault((message.API_KEY, version), []).append(row)
    for (_, version), rows in found.items():
        yield _decoded_rows(version, rows)


def _decoded(record_class: type[Message], data: bytes, version: int) -> Message:
    record, end = record_class.decode_from(data, version, 0)
    if end != len(data):
        raise Malformed(f"a {record_class.NAME} that doesn't end where its fields do")
    return record


def _control(page: Page) -> Iterator[_Rows]:
    """Decode the control records, of which there are few."""
    found: dict[type[Message], list[tuple[int, int, int, Message]]] = {}
    for header, record in _records(page, page.control_batches):
        message = decode_control_record(record)
        row = record.offset, header.leader_epoch, header.base_timestamp, message
        found.setdefault(type(message), []).append(row)
    for rows in found.values():
        yield _decoded_rows(CONTROL_RECORD_VERSION, rows)


def _records(page: Page, batches: Iterable[tuple[int, BatchHeader]]) -> Iterator[tuple[BatchHeader, Record]]:
    for position, header in batches:
        data = page.chunk.data[position : position + header.size_bytes]
        for record in iter_records(Batch(header, data)):
            yield header, record


def _decoded_rows(version: int, rows: list[tuple[int, int, int, Message]]) -> _Rows:
    offsets, epochs, timestamps_ms, messages = zip(*rows, strict=True)
    place = np.array(offsets, np.int64), np.array(epochs, np.int64), np.array(timestamps_ms, np.int64)
    return _of_messages(version, messages, place)


def _assemble(schema: pa.Schema, rows: _Rows, log: LogPlace, own: dict[str, pa.Array]) -> pa.RecordBatch:
    count = len(rows.offsets)
    arrays = [own[name] if name in own else _PLACE[name](rows, log, count) for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _offsets(rows: _Rows, log: LogPlace, count: int) -> pa.Array:
    if log.snapshot is not None:
        return same_in_all(log.snapshot.end_offset - 1, pa.int64(), count)
    return number_column(rows.offsets, pa.int64())


def _epochs(rows: _Rows, log: LogPlace, count: int) -> pa.Array:
    if log.snapshot is not None:
        return same_in_all(log.snapshot.epoch, pa.int32(), count)
    return number_column(rows.epochs.astype(np.int32), pa.int32())


def _timestamps(rows: _Rows, log: LogPlace, count: int) -> pa.Array:
    if log.snapshot is None:
        return number_column(rows.timestamps_ms * 1000, _TIMESTAMP)
    if log.snapshot.timestamp_ms is None:
        return same_in_all(None, _TIMESTAMP, count)
    return number_column(np.full(count, log.snapshot.timestamp_ms * 1000), _TIMESTAMP)


def _committed(rows: _Rows, log: LogPlace, count: int) -> pa.Array:
    if log.snapshot is not None:
        return same_in_all(True, pa.bool_(), count)
    if log.committed_end_offset is None or not count:
        return same_in_all(None, pa.bool_(), count)
    committed = rows.offsets < log.committed_end_offset
    if committed.all():
        return same_in_all(True, pa.bool_(), count)
    return pa.array(committed, pa.bool_(), mask=~committed)


_PLACE: Final[dict[str, Callable[[_Rows, LogPlace, int], pa.Array]]] = {
    "cluster": lambda rows, log, count: same_in_all(log.cluster, pa.string(), count),
    "offset": _offsets,
    "epoch": _epochs,
    "timestamp": _timestamps,
    "committed": _committed,
    "in_snapshot": lambda rows, log, count: same_in_all(log.snapshot is not None, pa.bool_(), count),
    "version": lambda rows, log, count: same_in_all(rows.version, pa.int16(), count),
}
