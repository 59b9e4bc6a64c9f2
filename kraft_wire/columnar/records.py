"""Where the records of whole batches lie.

As ``kraft_wire.log.record``: no attributes, no timestamp of their own, no headers, consecutive offsets, and
in data batches no keys.
"""

from __future__ import annotations

import sys
from array import array
from contextlib import suppress
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
_LONG_DELTA: Final = 64
"""From here on offset deltas take two bytes (up to 8,191): something to recognise records by."""
_WORTH_GUESSING: Final = 3 * _LONG_DELTA
"""Batches of fewer records are walked."""


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
    with suppress(Malformed, IndexError):  # it is found again without guessing
        return _find_records(chunk, batches, _WORTH_GUESSING)
    try:
        return _find_records(chunk, batches, sys.maxsize)
    except IndexError:
        raise Malformed("a record runs over the end of the chunk") from None


def _find_records(chunk: Chunk, batches: Sequence[tuple[int, BatchHeader]], worth_guessing: int) -> Records:
    begin = array("q")
    counts = []
    for position, header in batches:
        before, end = len(begin), position + header.size_bytes
        position += HEADER_SIZE_BYTES
        if header.record_count >= worth_guessing:
            position = _walk(chunk.data, position, end, begin, _LONG_DELTA)
            left = header.record_count - (len(begin) - before)
            if left:
                position = _guess(chunk, position, end, begin, left)
        position = _walk(chunk.data, position, end, begin, header.record_count)
        counts.append(len(begin) - before)
        if position != end or counts[-1] != header.record_count:
            raise Malformed(f"{header.record_count} records that don't end where their batch does")
    begin.append(0)
    starts = np.frombuffer(begin, np.int64)
    return _take_apart(chunk, starts, np.array(counts, np.int64), _ends(batches))


def _ends(batches: Sequence[tuple[int, BatchHeader]]) -> Positions:
    return np.array([position + header.size_bytes for position, header in batches], np.int64)


def _walk(data: bytes, position: int, end: int, begin: array[int], steps: int) -> int:
    """Append where each record begins, by following their lengths; returns where the next one would.

    A run of records of one size is one step. What the rest of a record says is looked at later, for all of
    them at once.
    """
    found = begin.append
    last_distance = streak = 0
    for _ in range(steps):
        if position >= end:
            break
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
            begin.frombytes(np.arange(position, position + length * distance, distance).tobytes())
            position += length * distance
            streak = 0
    return position


def _guess(chunk: Chunk, position: int, end: int, begin: array[int], count: int) -> int:
    """Append where ``count`` records with long offset deltas seem to begin, if so many seem to: each has
    no attributes, no timestamp, a delta of two bytes, and no key. Whether they do, taking them apart tells.

    Returns where the next one would begin.
    """
    octets = chunk.bytes[position:end]
    zero = octets == 0
    seems = zero[:-4] & zero[1:-3]
    seems &= octets[2:-2] > 0x7F
    seems &= octets[4:] == _NO_KEY
    attributes = np.flatnonzero(seems) + position
    if len(attributes) != count:
        return position
    # The length before has one byte if the byte before that is a record's last: its header count.
    starts = attributes - 2 + (chunk.bytes[attributes - 2] == 0)
    begin.frombytes(starts.tobytes())
    return end


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
    if (record_lengths & 1).any() or (position + (record_lengths >> 1) != end).any():
        raise Malformed("a record that isn't as long as it says")
    if (chunk.bytes[position] | chunk.bytes[position + 1]).any():
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
