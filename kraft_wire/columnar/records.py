"""Where the records of whole batches lie.

As ``kraft_wire.log.record``: no attributes, no timestamp of their own, no headers, consecutive offsets, and
in data batches no keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kraft_wire.columnar.gather import Chunk, Malformed
from kraft_wire.log.batch import HEADER_SIZE_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kraft_wire.columnar.gather import Positions
    from kraft_wire.log.batch import BatchHeader

_STREAK: Final = 4
"""After so many records of one size it is worth looking for a run of them."""
_MAX_RUN: Final = 1024
_MAX_VARINT_BYTES: Final = 5
_NO_KEY: Final = 1


class Records(msgspec.Struct, frozen=True):
    """The data records of a chunk. ``batches`` says in which of the batches each is."""

    value_starts: Positions
    value_ends: Positions
    offset_deltas: Positions
    batches: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.value_starts)


def find_records(chunk: Chunk, batches: Sequence[tuple[int, BatchHeader]]) -> Records:
    """The records of data batches, given by their positions and headers. Raises Malformed."""
    begin: list[int] = []
    counts = []
    for position, header in batches:
        before = len(begin)
        _walk(chunk.data, position + HEADER_SIZE_BYTES, position + header.size_bytes, begin)
        counts.append(len(begin) - before)
        if counts[-1] != header.record_count:
            raise Malformed(f"a batch of {header.record_count} records that holds {counts[-1]}")
    begin.append(0)
    starts = np.array(begin, np.int64)
    try:
        return _take_apart(chunk, starts, np.array(counts, np.int64), _ends(batches))
    except IndexError:
        raise Malformed("a record runs over the end of the chunk") from None


def _ends(batches: Sequence[tuple[int, BatchHeader]]) -> Positions:
    return np.array([position + header.size_bytes for position, header in batches], np.int64)


def _walk(data: bytes, position: int, end: int, begin: list[int]) -> None:
    """Append where each record begins, by following their lengths. What the rest of a record says is looked
    at later, for all of them at once."""
    found = begin.append
    last_distance = streak = 0
    while position < end:
        found(position)
        distance = data[position]
        if distance < 0x80:
            distance = (distance >> 1) + 1
        else:
            high = data[position + 1]
            if high < 0x80:
                distance = ((distance & 0x7F | high << 7) >> 1) + 2
            else:
                distance = _long_distance(data, position)
        position += distance
        if distance != last_distance:
            last_distance, streak = distance, 0
        elif streak < _STREAK:
            streak += 1
        else:
            length = _run_length(data, position - distance, distance, (end - position) // distance)
            begin.extend(range(position, position + length * distance, distance))
            position += length * distance
            streak = 0
    if position != end:
        raise Malformed(f"a record that ends at {position} in a batch that ends at {end}")


def _long_distance(data: bytes, position: int) -> int:
    length = 0
    for index in range(_MAX_VARINT_BYTES):
        byte = data[position + index]
        length |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return index + 1 + (length >> 1)
    raise Malformed(f"the length of the record at {position} has more than five bytes")


def _run_length(data: bytes, position: int, distance: int, most: int) -> int:
    """How many records behind the one at ``position`` begin with the same length, and so have its size."""
    width = 1 if data[position] < 0x80 else 2 if data[position + 1] < 0x80 else _MAX_VARINT_BYTES
    most = min(most, _MAX_RUN)
    length = most
    for index in range(position, position + width):
        column = data[index + distance : index + most * distance + 1 : distance]
        length = min(length, len(column) - len(column.lstrip(data[index : index + 1])))
    return length


def _take_apart(chunk: Chunk, begin: Positions, counts: Positions, batch_ends: Positions) -> Records:
    firsts = np.cumsum(counts) - counts
    end = begin[1:].copy()
    end[firsts + counts - 1] = batch_ends
    begin = begin[:-1]
    deltas = np.arange(len(begin)) - np.repeat(firsts, counts)
    record_lengths, position = chunk.uvarints(begin)
    if (record_lengths & 1).any():
        raise Malformed("a record of negative length")
    if chunk.numbers("u2", position).any():
        raise Malformed("a record with attributes, or a timestamp of its own")
    offset_deltas, position = chunk.uvarints(position + 2)
    if (offset_deltas != 2 * deltas).any():
        raise Malformed("a record whose offset doesn't follow the one before")
    if (chunk.bytes[position] != _NO_KEY).any():
        raise Malformed("a record with a key")
    lengths, position = chunk.uvarints(position + 1)
    value_ends = position + (lengths >> 1)
    if (lengths & 1).any() or (value_ends + 1 != end).any() or chunk.bytes[value_ends].any():
        raise Malformed("a record that is longer than its value")
    return Records(position, value_ends, deltas, np.repeat(np.arange(len(counts)), counts))
