"""Read values at many positions of a chunk of bytes.

A field of a record begins where the field before it ends. So each step takes the positions of all records and
returns the positions after what it read. In a malformed record a position may run into the next record: the
caller must compare the end of the last field with the end of the record. A position beyond the chunk raises
IndexError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Positions = NDArray[np.int64]
    Bytes = NDArray[np.uint8]

_MAX_VARINT_BYTES: Final = 5


class Malformed(ValueError):
    """At least one of the records is malformed."""


class Chunk:
    """Bytes that are read at many positions at once."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.bytes: Bytes = np.frombuffer(data, np.uint8)
        self._views: dict[str, NDArray[Any]] = {}

    def numbers(self, code: str, at: Positions, shift: int = 0) -> NDArray[Any]:
        """Return big-endian numbers that stand ``shift`` bytes after ``at``. ``code`` is numpy's type, such
        as "i4"."""
        view = self._view(code)
        return view[shift:][at].astype(code)

    def words(self, at: Positions) -> NDArray[np.uint64]:
        """Return eight bytes at each position, as a little-endian number."""
        return self._view("u8", "<")[at]

    def fixed(self, size_bytes: int, at: Positions, shift: int = 0) -> NDArray[Any]:
        """Return pieces of one size, one row for each position."""
        pieces = self._view(f"V{size_bytes}")[shift:][at]
        return pieces.view(np.uint8).reshape(len(at), size_bytes)

    def same_byte(self, at: Positions, shift: int) -> int | None:
        """Return the byte that stands at all positions; None if the bytes differ, or if there are no
        positions."""
        octets = self.bytes[shift:][at]
        return int(octets[0]) if len(octets) and (octets == octets[0]).all() else None

    def uvarints(self, at: Positions) -> tuple[Positions, Positions]:
        """Return unsigned varints of at most five bytes, and the positions after them. Raises Malformed for
        longer ones."""
        first = self.bytes[at]
        longer = first > 0x7F
        if not longer.any():
            return first.astype(np.int64), at + 1
        ends = at + longer
        second = self.bytes[ends]
        ends += 1
        second &= -longer.view(np.uint8)  # all bits where there is a second byte
        low = (first & 0x7F).astype(np.uint16)
        low |= (second & 0x7F).astype(np.uint16) << 7
        values = low.astype(np.int64)
        longer = second > 0x7F
        if longer.any():
            self._read_on(values, ends, longer.nonzero()[0])
        return values, ends

    def _read_on(self, values: Positions, ends: Positions, rows: Positions) -> None:
        """Read the third and later bytes of the varints in these rows."""
        for index in range(2, _MAX_VARINT_BYTES):
            if not len(rows):
                return
            more = self.bytes[ends[rows]]
            values[rows] |= (more & 0x7F).astype(np.int64) << 7 * index
            ends[rows] += 1
            rows = rows[more > 0x7F]
        if len(rows):
            raise Malformed("a varint of more than five bytes")

    def pieces(self, starts: Positions, lengths: Positions, offsets: Positions, unit: int) -> Bytes:
        """Return the bytes of all elements in one array: ``lengths`` elements of ``unit`` bytes at each
        start.

        ``offsets`` are the numbers of elements before each start, and the total. Raises Malformed if the
        chunk can't hold so many.
        """
        total = int(offsets[-1]) * unit
        if total > len(self.data):
            raise Malformed("lengths beyond the end")
        if not total:
            return np.empty(0, np.uint8)
        size = int(lengths[0]) * unit
        if size and (lengths == lengths[0]).all():
            return self.fixed(size, starts).reshape(-1)
        elements = np.repeat(starts - offsets[:-1] * unit, lengths) + np.arange(0, total, unit)
        return self.bytes[elements] if unit == 1 else self.fixed(unit, elements).reshape(-1)

    def _view(self, code: str, order: str = ">") -> NDArray[Any]:
        """Return the chunk as if a number of this type began at each byte."""
        view = self._views.get(order + code)
        if view is None:
            dtype = np.dtype(order + code)
            count = max(0, len(self.data) - dtype.itemsize + 1)
            view = np.ndarray((count,), dtype, self.data, strides=(1,))
            self._views[order + code] = view
        return view
