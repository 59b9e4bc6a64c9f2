"""Find the records of whole batches.

Records are as in ``kraft_wire.log.record``: no attributes, no timestamp of their own, no headers, consecutive
offsets, and no keys in data batches.
"""

from __future__ import annotations

import sys
from array import array
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kraft_wire.columnar.gather import Chunk, Malformed
from kraft_wire.log.batch import HEADER_SIZE_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kraft_wire.columnar.gather import Bytes, Positions
    from kraft_wire.log.batch import BatchHeader

_STREAK: Final = 4
"""After so many records of one size, a longer run of that size is looked for."""
_MAX_RUN: Final = 1024
_MAX_VARINT_BYTES: Final = 5
_NO_KEY: Final = 1
_LONG_DELTA: Final = 64
"""From this offset delta on, deltas take two bytes (up to 8,191), by which records can be recognised."""
_WORTH_GUESSING: Final = 3 * _LONG_DELTA
"""Batches of fewer records are walked record by record."""
_LENGTH_BYTES: Final = 2
"""The known first bytes of a record are compared together with this many bytes before them, which always
exist."""
_USUAL_RECORDS: Final = 1 << 13
_MOST_RECORDS: Final = 1 << 20
"""In a batch of this many records no offset delta takes more than three bytes."""


class Records(msgspec.Struct, frozen=True):
    """The data records of a chunk. ``counts`` is the number of records in each batch."""

    value_starts: Positions
    value_ends: Positions
    offset_deltas: Positions
    counts: Positions

    def __len__(self) -> int:
        return len(self.value_starts)


def find_records(chunk: Chunk, batches: Sequence[tuple[int, BatchHeader]]) -> Records:
    """Find the records of data batches, given by their positions and headers. Raises Malformed."""
    with suppress(Malformed, IndexError):  # tried again without guessing
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
            left = range(len(begin) - before, header.record_count)
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
    """Append the beginning of each record, by following the records' lengths; returns where the next one
    begins.

    A run of records of one size takes one step. The contents of all records are checked later, at once.
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


def _guess(chunk: Chunk, position: int, end: int, begin: array[int], deltas: range) -> int:
    """Append where the records with these offset deltas seem to begin, if as many places look like a record.

    All deltas must be long. Such a record has no attributes, no timestamp, a delta of two bytes, and no key.
    Taking the records apart later shows whether the guess was right. Returns where the next record would
    begin.
    """
    octets = chunk.bytes[position:end]
    zero = octets == 0
    seems = zero[:-4] & zero[1:-3]
    seems &= octets[2:-2] > 0x7F
    seems &= octets[4:] == _NO_KEY
    attributes = seems.nonzero()[0]
    if len(attributes) > len(deltas):
        attributes = _in_turn(octets, attributes, deltas)
    if len(attributes) != len(deltas):
        return position
    # The length before it has one byte if a record ends before that byte, with a header count of 0.
    starts = attributes + (position - 2)
    starts += chunk.bytes[starts] == 0
    begin.frombytes(starts.tobytes())
    return end


def _in_turn(octets: Bytes, attributes: Positions, deltas: range) -> Positions:
    """Leave out places that only look like a record: those whose offset delta can't be the next one there."""
    low, high = octets[attributes + 2].astype(np.int64), octets[attributes + 3].astype(np.int64)
    late = (low & 0x7F | high << 7) // 2 - deltas.start - np.arange(len(attributes))
    return attributes[(late <= 0) & (late >= len(deltas) - len(attributes))]


def _long_distance(data: bytes, position: int) -> int:
    length = 0
    for index in range(_MAX_VARINT_BYTES):
        byte = data[position + index]
        length |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return index + 1 + (length >> 1)
    raise Malformed(f"the length of the record at {position} has more than five bytes")


def _run_length(data: bytes, position: int, distance: int, most: int) -> int:
    """Return how many records after the one at ``position`` begin with the same length, and so have its
    size."""
    width = 1 if data[position] < 0x80 else 2 if data[position + 1] < 0x80 else _MAX_VARINT_BYTES
    most = min(most, _MAX_RUN)
    length = most
    for index in range(position, position + width):
        column = data[index + distance : index + most * distance + 1 : distance]
        length = min(length, len(column) - len(column.lstrip(data[index : index + 1])))
    return length


def _take_apart(chunk: Chunk, begin: Positions, counts: Positions, batch_ends: Positions) -> Records:
    if counts.max(initial=0) > _MOST_RECORDS:
        raise Malformed("more records in a batch than are looked at in columns")
    firsts = np.cumsum(counts) - counts
    end = begin[1:].copy()
    end[firsts + counts - 1] = batch_ends
    begin = begin[:-1]
    deltas = np.arange(len(begin)) - np.repeat(firsts, counts)
    record_lengths, position = chunk.uvarints(begin)
    if (record_lengths & 1).any() or (position + (record_lengths >> 1) != end).any():
        raise Malformed("a record that isn't as long as it says")
    due = _beginnings(_USUAL_RECORDS if counts.max(initial=0) <= _USUAL_RECORDS else _MOST_RECORDS)
    differ = chunk.words(position - _LENGTH_BYTES) ^ due.words.take(deltas)
    if (differ & due.masks.take(deltas)).any():
        raise Malformed("a record with attributes, a timestamp, a key, or another offset than is due")
    lengths, position = chunk.uvarints(position + due.sizes_bytes.take(deltas))
    value_ends = position + (lengths >> 1)
    if (lengths & 1).any() or (value_ends + 1 != end).any() or chunk.bytes[value_ends].any():
        raise Malformed("a record that is longer than its value")
    return Records(position, value_ends, deltas, counts)


class _Beginnings(msgspec.Struct, frozen=True):
    """The bytes between a record's length and its value's length, by offset delta: no attributes, no
    timestamp, the delta, no key. Words are little-endian and begin with the last bytes of the record's
    length; masks leave out the bytes that aren't known."""

    words: NDArray[np.uint64]
    masks: NDArray[np.uint64]
    sizes_bytes: Positions


@cache
def _beginnings(count: int) -> _Beginnings:
    doubled = np.arange(count) << 1
    width = 1 + (doubled >= 1 << 7) + (doubled >= 1 << 14)
    delta = doubled & 0x7F | (doubled >> 7 & 0x7F) << 8 | (doubled >> 14) << 16
    delta |= np.array([0, 0x80, 0x8080])[width - 1]
    known_bytes = _LENGTH_BYTES + width + 1
    words = (delta | _NO_KEY << 8 * width).astype(np.uint64) << np.uint64(32)
    masks = ((1 << 8 * known_bytes) - 1).astype(np.uint64) << np.uint64(8 * _LENGTH_BYTES)
    return _Beginnings(words, masks, known_bytes)
