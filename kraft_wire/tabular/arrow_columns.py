"""Convert decoded columns to Arrow arrays, by handing over buffers, not value by value."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pybase64

from kraft_wire.columnar.fields import Ragged, Table
from kraft_wire.protocol.schema import Field, Structure, defaults_of
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.tabular.arrow_types import NUMBERS, type_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ID_BYTES: Final = 16
_PADDED_ID_BYTES: Final = 18
_TEXT_BYTES: Final = 22
_PADDED_TEXT_BYTES: Final = 24
"""Base64 encodes three bytes as four letters. The last two letters of a padded id encode only padding."""


def field_column(table: Table, field: Field) -> pa.Array:
    """Return one field of a table's records. Raises Malformed for strings that aren't UTF-8."""
    if table.is_default(field.name):
        return _defaults(table, field)
    if not field.array and field.kind in NUMBERS:
        return number_column(table.numbers(field.name), NUMBERS[field.kind])
    if not field.array and field.kind == "uuid":
        return id_column(table.uuids(field.name))
    ragged = table.ragged(field.name)
    if field.array:
        return _lists(ragged, field)
    buffers = [_bitmap(ragged.valid), pa.py_buffer(_offsets(ragged)), pa.py_buffer(ragged.values)]
    return pa.Array.from_buffers(type_of(field), len(ragged.offsets) - 1, buffers)


def number_column(values: NDArray[Any], of_type: pa.DataType) -> pa.Array:
    """Return numbers without nulls; they are not copied if the type has the same width."""
    if of_type.bit_width == values.itemsize * 8:
        return pa.Array.from_buffers(of_type, len(values), [None, pa.py_buffer(values)])
    return pa.array(values, of_type)


def same_in_all(value: Any, of_type: pa.DataType, count: int) -> pa.Array:
    """Return a column with the same value in all rows."""
    return _many(value, of_type, 1 << count.bit_length())[:count]


@lru_cache(64)
def _many(value: Any, of_type: pa.DataType, count: int) -> pa.Array:
    return pa.nulls(count, of_type) if value is None else pa.repeat(pa.scalar(value, of_type), count)


def _defaults(table: Table, field: Field) -> pa.Array:
    default = getattr(defaults_of(table.record_class), field.name)
    plain = () if isinstance(default, (list, tuple)) else _plain(default)
    return same_in_all(plain, type_of(field), table.row_count)


def decoded_column(records: Sequence[Structure], field: Field) -> pa.Array:
    """Return what ``field_column`` returns, for records that the generated class has decoded."""
    return pa.array([_plain(getattr(record, field.name)) for record in records], type_of(field))


def _plain(value: Any) -> Any:
    if isinstance(value, Uuid):
        return str(value)
    if isinstance(value, Structure):
        return {field.name: _plain(getattr(value, field.name)) for field in value.FIELDS}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _lists(ragged: Ragged, field: Field) -> pa.Array:
    if field.kind == "uuid":
        items = id_column(ragged.values)
    else:
        items = number_column(ragged.values, NUMBERS[field.kind])
    buffers = [_bitmap(ragged.valid), pa.py_buffer(_offsets(ragged))]
    return pa.Array.from_buffers(type_of(field), len(ragged.offsets) - 1, buffers, children=[items])


def id_column(raw: NDArray[np.uint8]) -> pa.Array:
    """Return ids as text."""
    count = len(raw)
    padded = np.zeros((count, _PADDED_ID_BYTES), np.uint8)
    _pieces(padded, _ID_BYTES)[:] = _pieces(raw, _ID_BYTES)
    letters = np.frombuffer(pybase64.urlsafe_b64encode(padded.data), np.uint8).reshape(
        count, _PADDED_TEXT_BYTES
    )
    texts = _pieces(letters, _TEXT_BYTES).copy()
    offsets: NDArray[np.int32] = np.arange(count + 1, dtype=np.int32) * _TEXT_BYTES
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(texts)])


def _pieces(rows: NDArray[np.uint8], size_bytes: int) -> NDArray[np.void]:
    """Return the first bytes of each row, as one value."""
    return np.ndarray(len(rows), f"V{size_bytes}", rows, strides=rows.strides[:1])


def _offsets(ragged: Ragged) -> NDArray[np.int32]:
    return ragged.offsets.astype(np.int32)


def _bitmap(valid: NDArray[np.bool_] | None) -> pa.Buffer | None:
    if valid is None:
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
