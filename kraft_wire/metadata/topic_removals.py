"""Remove topics, and hold the RemoveTopicRecords of many together: no object for each record."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kraft_wire.metadata.configs import Configs
from kraft_wire.metadata.partitions.partitions import Partitions
from kraft_wire.metadata.topics import TopicRows, Topics
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.uuid import Uuid


class TopicRemovals(msgspec.Struct, frozen=True):
    """Removals of existing topics, each at most once."""

    topic_ids: Sequence[Uuid]

    def __len__(self) -> int:
        return len(self.topic_ids)

    def encode(self, first_delta: int) -> bytes:
        """Return the records as they stand in a batch, from this offset delta on."""
        from kraft_wire.columnar.removal_records import encode_removals  # needs numpy

        return encode_removals(self.topic_ids, first_delta)

    def records(self) -> list[tuple[Message, int]]:
        """Return the records one by one, with their versions."""
        return [(RemoveTopicRecord(topic_id=topic_id), 0) for topic_id in self.topic_ids]


class TopicRemoval:
    """Removes topics with all that belongs to them."""

    def __init__(self, topics: Topics, partitions: Partitions, configs: Configs) -> None:
        self._topics = topics
        self._partitions = partitions
        self._configs = configs

    def replay(self, record: RemoveTopicRecord, offset: int) -> None:
        """Remove one topic. Raises Contradiction if there is none with this id."""
        self.remove([self._topics.rows(record.topic_id)])

    def remove(self, topics: Sequence[TopicRows]) -> None:
        """Remove existing topics."""
        self._partitions.drop_topics(topics)
        self._topics.remove_all(topics)
        self._configs.remove_topics([topic.name for topic in topics])
