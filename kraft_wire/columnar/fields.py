"""Find the fields of many records of one type and version, by the field table of the generated class.

Finding fields yields positions; the values of a column are gathered when the column is asked for.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from kraft_wire.columnar.gather import Chunk, Malformed
from kraft_wire.protocol.schema import Field, Structure, defaults_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from kraft_wire.columnar.gather import Positions

    Mask = NDArray[np.bool_]

_NUMBERS: Final = {
    "bool": "i1",
    "int8": "i1",
    "int16": "i2",
    "uint16": "u2",
    "int32": "i4",
    "uint32": "u4",
    "int64": "i8",
    "float64": "f8",
}
_SIZES: Final = {**{kind: int(code[1]) for kind, code in _NUMBERS.items()}, "uuid": 16}
_TEXTS: Final = ("string", "bytes")
_MAX_LENGTH: Final = 2**31 - 1
_NOTHING: Final = np.empty(0, np.uint8)


class Unreadable(TypeError):
    """A type of record with fields that can't be read in columns: arrays of structs or of strings."""


class Ragged(msgspec.Struct, frozen=True):
    """Lists or texts in one array: row r is ``values[offsets[r] : offsets[r + 1]]``. ``valid`` marks the rows
    that are not null; None if no row is null."""

    values: NDArray[Any]
    offsets: Positions
    valid: Mask | None


class _Spot(msgspec.Struct, frozen=True):
    """The place of a field: ``shift`` bytes after ``at``, in all rows or in those of ``rows``. ``lengths``
    counts elements, as one number for all rows or one for each; -1 is null."""

    at: Positions
    shift: int
    lengths: Positions | int = 0
    rows: Positions | None = None


class Table(msgspec.Struct):
    """Records of one type and version. Rows are in the order of the log."""

    record_class: type[Structure]
    chunk: Chunk
    row_count: int
    spots: dict[str, list[_Spot]]

    def is_default(self, name: str) -> bool:
        """Whether no row holds the field, so that all have its default."""
        return name not in self.spots

    def is_empty(self, name: str) -> bool:
        """Whether it is known that this array, or this text, is empty in every row."""
        spots = self.spots.get(name, [])
        return all(isinstance(spot.lengths, int) and spot.lengths <= 0 for spot in spots)

    def numbers(self, name: str) -> NDArray[Any]:
        """Return a column of numbers in the machine's byte order; numpy's bool for bool."""
        field, default = self._field(name)
        code = _NUMBERS[field.kind]
        dtype = np.bool_ if field.kind == "bool" else np.dtype(code)
        spots = self.spots.get(name, [])
        if len(spots) == 1 and spots[0].rows is None:
            return self.chunk.numbers(code, spots[0].at, spots[0].shift).astype(dtype, copy=False)
        values = np.full(self.row_count, default, dtype)
        for spot in spots:
            values[spot.rows] = self.chunk.numbers(code, spot.at, spot.shift)
        return values

    def uuids(self, name: str) -> NDArray[np.uint8]:
        """Return a column of ids, 16 bytes for each row."""
        _, default = self._field(name)
        spots = self.spots.get(name, [])
        if len(spots) == 1 and spots[0].rows is None:
            return self.chunk.fixed(16, spots[0].at, spots[0].shift)
        values = np.tile(np.frombuffer(bytes(default), np.uint8), (self.row_count, 1))
        for spot in spots:
            values[spot.rows] = self.chunk.fixed(16, spot.at, spot.shift)
        return values

    def ragged(self, name: str) -> Ragged:
        """Return a column of arrays of numbers or ids, of strings (UTF-8) or of bytes. Raises Malformed for
        strings that aren't UTF-8."""
        field, default = self._field(name)
        spots = self.spots.get(name, [])
        if len(spots) == 1 and spots[0].rows is None and isinstance(spots[0].lengths, int):
            found = self._of_one_length(field, spots[0], spots[0].lengths)
        else:
            found = self._of_any_length(field, spots, -1 if default is None else 0)
        if field.kind == "string":
            _check_utf8(found.values, found.offsets)
        return found

    def _of_one_length(self, field: Field, spot: _Spot, length: int) -> Ragged:
        each = max(0, length)
        offsets = np.arange(self.row_count + 1) * each
        pieces = self.chunk.fixed(each * _unit(field), spot.at, spot.shift) if each else _NOTHING
        valid = None if length >= 0 else np.zeros(self.row_count, np.bool_)
        return Ragged(_elements(field, pieces.reshape(-1)), offsets, valid)

    def _of_any_length(self, field: Field, spots: list[_Spot], default: int) -> Ragged:
        at, lengths = self._in_all_rows(spots, default)
        valid = lengths >= 0
        all_valid = bool(valid.all())
        if not all_valid:
            lengths = np.maximum(lengths, 0)
        offsets = np.zeros(self.row_count + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        values = _elements(field, self.chunk.pieces(at, lengths, offsets, _unit(field)))
        return Ragged(values, offsets, None if all_valid else valid)

    def _in_all_rows(self, spots: list[_Spot], default: int) -> tuple[Positions, Positions]:
        if len(spots) == 1 and spots[0].rows is None and not isinstance(spots[0].lengths, int):
            return spots[0].at + spots[0].shift, spots[0].lengths
        at = np.zeros(self.row_count, np.int64)
        lengths = np.full(self.row_count, default, np.int64)
        for spot in spots:
            where: Any = slice(None) if spot.rows is None else spot.rows
            at[where] = spot.at + spot.shift
            lengths[where] = spot.lengths
        return at, lengths

    def _field(self, name: str) -> tuple[Field, Any]:
        return _fields(self.record_class)[name], getattr(defaults_of(self.record_class), name)


@cache
def is_readable(record_class: type[Structure], version: int) -> bool:
    """Whether ``find_fields`` reads records of this type and version."""
    flexible = version >= record_class.FLEXIBLE_FROM
    return flexible and all(_is_readable(field) for field in record_class.FIELDS if field.is_present(version))


def find_fields(
    record_class: type[Structure], version: int, chunk: Chunk, starts: Positions, ends: Positions
) -> Table:
    """Find the fields of the records between ``starts`` and ``ends``. Raises Malformed, Unreadable."""
    if not is_readable(record_class, version):
        raise Unreadable(f"{record_class.__name__} version {version}")
    finder = _Finder(chunk)
    try:
        at, shift = finder.untagged(_untagged(record_class, version), starts)
        after = finder.tagged(_tagged(record_class, version), _misplaced(record_class, version), at, shift)
    except IndexError:
        raise Malformed("a record runs over the end of the chunk") from None
    if (after != ends).any():
        raise Malformed(f"a {record_class.__name__} that doesn't end where its fields do")
    return Table(record_class, chunk, len(starts), finder.spots)


class _Finder:
    """A search for fields, one after the other, in all records at once.

    Fields of fixed size, and lists that have the same length in all records, only shift the fields after
    them: no positions are computed until there is another field.
    """

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self.spots: dict[str, list[_Spot]] = {}

    def untagged(self, fields: Iterable[tuple[Field, bool]], at: Positions) -> tuple[Positions, int]:
        shift = 0
        for field, nullable in fields:
            at, shift = self._find(field, nullable, at, shift, None)
        return at, shift

    def tagged(
        self, known: dict[int, tuple[Field, bool]], misplaced: list[int], at: Positions, shift: int
    ) -> Positions:
        if self._chunk.same_byte(at, shift) == 0:
            return at + (shift + 1)
        counts, at = self._chunk.uvarints(at + shift)
        most = int(counts.max(initial=0))
        if most > len(self._chunk.data):
            raise Malformed("more tagged fields than there are bytes")
        last = np.full(len(at), -1, np.int64)
        for index in range(most):
            rows = _rows_where(counts > index)
            where: Any = slice(None) if rows is None else rows
            tags, begin = self._chunk.uvarints(at[where])
            sizes, begin = self._chunk.uvarints(begin)
            if (tags <= last[where]).any():
                raise Malformed("tagged fields out of order")
            if misplaced and np.isin(tags, misplaced).any():
                raise Malformed("a tagged field that this version doesn't have")
            last[where] = tags
            at[where] = begin + sizes
            self._find_known(known, tags, begin, sizes, rows)
        return at

    def _find_known(
        self,
        known: dict[int, tuple[Field, bool]],
        tags: Positions,
        begin: Positions,
        sizes: Positions,
        rows: Positions | None,
    ) -> None:
        left = len(tags)
        for tag in sorted(known):
            here = _rows_where(tags == tag)
            if here is None:
                self._find_tagged(known[tag], begin, sizes, rows)
                return
            if len(here):
                of_all = here if rows is None else rows[here]
                self._find_tagged(known[tag], begin[here], sizes[here], of_all)
            left -= len(here)
            if left == 0:
                return

    def _find_tagged(
        self, known: tuple[Field, bool], begin: Positions, sizes: Positions, rows: Positions | None
    ) -> None:
        after, shift = self._find(*known, begin, 0, rows)
        if (after + shift != begin + sizes).any():
            raise Malformed(f"tagged field {known[0].name} that doesn't end where its size says")

    def _find(
        self, field: Field, nullable: bool, at: Positions, shift: int, rows: Positions | None
    ) -> tuple[Positions, int]:
        """Add the place of a field; returns the place after it."""
        lengths: Positions | int = 0
        unit = _unit(field)
        if field.array or field.kind in _TEXTS:
            same = self._chunk.same_byte(at, shift)
            if same is not None and same < 0x80:
                lengths, shift = same - 1, shift + 1
                _check_lengths(field, nullable, lengths, lengths)
                after = at, shift + unit * max(0, lengths)
            else:
                compact, at = self._chunk.uvarints(at + shift)
                lengths, shift = compact - 1, 0
                _check_lengths(field, nullable, lengths.min(initial=0), lengths.max(initial=0))
                after = at + unit * np.maximum(lengths, 0), 0
        else:
            after = at, shift + unit
        self.spots.setdefault(field.name, []).append(_Spot(at, shift, lengths, rows))
        return after


def _rows_where(mask: Mask) -> Positions | None:
    """Return the rows of a mask; None for all rows."""
    return None if mask.all() else np.flatnonzero(mask)


def _check_lengths(field: Field, nullable: bool, least: int, most: int) -> None:
    if least < 0 and not nullable:
        raise Malformed(f"{field.name} is null")
    if most > _MAX_LENGTH:
        raise Malformed(f"{field.name} has a negative length")


def _unit(field: Field) -> int:
    """Return the size in bytes of a value, or of one element."""
    return _SIZES.get(field.kind, 1)


def _elements(field: Field, octets: NDArray[np.uint8]) -> NDArray[Any]:
    if not field.array:
        return octets
    if field.kind == "uuid":
        return octets.reshape(-1, 16)
    code = _NUMBERS[field.kind]
    return octets.view(np.dtype(code).newbyteorder(">")).astype(code)


def _is_readable(field: Field) -> bool:
    return field.kind in _SIZES or (field.kind in _TEXTS and not field.array)


@cache
def _fields(record_class: type[Structure]) -> dict[str, Field]:
    return {field.name: field for field in record_class.FIELDS}


@cache
def _untagged(record_class: type[Structure], version: int) -> list[tuple[Field, bool]]:
    return [
        (field, field.is_nullable(version))
        for field in record_class.FIELDS
        if field.is_present(version) and not field.is_tagged(version)
    ]


@cache
def _tagged(record_class: type[Structure], version: int) -> dict[int, tuple[Field, bool]]:
    return {
        field.tag: (field, field.is_nullable(version))
        for field in record_class.FIELDS
        if field.is_tagged(version)
    }


@cache
def _misplaced(record_class: type[Structure], version: int) -> list[int]:
    """Return the tags of fields that only other versions have."""
    tags = {field.tag for field in record_class.FIELDS if field.tag >= 0}
    return sorted(tags - _tagged(record_class, version).keys())


def _check_utf8(values: NDArray[np.uint8], offsets: Positions) -> None:
    text = values.tobytes()
    if text.isascii():
        return
    try:
        text.decode()
    except UnicodeDecodeError:
        raise Malformed("a string that is not UTF-8") from None
    begins = offsets[:-1][offsets[:-1] < len(values)]
    if ((values[begins] & 0xC0) == 0x80).any():
        raise Malformed("a string that is not UTF-8")
