"""The screen ``reassignments``: a row for each partition that is being moved (KIP-455)."""

from __future__ import annotations

import msgspec

from kraft_wire.cli.describe.topics import topics_by_name
from kraft_wire.logs.metadata_at import MetadataThen
from kraft_wire.metadata.partitions.partition import Partition


class ReassignmentRow(msgspec.Struct):
    """A partition that is being moved. ``target`` has the replicas that it will have; of those that are
    ``adding``, ``caught_up`` are in the ISR already."""

    topic: str
    partition: int
    target: list[int]
    adding: list[int]
    caught_up: list[int]
    removing: list[int]
    isr: list[int]


def reassignment_rows(then: MetadataThen) -> list[ReassignmentRow]:
    """Return the reassignments by topic and partition."""
    return [
        _row(topic.name, index, partition)
        for topic in topics_by_name(then)
        for index, partition in then.state.partitions.indexed(topic.id)
        if partition.is_reassigning
    ]


def _row(topic: str, index: int, partition: Partition) -> ReassignmentRow:
    adding = partition.adding_replicas
    return ReassignmentRow(
        topic,
        index,
        [replica for replica in partition.replicas if replica not in partition.removing_replicas],
        list(adding),
        [replica for replica in adding if replica in partition.isr],
        list(partition.removing_replicas),
        list(partition.isr),
    )
