"""Many topics are removed together: the same bytes, states and undoing as one by one."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.log.record import encode_records
from kraft_wire.metadata.canonical import canonical
from kraft_wire.metadata.state import MetadataState
from kraft_wire.metadata.topic_removals import TopicRemovals
from kraft_wire.metadata.topics import Topic
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.uuid import Uuid
from tests.support.metadata_records import RecordScript


def random_state(seed: int, count: int) -> MetadataState:
    """Return the state after random records."""
    script = RecordScript(Random(seed))
    state = MetadataState()
    for offset in range(count):
        state.replay(script.next_for(state), offset)
    return state


def chosen(state: MetadataState, random: Random) -> list[Topic]:
    """Return some of the topics, in any order, or all."""
    topics = list(state.topics)
    if random.random() < 0.3:
        return topics
    return random.sample(topics, random.randint(0, len(topics)))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 150))
def test_topics_are_removed_together_as_one_by_one(seed: int, steps: int) -> None:
    together, one_by_one = (random_state(seed, steps) for _ in range(2))
    topics = chosen(together, Random(seed))
    removals = TopicRemovals(tuple(topic.id for topic in topics))
    before = canonical(together)
    start = together.last_applied_offset + 1
    for state in (together, one_by_one):
        state.journal.recording = True
    together.apply_columns(removals, start)
    for offset, (record, _) in enumerate(removals.records(), start):
        one_by_one.replay(record, offset)
    assert canonical(together) == canonical(one_by_one)
    together.undo_to(start)
    assert canonical(together) == before
    fresh = random_state(seed, steps).topics
    for name in ("a.b", "a_b", "e_f.g"):
        assert together.topics.colliding(name) == fresh.colliding(name)
    together.apply_columns(removals, start)
    assert canonical(together) == canonical(one_by_one)


def test_a_redone_removal_can_be_undone_again() -> None:
    for seed in range(50):
        state = random_state(seed, 120)
        state.journal.recording = True
        before, start = canonical(state), state.last_applied_offset + 1
        state.apply_columns(TopicRemovals(tuple(topic.id for topic in state.topics)), start)
        removed = canonical(state)
        for _ in range(2):
            redo = state.journal.undo_with_redo(start)
            assert canonical(state) == before
            state.journal.redo(redo)
            assert canonical(state) == removed


@pytest.mark.parametrize("first_delta", [0, 60, 8_190])
def test_the_bytes_are_those_of_the_records_one_by_one(first_delta: int) -> None:
    random = Random(1)
    removals = TopicRemovals(tuple(Uuid(random.randbytes(16)) for _ in range(20)))
    values = [encode_metadata_record(record, version) for record, version in removals.records()]
    assert removals.encode(first_delta) == b"".join(encode_records(values, first_delta=first_delta))
