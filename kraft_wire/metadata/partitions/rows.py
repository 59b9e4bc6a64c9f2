"""Allocate the rows of the partition columns: regions of consecutive rows, and the holes between them."""

from __future__ import annotations


class RowAllocator:
    """Allocates regions of consecutive rows below ``top``. Released regions become holes that are used again.

    Invariant: no hole touches another hole or ``top``; neighbours are merged at once. Holes are grouped into
    classes by the bit length of their size, so that finding one doesn't depend on their number.
    """

    def __init__(self) -> None:
        self.top = 0
        self._size_of: dict[int, int] = {}
        self._start_by_end: dict[int, int] = {}
        self._classes: list[dict[int, None]] = [{} for _ in range(64)]

    @property
    def free(self) -> int:
        """The number of rows in holes."""
        return sum(self._size_of.values())

    def allocate(self, size: int) -> int:
        """Return the first of ``size`` consecutive free rows: in a hole that is large enough, else at the
        top."""
        start = self._find(size)
        if start is None:
            start = self.top
            self.top += size
            return start
        hole = self._take(start)
        if hole > size:
            self._add(start + size, hole - size)
        return start

    def extend(self, end: int, size: int) -> bool:
        """Try to lengthen the region that ends before row ``end`` by ``size`` without moving it. Returns
        whether it worked."""
        if end == self.top:
            self.top += size
            return True
        hole = self._size_of.get(end, 0)
        if hole < size:
            return False
        self._take(end)
        if hole > size:
            self._add(end + size, hole - size)
        return True

    def release(self, start: int, size: int) -> None:
        """Free rows."""
        before = self._start_by_end.get(start)
        if before is not None:
            size += self._take(before)
            start = before
        if start + size in self._size_of:
            size += self._take(start + size)
        if start + size == self.top:
            self.top = start
        else:
            self._add(start, size)

    def _find(self, size: int) -> int | None:
        # The largest class first: a topic grows record by record, and in a large hole it needn't move.
        smallest = size.bit_length()
        for holes in reversed(self._classes[smallest + 1 :]):
            if holes:
                return next(iter(holes))
        # A hole of the size's own class may be too small, so only one of them is tried.
        start = next(iter(self._classes[smallest]), None)
        return start if start is not None and self._size_of[start] >= size else None

    def _add(self, start: int, size: int) -> None:
        self._size_of[start] = size
        self._start_by_end[start + size] = start
        self._classes[size.bit_length()][start] = None

    def _take(self, start: int) -> int:
        size = self._size_of.pop(start)
        del self._start_by_end[start + size]
        del self._classes[size.bit_length()][start]
        return size
