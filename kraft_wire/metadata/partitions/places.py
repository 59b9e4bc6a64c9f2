"""Name many partitions in a way that stays valid when their rows move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kraft_wire.metadata.partitions.lazy_numpy import np
from kraft_wire.metadata.topics import TopicRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kraft_wire.metadata.partitions.cells import Int32s, Rows


class Places(msgspec.Struct, frozen=True):
    """Partitions by topic and index. ``counts[n]`` successive ``indexes`` are of ``topics[n]``."""

    topics: list[TopicRows]
    counts: Rows
    indexes: Int32s

    def rows(self) -> Rows:
        """Return the rows where the partitions are now."""
        starts = np.array([topic.start for topic in self.topics], np.intp)
        return np.repeat(starts, self.counts) + self.indexes

    def topic_ids(self) -> NDArray[np.uint8]:
        """Return the topic ids, one row of 16 bytes for each partition."""
        ids = np.frombuffer(b"".join([topic.id for topic in self.topics]), np.uint8).reshape(-1, 16)
        return np.repeat(ids, self.counts, axis=0)
