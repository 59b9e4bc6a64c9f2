"""Write records of equal length as a matrix of bytes, one record in each row.

The records of one shape have equal lengths and differ only in numbers at the same places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from kraft_wire.protocol.varint import varint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kraft_wire.columnar.gather import Bytes, Positions

DELTA_LIMITS: Final = (64, 8192, 1 << 20)
"""From these offset deltas on, a delta takes one byte more."""


def framed(fields: Sequence[bytes | Bytes], deltas: Positions, delta_bytes: int) -> Bytes:
    """Return the records whose values consist of these fields, as they stand in a batch.

    A field of plain bytes is the same in all records; a matrix has that of one record in each row. ``deltas``
    are the offset deltas, each of which takes ``delta_bytes``.
    """
    value_size = sum(map(_width, fields))
    value_length = varint(value_size)
    size = 3 + delta_bytes + len(value_length) + value_size + 1
    pieces: list[bytes | Bytes] = [
        varint(size) + b"\x00\x00",
        _varints(deltas, delta_bytes),
        b"\x01" + value_length,
        *fields,
        b"\x00",
    ]
    return _joined(pieces, len(deltas))


def delta_spans(first_delta: int, count: int) -> Iterator[tuple[slice, int]]:
    """Return the spans of ``count`` records whose offset deltas take equally many bytes, and how many."""
    start = 0
    for delta_bytes, limit in enumerate((*DELTA_LIMITS, first_delta + count), 1):
        end = min(max(limit - first_delta, start), count)
        if end > start:
            yield slice(start, end), delta_bytes
        start = end


def big_endian(numbers: NDArray[np.int32] | NDArray[np.int8], code: str) -> Bytes:
    """Return numbers, one or several a row, in a format such as ">i4"."""
    return np.ascontiguousarray(numbers, code).view(np.uint8).reshape(len(numbers), -1)


def _width(field: bytes | Bytes) -> int:
    return len(field) if isinstance(field, bytes) else int(field.shape[1])


def _varints(numbers: Positions, size: int) -> Bytes:
    """Return zigzag varints of one size, one in each row."""
    matrix = np.empty((len(numbers), size), np.uint8)
    for place in range(size):
        matrix[:, place] = (numbers << 1 >> 7 * place) & 0x7F | (0x80 if place < size - 1 else 0)
    return matrix


def _joined(pieces: list[bytes | Bytes], count: int) -> Bytes:
    matrix = np.empty((count, sum(map(_width, pieces))), np.uint8)
    place = 0
    for piece in pieces:
        end = place + _width(piece)
        matrix[:, place:end] = np.frombuffer(piece, np.uint8) if isinstance(piece, bytes) else piece
        place = end
    return matrix
