"""An undo gives exactly the state of a replay of fewer records, whatever happened in between."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.metadata.canonical import canonical, fingerprint
from kraft_wire.metadata.errors import UndoImpossible
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from tests.support.metadata_records import RecordScript, broker_record, partition_record, topic_record

pytestmark = pytest.mark.usefixtures("column_width")

SEEDS = st.integers(0, 2**32 - 1)


def replayed(records: list[Message]) -> MetadataState:
    state = MetadataState()
    for offset, record in enumerate(records):
        state.replay(record, offset)
    return state


@settings(max_examples=200, deadline=None)
@given(SEEDS, st.integers(0, 60))
def test_undo_anywhere_equals_replay_from_scratch(seed: int, committed: int) -> None:
    random = Random(seed)
    script = RecordScript(random)
    state = MetadataState()
    records: list[Message] = []
    for _ in range(committed):
        records.append(script.next_for(state))
        state.replay(records[-1], len(records) - 1)
    state.journal.recording = True
    for _ in range(random.randint(1, 6)):
        for _ in range(random.randint(1, 40)):
            records.append(script.next_for(state))
            state.replay(records[-1], len(records) - 1)
        if random.random() < 0.5:
            committed = random.randint(committed, len(records))
            state.forget_below(committed)
        kept = random.randint(committed, len(records))
        del records[kept:]
        state.undo_to(kept)
        expected = replayed(records)
        assert canonical(state, offsets=True) == canonical(expected, offsets=True)
        assert fingerprint(state, offsets=True) == fingerprint(expected, offsets=True)


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.integers(1, 100))
def test_undone_records_can_be_replayed_again(seed: int, count: int) -> None:
    random = Random(seed)
    script = RecordScript(random)
    state = MetadataState()
    state.journal.recording = True
    records: list[Message] = []
    for offset in range(count):
        records.append(script.next_for(state))
        state.replay(records[-1], offset)
    expected = fingerprint(state, offsets=True)
    kept = random.randint(0, count)
    state.undo_to(kept)
    for offset in range(kept, count):
        state.replay(records[offset], offset)
    assert fingerprint(state, offsets=True) == expected


def test_nothing_is_kept_while_not_recording() -> None:
    state = replayed([topic_record(1), partition_record(1, 0)])
    assert len(state.journal) == 0
    with pytest.raises(UndoImpossible, match="from offset 1 cannot be undone, only those from 2 on"):
        state.undo_to(1)
    state.undo_to(2)
    assert state.last_applied_offset == 1


def test_committed_records_cannot_be_undone() -> None:
    state = MetadataState()
    state.journal.recording = True
    for offset in range(10):
        state.replay(broker_record(offset), offset)
    state.forget_below(7)
    assert len(state.journal) == 3
    with pytest.raises(UndoImpossible, match="only those from 7 on"):
        state.undo_to(6)
    state.undo_to(7)
    assert sorted(state.brokers) == list(range(7))
    assert state.last_applied_offset == 6


def test_a_deleted_topic_is_restored_even_if_its_rows_were_used_again() -> None:
    records: list[Message] = [topic_record(1), *[partition_record(1, index) for index in range(50)]]
    state = replayed(records)
    state.journal.recording = True
    topic = state.topics.by_name("topic-1")
    assert topic is not None
    before = state.partitions.of_topic(topic.id)
    state.replay(RemoveTopicRecord(topic.id), 51)
    state.replay(topic_record(2), 52)
    for index in range(60):
        state.replay(partition_record(2, index, (3, 4, 5, 0)), 53 + index)
    assert len(state.partitions) == 60
    state.undo_to(51)
    assert state.partitions.of_topic(topic.id) == before
    assert len(state.partitions) == 50
    assert state.topics.by_name("topic-2") is None
