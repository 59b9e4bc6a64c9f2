"""Encode records in columns as JSON, without an object for each record.

The text is exactly that of ``Message.to_json`` and msgspec: fields in their order, tagged fields with their
default left out. It takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from kraft_wire.protocol.schema import Field, Structure, defaults_of

_TO_ESCAPE: Final = r'["\\\x00-\x1f]'
_NULL: Final = pa.scalar("null")
_NOTHING: Final = pa.scalar("")
_EMPTY: Final = pa.array([], pa.string())


_Part = Any
"""A text that is the same in all rows, or an Array with a text for each row."""


def json_column(
    record_class: type[Structure], version: int, column: Callable[[Field], pa.Array], row_count: int
) -> pa.Array:
    """Return a column of JSON. ``column`` returns a field's values in ``row_count`` records, as
    ``field_column`` does."""
    defaults = defaults_of(record_class)
    parts: list[_Part] = []
    for field in record_class.FIELDS:
        if field.is_present(version):
            parts += _member(field, version, column(field), getattr(defaults, field.name))
    if not parts:
        return pa.repeat(pa.scalar("{}"), row_count)
    if isinstance(parts[0], str):
        return _joined("{" + parts[0].removeprefix(","), *parts[1:], "}")
    return _joined("{", pc.utf8_slice_codeunits(_joined(*parts), 1), "}")


def _member(field: Field, version: int, values: pa.Array, default: Any) -> list[_Part]:
    """Return a comma, the name, and the value, or nothing in rows that leave the field out."""
    if not field.is_tagged(version):
        return _shown(field, values)
    is_left_out = _is_default(field, values, default)
    if pc.all(is_left_out).as_py():
        return []
    return [pc.if_else(is_left_out, _NOTHING, _joined(*_shown(field, values)))]


def _shown(field: Field, values: pa.Array) -> list[_Part]:
    return [f',"{field.json_name}":', *_texts(field, values)]


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


def _texts(field: Field, values: pa.Array) -> list[_Part]:
    """Return the values as JSON, also null."""
    if not values.null_count:
        return _list(values) if field.array else _scalars(values)
    shown = _joined(*(_list(values) if field.array else _scalars(values)))
    return [pc.if_else(pc.is_null(values), _NULL, shown)]


def _list(values: pa.Array) -> list[_Part]:
    items = values.values
    lists = pa.ListArray.from_arrays(values.offsets, _joined(*_scalars(items)) if len(items) else _EMPTY)
    return ["[", pc.binary_join(lists, ","), "]"]


def _scalars(values: pa.Array) -> list[_Part]:
    """Return the values as JSON. Nulls stay nulls."""
    is_text = values.type == pa.string()
    if values.type == pa.binary() or (is_text and _needs_escapes(values)):
        return [pa.array([_escaped(value) for value in values.to_pylist()], pa.string())]
    return ['"', values, '"'] if is_text else [values.cast(pa.string())]


def _needs_escapes(texts: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, _TO_ESCAPE)).as_py())


def _escaped(value: str | bytes | None) -> str | None:
    """Return a value as JSON; bytes are encoded as Base64."""
    return None if value is None else msgspec.json.encode(value).decode()


def _joined(*parts: _Part) -> pa.Array:
    """Return the parts of each row as one text. Each join copies all texts, so there are few."""
    return pc.binary_join_element_wise(*_merged(parts), "")


def _merged(parts: Iterable[_Part]) -> Iterator[_Part]:
    """Put texts together that follow each other and are the same in all rows."""
    for is_same, group in groupby(parts, key=lambda part: isinstance(part, str)):
        if is_same:
            yield "".join(str(part) for part in group)
        else:
            yield from group
