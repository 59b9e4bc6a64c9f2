"""Encoded records replayed in runs give what records replayed one by one give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_records import RecordScript, partition_record, topic_record, uuid

from kraft_wire.metadata.canonical import canonical
from kraft_wire.metadata.errors import ReplayError, UndoImpossible
from kraft_wire.metadata.partition import DIRECTORY_MIGRATING, RECOVERING
from kraft_wire.metadata.partition_runs import WORTHWHILE, PartitionRuns
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import DecodeError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.end_transaction_record import EndTransactionRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record

BASE = 100


def encoded(*records: Message) -> list[bytes]:
    return [encode_metadata_record(record, record.MAX_VERSION) for record in records]


def partitions(topic: int, indexes: Sequence[int]) -> list[PartitionRecord]:
    return [partition_record(topic, index, [(0, 1, 2), (2, 0, 1)][index % 2]) for index in indexes]


def one_by_one(*records: Message) -> MetadataState:
    state = MetadataState()
    for offset, record in enumerate(records, BASE):
        state.replay(record, offset)
    return state


def in_runs(*records: Message) -> MetadataState:
    state = MetadataState()
    state.replay_values(encoded(*records), BASE)
    return state


def assert_same(*records: Message) -> MetadataState:
    """The state, however it is replayed."""
    state = in_runs(*records)
    assert canonical(state, offsets=True) == canonical(one_by_one(*records), offsets=True)
    return state


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How long the runs were that were applied."""
    found: list[int] = []
    apply: Callable[..., int] = PartitionRuns.apply

    def count(runs: PartitionRuns, values: Sequence[bytes], position: int) -> int:
        applied = apply(runs, values, position)
        found.extend([applied] * (applied > 0))
        return applied

    monkeypatch.setattr(PartitionRuns, "apply", count)
    return found


def test_a_topics_partitions_are_one_run(counts: list[int]) -> None:
    records = [topic_record(1), *partitions(1, range(50)), topic_record(2), *partitions(2, range(500))]
    state = assert_same(*records)
    assert counts == [50, 500]
    assert (len(state.partitions), state.last_applied_offset) == (550, BASE + 551)
    assert [one.leader for one in state.partitions.of_topic(uuid(2))[:3]] == [0, 2, 0]


def test_few_partitions_are_no_run(counts: list[int]) -> None:
    assert_same(topic_record(1), *partitions(1, range(WORTHWHILE - 1)))
    assert counts == []


@pytest.mark.parametrize(
    "other",
    [
        {"removing_replicas": (2,)},
        {"adding_replicas": (2,)},
        {"leader_recovery_state": RECOVERING},
        {"eligible_leader_replicas": (1,)},
        {"last_known_elr": (1,)},
        {"replicas": (0, 1), "isr": (0, 1), "directories": (uuid(1), uuid(2))},
        {"isr": (0,)},
        {"isr": ()},
        {"isr": (0, 1, 2, 3)},
        {"directories": ()},
        {"directories": (DIRECTORY_MIGRATING,) * 3},
        {"leader": -1},
        {"leader_epoch": 2**31 - 1, "partition_epoch": -5},
        # As many bytes as the others, laid out otherwise.
        {"replicas": (0, 1, 2, 3), "isr": (0, 1), "directories": (uuid(1),) * 3},
    ],
)
@pytest.mark.parametrize("at", [0, 1, 20])
def test_one_is_unlike_the_others(other: dict[str, object], at: int) -> None:
    records = partitions(1, range(30))
    records[at] = msgspec.structs.replace(records[at], **other)
    before = [topic_record(1), *records[:at]]
    try:
        expected = one_by_one(topic_record(1), *records)
    except ReplayError as error:
        with pytest.raises(ReplayError) as caught:
            in_runs(topic_record(1), *records)
        assert (caught.value.offset, str(caught.value)) == (error.offset, str(error))
        assert_same(*before)
    else:
        assert canonical(in_runs(topic_record(1), *records)) == canonical(expected)


def test_all_of_another_shape(counts: list[int]) -> None:
    wide = [partition_record(1, index, (4, 3, 2, 1, 0)) for index in range(20)]
    short_isr = [msgspec.structs.replace(one, isr=(4,)) for one in wide]
    assert_same(topic_record(1), *short_isr)
    assert_same(topic_record(2), *partitions(2, range(20)), topic_record(1), *wide)
    assert counts == [20, 20, 20]


@pytest.mark.parametrize(
    "indexes",
    [
        [*range(10), *range(11, 30)],
        [*range(30, -1, -1)],
        [*range(20), *range(20)],
        [*range(5, 30), *range(5)],
        [*range(0, 40, 2), *range(1, 41, 2)],
    ],
)
def test_indexes_out_of_order(indexes: list[int]) -> None:
    assert_same(topic_record(1), *partitions(1, indexes))


def test_topics_that_take_turns(counts: list[int]) -> None:
    in_turns = [one for index in range(40) for topic in (1, 2) for one in partitions(topic, [index])]
    assert_same(topic_record(1), topic_record(2), *in_turns)
    blocks = [partitions(topic, range(at, at + 9)) for at in range(0, 90, 9) for topic in (1, 2)]
    assert_same(topic_record(1), topic_record(2), *[one for block in blocks for one in block])
    assert counts == [9] * 20


@pytest.mark.parametrize("at", [0, 3, 25])
def test_an_impossible_leader_is_found_where_it_is(at: int) -> None:
    records = partitions(1, range(30))
    records[at] = msgspec.structs.replace(records[at], leader=-2)
    with pytest.raises(ReplayError, match="leader -2") as caught:
        in_runs(topic_record(1), *records)
    assert caught.value.offset == BASE + 1 + at


def test_an_unknown_topic() -> None:
    with pytest.raises(ReplayError, match="no topic") as caught:
        in_runs(*partitions(1, range(30)))
    assert caught.value.offset == BASE


@pytest.mark.parametrize("at", [0, 17])
def test_what_cannot_be_decoded(at: int) -> None:
    values = encoded(topic_record(1), *partitions(1, range(30)))
    values[1 + at] = values[1 + at][:-1] + b"\x01"
    state = MetadataState()
    with pytest.raises(DecodeError):
        state.replay_values(values, BASE)
    assert len(state.partitions) == at


def test_offsets_do_not_go_back() -> None:
    state = in_runs(topic_record(1))
    with pytest.raises(ReplayError, match="applied already"):
        state.replay_values(encoded(*partitions(1, range(30))), BASE - 1)


def test_a_run_without_a_journal_cannot_be_undone() -> None:
    state = in_runs(topic_record(1), *partitions(1, range(30)))
    with pytest.raises(UndoImpossible):
        state.undo_to(BASE + 30)
    state.undo_to(BASE + 31)


@pytest.mark.parametrize("in_transaction", [False, True])
def test_what_may_have_to_be_undone_is_no_run(in_transaction: bool, counts: list[int]) -> None:
    state = in_runs(topic_record(1))
    before = canonical(state)
    start = BASE + 1
    if in_transaction:
        state.replay(BeginTransactionRecord(name="it"), start)
    else:
        state.journal.recording = True
    state.replay_values(encoded(*partitions(1, range(30))), start + 1)
    assert counts == []
    if not in_transaction:
        state.undo_to(start)
        assert canonical(state) == before


def test_a_snapshot_is_loaded_in_runs(counts: list[int]) -> None:
    records = [topic_record(1), *partitions(1, range(50))]
    batches = [encoded(*records[:20]), encoded(*records[20:])]
    loaded = MetadataState.from_snapshot_values(batches, BASE)
    assert counts == [19, 31]
    assert canonical(loaded, offsets=True) == canonical(
        MetadataState.from_snapshot(records, BASE), offsets=True
    )


def test_a_snapshot_holds_no_transaction() -> None:
    values = encoded(BeginTransactionRecord(name="it"), EndTransactionRecord())
    with pytest.raises(ReplayError, match="no transactions"):
        MetadataState.from_snapshot_values([values], BASE)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_any_records_between_runs(seed: int, count: int) -> None:
    random = Random(seed)
    script = RecordScript(random)
    state = MetadataState()
    records: list[Message] = []
    for _ in range(count):
        topics = list(state.topics)
        drawn: list[Message] = [script.next_for(state)]
        if topics and random.random() < 0.3:
            topic = random.choice(topics)
            first = random.choice([0, topic.partition_count, max(0, topic.partition_count - 3)])
            drawn = [
                msgspec.structs.replace(one, topic_id=topic.id)
                for one in partitions(1, range(first, first + random.randint(1, 40)))
            ]
        for record in drawn:
            state.replay(record, BASE + len(records))
            records.append(record)
    again = in_runs(*records)
    assert canonical(again, offsets=True) == canonical(state, offsets=True)
    change = PartitionChangeRecord(0, uuid(0), leader=1)
    for topic in state.topics:
        if state.partitions.get(topic.id, 0) is not None:
            for one in (state, again):
                one.replay(msgspec.structs.replace(change, topic_id=topic.id), BASE + len(records))
    assert canonical(again) == canonical(state)
