"""The screen ``topics``: a row for each topic, or for each partition of the topics that are named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kraft_wire.cli.errors import CommandError
from kraft_wire.configs.nearest import nearest
from kraft_wire.logs.metadata_at import MetadataThen
from kraft_wire.metadata.partitions.partition import NO_LEADER, Partition
from kraft_wire.metadata.topics import Topic


class TopicRow(msgspec.Struct):
    """A topic. ``replicas`` is the highest replication factor of its partitions."""

    topic: str
    topic_id: str
    partitions: int
    replicas: int
    without_leader: int
    under_replicated: int
    reassigning: int


class PartitionRow(msgspec.Struct):
    """A partition. ``leader`` is null if there is none."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int
    partition_epoch: int
    replicas: list[int]
    isr: list[int]
    elr: list[int]
    last_known_elr: list[int]
    adding: list[int]
    removing: list[int]


class PartitionCounts(msgspec.Struct):
    """How many partitions there are, and how many of them lack something. ``replicas`` is the highest
    replication factor. Replicas that are being added aren't missed yet (TopicCommand)."""

    count: int = 0
    replicas: int = 0
    without_leader: int = 0
    under_replicated: int = 0
    reassigning: int = 0

    @classmethod
    def of(cls, partitions: Iterable[Partition]) -> PartitionCounts:
        counts = cls()
        for each in partitions:
            counts.count += 1
            counts.replicas = max(counts.replicas, len(each.replicas))
            counts.without_leader += each.leader == NO_LEADER
            counts.under_replicated += len(each.isr) < len(each.replicas) - len(each.adding_replicas)
            counts.reassigning += each.is_reassigning
        return counts


def topic_rows(then: MetadataThen) -> list[TopicRow]:
    """Return the topics by name."""
    return [
        TopicRow(topic.name, str(topic.id), *msgspec.structs.astuple(counts_of(then, topic)))
        for topic in topics_by_name(then)
    ]


def partition_rows(then: MetadataThen, names: Sequence[str]) -> list[PartitionRow]:
    """Return the partitions of these topics. Raises CommandError for one that isn't there."""
    found = [_topic(then, name) for name in names]
    return [
        _partition_row(topic, index, partition)
        for topic in found
        for index, partition in then.state.partitions.indexed(topic.id)
    ]


def topics_by_name(then: MetadataThen) -> list[Topic]:
    """Return all topics, sorted by name."""
    return sorted(then.state.topics, key=lambda topic: topic.name)


def counts_of(then: MetadataThen, topic: Topic) -> PartitionCounts:
    """Count the partitions of a topic."""
    return PartitionCounts.of(then.state.partitions.of_topic(topic.id))


def _topic(then: MetadataThen, name: str) -> Topic:
    topic = then.state.topics.by_name(name)
    if topic is None:
        raise CommandError(f"there is no topic {name!r}{nearest(name, _names(then))}")
    return topic


def _names(then: MetadataThen) -> Iterator[str]:
    return (topic.name for topic in then.state.topics)


def _partition_row(topic: Topic, index: int, partition: Partition) -> PartitionRow:
    return PartitionRow(
        topic.name,
        index,
        None if partition.leader == NO_LEADER else partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        list(partition.replicas),
        list(partition.isr),
        list(partition.elr),
        list(partition.last_known_elr),
        list(partition.adding_replicas),
        list(partition.removing_replicas),
    )
