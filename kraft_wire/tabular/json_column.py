"""Encode records in columns as JSON, without an object for each record.

The text is exactly that of ``Message.to_json`` and msgspec: fields in their order, tagged fields with their
default left out. It takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from kraft_wire.protocol.schema import Field, Structure, defaults_of

_TO_ESCAPE: Final = r'["\\\x00-\x1f]'
_NULL: Final = pa.scalar("null")
_NOTHING: Final = pa.scalar("")


def json_column(
    record_class: type[Structure], version: int, column: Callable[[Field], pa.Array], row_count: int
) -> pa.Array:
    """Return a column of JSON. ``column`` returns a field's values in ``row_count`` records, as
    ``field_column`` does."""
    defaults = defaults_of(record_class)
    pieces = [
        _piece(field, version, column(field), getattr(defaults, field.name))
        for field in record_class.FIELDS
        if field.is_present(version)
    ]
    shown = [piece for piece in pieces if piece is not None]
    if not shown:
        return pa.repeat(pa.scalar("{}"), row_count)
    return _joined("{", pc.utf8_slice_codeunits(_joined(*shown), 1), "}")


def _piece(field: Field, version: int, values: pa.Array, default: Any) -> pa.Array | None:
    """Return a comma, the name, and the value, or nothing in rows that leave the field out; None if all rows
    do."""
    if not field.is_tagged(version):
        return _member(field, values)
    is_left_out = _is_default(field, values, default)
    if pc.all(is_left_out).as_py():
        return None
    return pc.if_else(is_left_out, _NOTHING, _member(field, values))


def _member(field: Field, values: pa.Array) -> pa.Array:
    return _joined(f',"{field.json_name}":', _texts(field, values))


def _is_default(field: Field, values: pa.Array, default: Any) -> pa.Array:
    if default is None:
        return pc.is_null(values)
    if field.array:
        is_default = pc.equal(pc.list_value_length(values), 0)
    else:
        is_default = pc.equal(
            values, pa.scalar(str(default) if field.kind == "uuid" else default, values.type)
        )
    return pc.fill_null(is_default, False)


def _texts(field: Field, values: pa.Array) -> pa.Array:
    if not field.array:
        return pc.fill_null(_scalars(values), _NULL)
    lists = pa.ListArray.from_arrays(values.offsets, _scalars(values.values))
    return pc.if_else(pc.is_null(values), _NULL, _joined("[", pc.binary_join(lists, ","), "]"))


def _scalars(values: pa.Array) -> pa.Array:
    """Return the values as JSON. Nulls stay nulls."""
    is_text = values.type == pa.string()
    if values.type == pa.binary() or (is_text and _needs_escapes(values)):
        return pa.array([_escaped(value) for value in values.to_pylist()], pa.string())
    return _joined('"', values, '"') if is_text else values.cast(pa.string())


def _needs_escapes(texts: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, _TO_ESCAPE)).as_py())


def _escaped(value: str | bytes | None) -> str | None:
    """Return a value as JSON; bytes are encoded as Base64."""
    return None if value is None else msgspec.json.encode(value).decode()


def _joined(*pieces: Any) -> pa.Array:
    return pc.binary_join_element_wise(*pieces, "")
