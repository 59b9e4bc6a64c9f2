"""Reading the same thing at many positions of a chunk of bytes.

A record's fields lie wherever those before them end, so every step takes the positions of all records and
returns those behind what it read. Positions may run beyond a malformed record into the next one: whoever
calls compares where the last field ended with where the record does. IndexError: beyond the chunk.
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
    """At least one of the records isn't what it should be."""


class Chunk:
    """Bytes, and what stands at many positions of them."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.bytes: Bytes = np.frombuffer(data, np.uint8)
        self._views: dict[str, NDArray[Any]] = {}

    def numbers(self, code: str, at: Positions) -> NDArray[Any]:
        """Big-endian numbers; ``code`` is numpy's, such as "i4"."""
        view = self._view(code)
        return view[at].astype(code)

    def fixed(self, size_bytes: int, at: Positions) -> NDArray[Any]:
        """Pieces of one size, one row each."""
        pieces = self._view(f"V{size_bytes}")[at]
        return pieces.view(np.uint8).reshape(len(at), size_bytes)

    def uvarints(self, at: Positions) -> tuple[Positions, Positions]:
        """Unsigned varints of at most five bytes, and where they end. Raises Malformed for a longer one."""
        first = self.bytes[at]
        values = first.astype(np.int64)
        ends = at + 1
        open_rows = np.flatnonzero(first > 0x7F)
        if not len(open_rows):
            return values, ends
        values &= 0x7F
        for index in range(1, _MAX_VARINT_BYTES):
            more = self.bytes[ends[open_rows]]
            values[open_rows] |= (more & 0x7F).astype(np.int64) << 7 * index
            ends[open_rows] += 1
            open_rows = open_rows[more > 0x7F]
            if not len(open_rows):
                return values, ends
        raise Malformed("a varint of more than five bytes")

    def pieces(self, starts: Positions, lengths: Positions, unit: int) -> Bytes:
        """The bytes of ``lengths`` elements of ``unit`` bytes behind each start, in a row. Raises Malformed
        for more than the chunk can hold."""
        total = int(lengths.sum()) * unit
        if total > len(self.data):
            raise Malformed("lengths beyond the end")
        if not total:
            return np.empty(0, np.uint8)
        size = int(lengths[0]) * unit
        if size and (lengths == lengths[0]).all():
            return self.fixed(size, starts).reshape(-1)
        if unit > 1:
            elements = self._spread(starts, lengths, unit)
            return self.fixed(unit, elements).reshape(-1)
        return self.bytes[self._spread(starts, lengths, 1)]

    def _spread(self, starts: Positions, lengths: Positions, unit: int) -> Positions:
        """Where each of the elements is."""
        ends = np.cumsum(lengths)
        first = starts - (ends - lengths) * unit
        return np.repeat(first, lengths) + np.arange(0, int(ends[-1]) * unit, unit)

    def _view(self, code: str) -> NDArray[Any]:
        """The chunk as if a number of this type began at each byte."""
        view = self._views.get(code)
        if view is None:
            dtype = np.dtype(code).newbyteorder(">")
            count = max(0, len(self.data) - dtype.itemsize + 1)
            view = np.ndarray((count,), dtype, self.data, strides=(1,))
            self._views[code] = view
        return view
