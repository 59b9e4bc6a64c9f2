"""Remember where the newest batches of the log end: what is committed ends there, too.

A replica has whole batches. A peer that says otherwise is wrong, or forged, and isn't followed into the
middle of a batch: nobody can read up to there.
"""

from __future__ import annotations

from bisect import bisect_right


class BatchEnds:
    """The ends of the batches after ``known_from``, which is such an end itself. Where those before it end
    isn't known."""

    __slots__ = ("_ends", "_known_from")

    def __init__(self, known_from: int) -> None:
        self._known_from = known_from
        self._ends: list[int] = []

    def append(self, end_offset: int) -> None:
        """Add the end of a new batch."""
        self._ends.append(end_offset)

    def truncate(self, end_offset: int) -> None:
        """Forget what is above the log's new end."""
        del self._ends[bisect_right(self._ends, end_offset) :]
        self._known_from = min(self._known_from, end_offset)

    def forget_below(self, end_offset: int) -> None:
        """Forget the ends below one of them."""
        if end_offset > self._known_from:
            del self._ends[: bisect_right(self._ends, end_offset)]
            self._known_from = end_offset

    def at_or_below(self, offset: int) -> int:
        """Return the last end of a batch that isn't above ``offset``; the offset itself where that isn't
        known."""
        if offset <= self._known_from:
            return offset
        place = bisect_right(self._ends, offset)
        return self._ends[place - 1] if place else self._known_from
