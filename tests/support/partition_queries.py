"""Find partitions by looking at each of them: slow, and independent of the columns."""

from __future__ import annotations

from collections.abc import Callable

from kraft_wire.metadata.partitions.partition import Partition, PartitionRef
from kraft_wire.metadata.state import MetadataState


def partitions_where(state: MetadataState, is_wanted: Callable[[Partition], bool]) -> list[PartitionRef]:
    """Return the partitions for which this is true, in ascending order."""
    return sorted(
        PartitionRef(topic.id, index)
        for topic in state.topics
        for index, partition in state.partitions.indexed(topic.id)
        if is_wanted(partition)
    )
