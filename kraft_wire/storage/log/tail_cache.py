"""Cache the end of the log in memory: nearly all fetches of followers and observers are served from it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class TailCache:
    """The last batches appended, about ``limit_bytes`` of them, contiguous up to the log's end."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        self._base_offsets: list[int] = []
        self._last_offsets: list[int] = []
        self._batches: list[bytes] = []

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    def add(self, base_offset: int, last_offset: int, data: bytes) -> None:
        self._base_offsets.append(base_offset)
        self._last_offsets.append(last_offset)
        self._batches.append(data)
        self._size_bytes += len(data)
        if self._size_bytes > 2 * self._limit_bytes:
            self._shed()

    def _shed(self) -> None:
        """Drop half of the cache at once, so that each batch is moved only about once."""
        drop = 0
        while self._size_bytes > self._limit_bytes:
            self._size_bytes -= len(self._batches[drop])
            drop += 1
        del self._base_offsets[:drop], self._last_offsets[:drop], self._batches[:drop]

    def read(self, offset: int, end_offset: int, max_bytes: int) -> bytes | None:
        """Return whole batches from the one that holds ``offset`` on, below ``end_offset``; None if it isn't
        cached."""
        first = bisect_right(self._base_offsets, offset) - 1
        if first < 0 or self._last_offsets[-1] < offset:
            return None
        stop = bisect_left(self._last_offsets, end_offset, first)
        size_bytes = 0
        for number in range(first, stop):
            size_bytes += len(self._batches[number])
            if size_bytes > max_bytes and number > first:
                stop = number
                break
        return b"".join(self._batches[first:stop])

    def truncate_to(self, end_offset: int) -> None:
        """Drop the batches at ``end_offset`` and after it."""
        keep = bisect_left(self._base_offsets, end_offset)
        self._size_bytes -= sum(map(len, self._batches[keep:]))
        del self._base_offsets[keep:], self._last_offsets[keep:], self._batches[keep:]
