"""Build and read the sparse indexes of a segment, in the layout of Kafka's OffsetIndex and TimeIndex.

    .index      last offset of a batch, less the segment's base offset, i32 | the batch's position i32
    .timeindex  largest timestamp so far i64 | last offset of the batch that has it, less the base offset, i32

A batch gets an entry when more than 4,096 bytes lie between it and the last batch that has one. The time
index of a closed segment ends with the segment's largest timestamp. Kafka pads both files with zeros while a
segment is active.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from struct import Struct

INTERVAL_BYTES = 4096
OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")

_NO_TIMESTAMP = -1


class SegmentIndex:
    """Both indexes of one segment, in memory. Add every batch, in order."""

    __slots__ = (
        "_last_offset",
        "_last_positions",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_offsets",
        "_times",
        "base_offset",
    )

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._offsets = array("q")
        self._last_positions = array("q")
        self._times: list[tuple[int, int, int]] = []  # timestamp, its offset, the last offset seen by then
        self._last_offset = base_offset - 1
        self._max_timestamp = _NO_TIMESTAMP
        self._max_timestamp_offset = base_offset

    def __len__(self) -> int:
        """The number of entries in the offset index."""
        return len(self._offsets)

    @property
    def last_indexed_position(self) -> int:
        """The position of the batch of the last entry; 0 without entries."""
        return self._last_positions[-1] if self._last_positions else 0

    def add(self, last_offset: int, max_timestamp: int, position: int) -> tuple[bytes, bytes]:
        """Add the batch at ``position``; returns the bytes that it adds to the two files, usually none."""
        self._last_offset = last_offset
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        if position - self.last_indexed_position <= INTERVAL_BYTES:
            return b"", b""
        self._offsets.append(last_offset)
        self._last_positions.append(position)
        return OFFSET_ENTRY.pack(last_offset - self.base_offset, position), self.close()

    def close(self) -> bytes:
        """Return the entry that the time index needs to end with the largest timestamp; empty if it ends with
        that already."""
        if self._max_timestamp <= (self._times[-1][0] if self._times else _NO_TIMESTAMP):
            return b""
        self._times.append((self._max_timestamp, self._max_timestamp_offset, self._last_offset))
        return TIME_ENTRY.pack(self._max_timestamp, self._max_timestamp_offset - self.base_offset)

    def position_before(self, offset: int) -> int:
        """Return a position where a batch begins, at or before the batch that holds ``offset``."""
        slot = bisect_right(self._offsets, offset) - 1
        return self._last_positions[slot] if slot >= 0 else 0

    def truncate_to(self, offset: int) -> None:
        """Drop the batches that reach ``offset``.

        The largest timestamp is then the one of the last entry: add the batches from
        ``last_indexed_position`` on again.
        """
        keep = bisect_left(self._offsets, offset)
        del self._offsets[keep:], self._last_positions[keep:]
        while self._times and self._times[-1][2] >= offset:
            self._times.pop()
        last = self._times[-1] if self._times else (_NO_TIMESTAMP, self.base_offset, 0)
        self._max_timestamp, self._max_timestamp_offset, _ = last

    def offset_file(self) -> bytes:
        """Return the contents of the .index file."""
        pairs = zip(self._offsets, self._last_positions, strict=True)
        return b"".join(OFFSET_ENTRY.pack(offset - self.base_offset, position) for offset, position in pairs)

    def time_file(self) -> bytes:
        """Return the contents of the .timeindex file."""
        return b"".join(TIME_ENTRY.pack(time, offset - self.base_offset) for time, offset, _ in self._times)


def read_offset_entries(data: bytes) -> list[tuple[int, int]]:
    """Return the (relative offset, position) pairs of an .index file, without its padding."""
    return [pair for pair in OFFSET_ENTRY.iter_unpack(_whole(data, OFFSET_ENTRY.size)) if pair != (0, 0)]


def read_time_entries(data: bytes) -> list[tuple[int, int]]:
    """Return the (timestamp, relative offset) pairs of a .timeindex file, without its padding."""
    return [pair for pair in TIME_ENTRY.iter_unpack(_whole(data, TIME_ENTRY.size)) if pair != (0, 0)]


def _whole(data: bytes, entry_size: int) -> bytes:
    return data[: len(data) // entry_size * entry_size]
