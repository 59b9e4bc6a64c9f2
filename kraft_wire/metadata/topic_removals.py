"""Hold the RemoveTopicRecords of many topics together: no object for each record."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

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
