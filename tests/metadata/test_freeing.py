"""A state that isn't used any more is freed in pieces."""

from __future__ import annotations

import pytest

from kraft_wire.metadata import freeing
from kraft_wire.metadata.freeing import free_in_pieces
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.uuid import Uuid

TOPICS = 20
MANY = tuple(range(40))


def records_of(number: int) -> list[Message]:
    """The records of a topic with a configuration, and with a partition of very many replicas."""
    name, topic_id = f"topic_{number}", Uuid(number.to_bytes(16, "big"))
    return [
        TopicRecord(name=name, topic_id=topic_id),
        PartitionRecord(partition_id=0, topic_id=topic_id, replicas=MANY, isr=MANY, leader=1),
        ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value="1"),
    ]


def test_tables_are_emptied_a_piece_in_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freeing, "ENTRIES_PER_PIECE", 3)
    numbers, squares = list(range(7)), {number: number**2 for number in range(4)}
    lengths = [(len(numbers), len(squares)) for _ in free_in_pieces([numbers, squares])]
    assert lengths == [(4, 4), (1, 4), (0, 4), (0, 1), (0, 0)]


def test_all_that_grows_with_the_topics_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freeing, "ENTRIES_PER_PIECE", 1)
    state = MetadataState()
    for number in range(TOPICS):
        for record in records_of(number):
            state.replay(record, number)
    tables = [*state.topics.tables, *state.partitions.tables, *state.configs.tables]
    assert [len(table) for table in tables] == [TOPICS] * 6
    assert sum(1 for _ in state.free_in_pieces()) == TOPICS * 6
    assert not any(tables) and not len(state.topics)
