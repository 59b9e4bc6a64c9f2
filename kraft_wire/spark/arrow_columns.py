"""From records in columns to Arrow arrays: buffers change hands, values aren't touched one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kraft_wire.columnar.fields import Ragged, Table
from kraft_wire.protocol.schema import Field, Structure
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.spark.arrow_types import NUMBERS, type_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ALPHABET: Final = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8
)
_SHIFTS: Final = np.array([18, 12, 6, 0], np.uint32)
_TEXT_BYTES: Final = 22


def field_column(table: Table, field: Field) -> pa.Array:
    """One field of a table's records. Raises Malformed for strings that aren't UTF-8."""
    if not field.array and field.kind in NUMBERS:
        return pa.array(table.numbers(field.name), NUMBERS[field.kind])
    if not field.array and field.kind == "uuid":
        return _ids(table.uuids(field.name))
    ragged = table.ragged(field.name)
    if field.array:
        return _lists(ragged, field)
    buffers = [_bitmap(ragged.valid), pa.py_buffer(_offsets(ragged)), pa.py_buffer(ragged.values)]
    return pa.Array.from_buffers(type_of(field), len(ragged.offsets) - 1, buffers)


def decoded_column(records: Sequence[Structure], field: Field) -> pa.Array:
    """As ``field_column``, from records that the generated class has decoded."""
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
        items = _ids(ragged.values)
    else:
        items = pa.array(ragged.values, NUMBERS[field.kind])
    buffers = [_bitmap(ragged.valid), pa.py_buffer(_offsets(ragged))]
    return pa.Array.from_buffers(type_of(field), len(ragged.offsets) - 1, buffers, children=[items])


def _ids(raw: NDArray[np.uint8]) -> pa.Array:
    """Ids as text. Most are there many times: each is put into text once."""
    ids = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(raw), [None, pa.py_buffer(raw.reshape(-1))])
    numbered = ids.dictionary_encode()
    different = np.frombuffer(numbered.dictionary.buffers()[1], np.uint8).reshape(-1, 16)
    return id_texts(different[: len(numbered.dictionary)]).take(numbered.indices)


def id_texts(raw: NDArray[np.uint8]) -> pa.Array:
    """What ``str`` makes of each id: URL-safe base64 without padding."""
    padded = np.zeros((len(raw), 18), np.uint32)
    padded[:, :16] = raw
    threes = padded.reshape(-1, 6, 3)
    bits = threes[:, :, 0] << 16 | threes[:, :, 1] << 8 | threes[:, :, 2]
    sixes = bits[:, :, None] >> _SHIFTS & 0x3F
    letters = _ALPHABET[sixes.reshape(-1, 24)][:, :_TEXT_BYTES]
    offsets = np.arange(len(raw) + 1, dtype=np.int32) * _TEXT_BYTES
    text = pa.py_buffer(np.ascontiguousarray(letters).reshape(-1))
    return pa.Array.from_buffers(pa.string(), len(raw), [None, pa.py_buffer(offsets), text])


def _offsets(ragged: Ragged) -> NDArray[np.int32]:
    return ragged.offsets.astype(np.int32)


def _bitmap(valid: NDArray[np.bool_] | None) -> pa.Buffer | None:
    if valid is None:
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
