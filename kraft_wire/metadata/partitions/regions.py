"""Give each topic a region of rows of the columns."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from kraft_wire.metadata.partitions.columns import PartitionColumns
from kraft_wire.metadata.partitions.lazy_numpy import np
from kraft_wire.metadata.partitions.rows import RowAllocator
from kraft_wire.metadata.topics import TopicRows
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.cells import Rows

_REMEMBERED_MOVES: Final = 10_000
_NOBODY: Final = TopicRows("", Uuid.ZERO)


class Regions:
    """The regions of all topics.

    Invariant: ``owners[ordinal]`` is the topic whose rows have that owner. ``moves`` counts the regions that
    moved to other rows; the last of them are remembered.
    """

    def __init__(self) -> None:
        self.owners: list[TopicRows] = []
        self.moves = 0
        self._moved: deque[TopicRows] = deque(maxlen=_REMEMBERED_MOVES)
        self._allocator = RowAllocator()
        self._free_ordinals: list[int] = []

    @cached_property
    def columns(self) -> PartitionColumns:
        """The columns, with as many rows as the regions need."""
        return PartitionColumns()

    @property
    def top(self) -> int:
        """The row after the last region."""
        return self._allocator.top

    def make_room(self, topic: TopicRows, size: int) -> None:
        """Let the region hold ``size`` rows: in place, or in a new place with some room to grow."""
        allocator = self._allocator
        if topic.capacity == 0:
            topic.start = allocator.allocate(size)
            topic.ordinal = self._new_ordinal(topic)
            topic.capacity = size
            self.columns.reserve(allocator.top)
        elif allocator.extend(topic.start + topic.capacity, size - topic.capacity):
            topic.capacity = size
            self.columns.reserve(allocator.top)
        else:
            roomy = size + size // 4
            start = allocator.allocate(roomy)
            self.columns.reserve(allocator.top)
            self.columns.move(topic.start, topic.extent, start, topic.ordinal)
            self.moves += 1
            self._moved.append(topic)
            allocator.release(topic.start, topic.capacity)
            topic.start, topic.capacity = start, roomy

    def moved_since(self, moves: int) -> list[TopicRows] | None:
        """Return the topics that moved since there were so many moves; None if not all are remembered."""
        count = self.moves - moves
        if count > len(self._moved):
            return None
        return [self._moved[-nth] for nth in range(count, 0, -1)]

    def give_up(self, topics: Sequence[TopicRows]) -> None:
        """Free the regions of topics, whose rows are FREE. The topics are in the order of their rows."""
        start = end = topics[0].start
        for topic in topics:
            if topic.start != end:
                self._allocator.release(start, end - start)
                start = topic.start
            end = topic.start + topic.capacity
            self.owners[topic.ordinal] = _NOBODY
            self._free_ordinals.append(topic.ordinal)
            topic.ordinal, topic.start, topic.capacity, topic.extent = -1, 0, 0, 0
        self._allocator.release(start, end - start)

    def rows_of(self, topics: Sequence[TopicRows]) -> slice | Rows:
        """Return the rows of topics, in their order: a slice if they are next to each other."""
        starts = np.array([topic.start for topic in topics], np.intp)
        extents = np.array([topic.extent for topic in topics], np.intp)
        ends = np.cumsum(extents)
        if (starts - starts[0] == ends - extents).all():
            return slice(int(starts[0]), int(starts[0] + ends[-1]))
        return np.repeat(starts - (ends - extents), extents) + np.arange(ends[-1])

    def _new_ordinal(self, topic: TopicRows) -> int:
        if self._free_ordinals:
            ordinal = self._free_ordinals.pop()
            self.owners[ordinal] = topic
        else:
            ordinal = len(self.owners)
            self.owners.append(topic)
        return ordinal
