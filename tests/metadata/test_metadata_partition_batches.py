"""Batches that are replayed in columns give the same state as their records one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.metadata.canonical import canonical
from kraft_wire.metadata.errors import ReplayError, UndoImpossible
from kraft_wire.metadata.partitions.partition import DIRECTORY_MIGRATING, RECOVERING
from kraft_wire.metadata.partitions.replay_batches import PartitionBatches
from kraft_wire.metadata.state import FEWEST_IN_COLUMNS, MetadataState
from kraft_wire.protocol.errors import DecodeError, UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.end_transaction_record import EndTransactionRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record, encode_metadata_record
from kraft_wire.protocol.uuid import Uuid
from tests.support.metadata_records import RecordScript, partition_record, topic_record, uuid
from tests.support.partition_queries import partitions_where

pytestmark = pytest.mark.usefixtures("column_width")

BASE = 100
HIGHEST = 2**31 - 1


def encoded(*records: Message) -> list[bytes]:
    return [encode_metadata_record(record, record.MAX_VERSION) for record in records]


def partitions(topic: int, indexes: Sequence[int]) -> list[PartitionRecord]:
    return [partition_record(topic, index, [(0, 1, 2), (2, 0, 1)][index % 2]) for index in indexes]


def change(topic: int, index: int, **fields: object) -> PartitionChangeRecord:
    return msgspec.structs.replace(PartitionChangeRecord(index, uuid(topic)), **fields)


def changes(topic: int, indexes: Sequence[int]) -> list[PartitionChangeRecord]:
    """Return changes in turn: a leader, an ISR, both, neither."""
    fields: list[dict[str, object]] = [{"leader": 1}, {"isr": (1, 2)}, {"leader": -1, "isr": ()}, {}]
    return [change(topic, index, **fields[number % 4]) for number, index in enumerate(indexes)]


def one_by_one(state: MetadataState, values: Sequence[bytes], offset: int = BASE) -> None:
    for at, value in enumerate(values, offset):
        state.replay_values([value], at)


def in_columns(state: MetadataState, values: Sequence[bytes], offset: int = BASE) -> None:
    state.replay_values(values, offset)


Replay = Callable[[MetadataState, Sequence[bytes]], None]


def outcome(state: MetadataState, replay: Replay, values: Sequence[bytes]) -> tuple[object, ...]:
    """Return the state after a replay, and the error if there was one."""
    error: Exception | None = None
    try:
        replay(state, values)
    except (ReplayError, DecodeError, UnsupportedVersion, ValueError) as raised:
        error = raised
    return type(error), str(error), canonical(state, offsets=True)


def assert_same(values: Sequence[bytes]) -> MetadataState:
    """Check that every way to replay the batch gives the same state, or the same error."""
    state = MetadataState()
    assert outcome(state, in_columns, values) == outcome(MetadataState(), one_by_one, values)
    return state


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the lengths of the runs that were applied."""
    found: list[int] = []
    for name in ("_append", "_change", "_remove"):
        monkeypatch.setattr(PartitionBatches, name, _counting(getattr(PartitionBatches, name), found))
    return found


def _counting(apply: Callable[..., int], found: list[int]) -> Callable[..., int]:
    def count(*arguments: object) -> int:
        applied = apply(*arguments)
        found.extend([applied] * (applied > 0))
        return applied

    return count


def test_a_topics_partitions_are_one_run(counts: list[int]) -> None:
    records = [topic_record(1), *partitions(1, range(50)), topic_record(2), *partitions(2, range(500))]
    state = MetadataState()
    in_columns(state, encoded(*records))
    assert counts == [50, 500]
    assert (len(state.partitions), state.last_applied_offset) == (550, BASE + 551)
    assert [one.leader for one in state.partitions.of_topic(uuid(2))[:3]] == [0, 2, 0]
    assert_same(encoded(*records))


def test_changes_of_any_topics_are_one_run(counts: list[int]) -> None:
    made = [topic_record(1), *partitions(1, range(50)), topic_record(2), *partitions(2, range(20))]
    turns = [one for index in range(20) for topic in (1, 2) for one in changes(topic, [index, 3, 3, index])]
    state = MetadataState()
    in_columns(state, encoded(*made, *turns))
    assert counts == [50, 20, 160]
    assert state.last_applied_offset == BASE + 71 + 160
    assert_same(encoded(*made, *turns))


def test_few_records_are_replayed_one_by_one(counts: list[int]) -> None:
    assert_same(encoded(topic_record(1), *partitions(1, range(FEWEST_IN_COLUMNS - 2))))
    assert counts == []
    assert_same(encoded(topic_record(1), *partitions(1, range(FEWEST_IN_COLUMNS - 1))))
    assert counts == [FEWEST_IN_COLUMNS - 1]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_version(version: int, counts: list[int]) -> None:
    made = [
        msgspec.structs.replace(one, directories=() if version == 0 else one.directories)
        for one in partitions(1, range(60))
    ]
    values = [
        *encoded(topic_record(1)),
        *[
            encode_metadata_record(record, version)
            for record in [*made, *changes(1, [*range(60), *range(9)])]
        ],
    ]
    assert_same(values)
    assert counts == [60, 69]


@pytest.mark.parametrize(
    "other",
    [
        {"removing_replicas": (2,)},
        {"adding_replicas": (2,)},
        {"leader_recovery_state": RECOVERING},
        {"leader_recovery_state": 2},
        {"eligible_leader_replicas": (1,)},
        {"last_known_elr": (1,)},
        {"eligible_leader_replicas": (), "last_known_elr": ()},
        {"eligible_leader_replicas": (2, 1), "last_known_elr": (2,)},
        {"eligible_leader_replicas": tuple(range(40))},
        {"last_known_elr": (1, 2)},
        {"last_known_elr": (-1,)},
        {"replicas": (0, 1), "isr": (0, 1), "directories": (uuid(1), uuid(2))},
        {"replicas": (), "isr": (), "directories": ()},
        {"isr": (0,)},
        {"isr": ()},
        {"isr": (0, 1, 2, 3)},
        {"isr": tuple(range(40))},
        {"directories": ()},
        {"directories": (DIRECTORY_MIGRATING,) * 3},
        {"directories": (DIRECTORY_MIGRATING,) * 2},
        {"directories": (uuid(1),)},
        {"leader": -1},
        {"leader": -2},
        {"leader_epoch": HIGHEST, "partition_epoch": -5},
        {"partition_id": -1},
        {"partition_id": 5},
        {"topic_id": uuid(9)},
        {"replicas": (0, 1, 2, 3), "isr": (0, 1), "directories": (uuid(1),) * 3},
    ],
)
@pytest.mark.parametrize("at", [0, 1, 20, 59])
def test_one_new_partition_differs_from_the_others(other: dict[str, object], at: int) -> None:
    records = partitions(1, range(60))
    records[at] = msgspec.structs.replace(records[at], **other)
    assert_same(encoded(topic_record(1), *records))


@pytest.mark.parametrize(
    "other",
    [
        {"removing_replicas": (2,)},
        {"removing_replicas": ()},
        {"adding_replicas": (2,)},
        {"leader_recovery_state": RECOVERING},
        {"leader_recovery_state": 2},
        {"leader_recovery_state": -2},
        {"eligible_leader_replicas": (1,)},
        {"last_known_elr": (1,)},
        {"eligible_leader_replicas": (), "last_known_elr": ()},
        {"eligible_leader_replicas": (2, 1), "last_known_elr": (2,)},
        {"eligible_leader_replicas": tuple(range(40))},
        {"last_known_elr": (1, 2)},
        {"last_known_elr": (-1,)},
        {"replicas": (0, 1), "directories": (uuid(1), uuid(2))},
        {"replicas": (0, 1)},
        {"directories": ()},
        {"directories": (uuid(1),) * 3},
        {"isr": (0, 1, 2, 3, 4)},
        {"isr": tuple(range(40))},
        {"leader": -3},
        {"partition_id": 20},
        {"partition_id": -1},
        {"topic_id": uuid(9)},
    ],
)
@pytest.mark.parametrize("at", [0, 1, 20, 59])
def test_one_change_differs_from_the_others(other: dict[str, object], at: int) -> None:
    records = changes(1, [index % 20 for index in range(60)])
    records[at] = msgspec.structs.replace(records[at], **other)
    assert_same(encoded(topic_record(1), *partitions(1, range(20)), *records))


def test_rare_fields_stay_if_a_change_does_not_name_them() -> None:
    rare = [
        msgspec.structs.replace(one, adding_replicas=(7,), eligible_leader_replicas=(1,))
        for one in partitions(1, range(20))
    ]
    state = assert_same(encoded(topic_record(1), *rare, *changes(1, [index % 20 for index in range(60)])))
    assert {one.adding_replicas for one in state.partitions.of_topic(uuid(1))} == {(7,)}


def test_elrs_are_replayed_in_runs(counts: list[int]) -> None:
    elrs = [((), (3,)), ((2, 1), None), (None, ()), ((), ())]
    records = [
        PartitionChangeRecord(index % 20, uuid(1), eligible_leader_replicas=elr, last_known_elr=last_known)
        for index in range(60)
        for elr, last_known in [elrs[index % 7 % 4]]
    ]
    made = [
        msgspec.structs.replace(one, eligible_leader_replicas=(1,), last_known_elr=(2,))
        for one in partitions(1, range(20))
    ]
    state = assert_same(encoded(topic_record(1), *made, *records))
    assert counts == [20, 60]
    assert partitions_where(state, lambda one: one.elr != ())


@pytest.mark.parametrize("last_known", [(), (2,), None])
def test_a_run_ends_before_a_change_of_a_long_last_known_elr(last_known: tuple[int, ...] | None) -> None:
    made = partitions(1, range(20))
    made[7] = msgspec.structs.replace(made[7], last_known_elr=(1, 2))
    records = [
        PartitionChangeRecord(index % 20, uuid(1), eligible_leader_replicas=(1,), last_known_elr=last_known)
        for index in range(60)
    ]
    state = assert_same(encoded(topic_record(1), *made, *records))
    assert state.partitions.of_topic(uuid(1))[7].last_known_elr == (
        (1, 2) if last_known is None else last_known
    )


def many_topics() -> list[Message]:
    topics = range(1, 60)
    return [record for topic in topics for record in (topic_record(topic), *partitions(topic, range(5)))]


def test_removed_topics_are_one_run(counts: list[int]) -> None:
    removals = [RemoveTopicRecord(uuid(topic)) for topic in (*range(1, 30), *range(59, 30, -1))]
    config = ConfigRecord(2, "topic-7", "retention.ms", "1")
    state = assert_same(encoded(*many_topics(), config, *removals))
    assert counts[-1] == 58
    assert [topic.id for topic in state.topics] == [uuid(30)]
    assert len(state.partitions) == 5


@pytest.mark.parametrize("wrong", [99, 1])
@pytest.mark.parametrize("at", [0, 5, 50])
def test_a_run_of_removals_with_a_wrong_one_fails_as_one_by_one(at: int, wrong: int) -> None:
    removals = [RemoveTopicRecord(uuid(topic)) for topic in range(1, 52)]
    removals.insert(at, RemoveTopicRecord(uuid(wrong)))
    assert_same(encoded(*many_topics(), *removals))


def test_directories_by_the_thousand() -> None:
    random = Random(7)
    ids = [Uuid(random.randbytes(16)) for _ in range(3_000)]
    made = [
        msgspec.structs.replace(one, directories=tuple(random.choices(ids, k=3)))
        for one in partitions(1, range(2_000))
    ]
    assert_same(encoded(topic_record(1), *made))


@pytest.mark.parametrize("epochs", [{"leader_epoch": HIGHEST - 3}, {"partition_epoch": HIGHEST - 20}])
def test_epochs_that_come_to_their_end(epochs: dict[str, int]) -> None:
    made = partitions(1, range(60))
    made[5] = msgspec.structs.replace(made[5], **epochs)
    assert_same(encoded(topic_record(1), *made, *[change(1, 5, leader=1)] * 30))


def test_partitions_in_gaps_cannot_be_changed() -> None:
    made = [topic_record(1), *partitions(1, range(50)), partition_record(1, 70)]
    assert_same(encoded(*made, *changes(1, [*range(30), 70, 60, 1])))


def test_other_records_stay_in_order_with_runs(counts: list[int]) -> None:
    records = [
        topic_record(1),
        *partitions(1, range(30)),
        ConfigRecord(2, "topic-1", "retention.ms", "1"),
        *changes(1, range(30)),
        RemoveTopicRecord(uuid(1)),
        topic_record(1),
        *partitions(1, range(10)),
        *changes(1, [index % 10 for index in range(20)]),
    ]
    assert_same(encoded(*records))
    assert counts == [30, 30, 10, 20]
    assert_same(encoded(*records, *changes(1, range(30))))


@pytest.mark.parametrize(
    "indexes",
    [
        [*range(10), *range(11, 60)],
        [*range(60, -1, -1)],
        [*range(40), *range(40)],
        [*range(5, 60), *range(5)],
        [*range(0, 80, 2), *range(1, 81, 2)],
    ],
)
def test_indexes_out_of_order(indexes: list[int]) -> None:
    assert_same(encoded(topic_record(1), *partitions(1, indexes)))


def test_topics_that_take_turns(counts: list[int]) -> None:
    in_turns = [one for index in range(40) for topic in (1, 2) for one in partitions(topic, [index])]
    assert_same(encoded(topic_record(1), topic_record(2), *in_turns))
    assert counts == []
    blocks = [partitions(topic, range(at, at + 9)) for at in range(0, 90, 9) for topic in (1, 2)]
    assert_same(encoded(topic_record(1), topic_record(2), *[one for block in blocks for one in block]))
    assert counts == [9] * 20


@pytest.mark.parametrize("at", [0, 17, 59])
def test_a_decode_error_is_at_its_own_offset(at: int) -> None:
    values = encoded(topic_record(1), *partitions(1, range(60)))
    values[1 + at] = values[1 + at][:-1] + b"\x01"
    state = MetadataState()
    with pytest.raises(DecodeError):
        state.replay_values(values, BASE)
    assert len(state.partitions) == at


@pytest.mark.parametrize("version", [3, 100, 200])
def test_versions_that_do_not_exist(version: int) -> None:
    made = encoded(topic_record(1), *partitions(1, range(60)))
    changed = encoded(*changes(1, range(60)))
    of_version = [value[:2] + bytes([version]) + value[3:] for value in changed]
    assert_same([*made, *of_version])
    assert_same([made[0], *[value[:2] + bytes([version]) + value[3:] for value in made[1:]]])


def test_offsets_do_not_go_back() -> None:
    state = MetadataState()
    in_columns(state, encoded(topic_record(1)))
    with pytest.raises(ReplayError, match="already applied"):
        state.replay_values(encoded(*partitions(1, range(60))), BASE - 1)


def test_a_run_without_a_journal_cannot_be_undone() -> None:
    state = MetadataState()
    in_columns(state, encoded(topic_record(1), *partitions(1, range(60))))
    with pytest.raises(UndoImpossible):
        state.undo_to(BASE + 60)
    state.undo_to(BASE + 61)


@pytest.mark.parametrize("in_transaction", [False, True])
def test_records_that_may_be_undone_are_replayed_one_by_one(in_transaction: bool, counts: list[int]) -> None:
    state = MetadataState()
    in_columns(state, encoded(topic_record(1)))
    before = canonical(state)
    start = BASE + 1
    if in_transaction:
        state.replay(BeginTransactionRecord(name="it"), start)
    else:
        state.journal.recording = True
    state.replay_values(encoded(*partitions(1, range(60)), *changes(1, range(60))), start + 1)
    assert counts == []
    if not in_transaction:
        state.undo_to(start)
        assert canonical(state) == before


def test_a_transaction_within_a_batch(counts: list[int]) -> None:
    begin, end = BeginTransactionRecord(name="it"), EndTransactionRecord()
    made = partitions(1, range(60))
    assert_same(encoded(topic_record(1), *made[:20], begin, *made[20:40], end, *made[40:]))
    assert counts == [20, 20]


def test_a_snapshot_is_loaded_in_runs(counts: list[int]) -> None:
    records = [topic_record(1), *partitions(1, range(150))]
    batches = [encoded(*records[:60]), encoded(*records[60:])]
    loaded = MetadataState.from_snapshot_values(batches, BASE)
    assert counts == [59, 91]
    assert canonical(loaded, offsets=True) == canonical(
        MetadataState.from_snapshot(records, BASE), offsets=True
    )


def test_a_snapshot_holds_no_transaction() -> None:
    values = encoded(BeginTransactionRecord(name="it"), EndTransactionRecord())
    with pytest.raises(ReplayError, match="must not hold transactions"):
        MetadataState.from_snapshot_values([values], BASE)


class History:
    """Random records, many of them in bursts, encoded at versions that can hold them."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._script = RecordScript(random)
        self.state = MetadataState()
        self.values: list[bytes] = []

    def grow(self) -> None:
        """Add one record of any type, or a burst of partition records."""
        random, topics = self._random, list(self.state.topics)
        burst: Callable[[int, int], Sequence[Message]] | None = None
        if topics:
            burst = random.choice([None, None, self._new_partitions, self._changes])
        if burst is None:
            self._add(self._script.next_for(self.state))
            return
        topic = random.choice(topics)
        for record in burst(topic.partition_count, random.randint(1, 60)):
            self._add(msgspec.structs.replace(record, topic_id=topic.id))

    def _new_partitions(self, known: int, count: int) -> Sequence[Message]:
        first = self._random.choice([0, known, known, known, max(0, known - 3)])
        return partitions(1, range(first, first + count))

    def _changes(self, known: int, count: int) -> Sequence[Message]:
        found = changes(1, [self._random.randrange(known) for _ in range(count)] if known else [])
        for record in found:
            if self._random.random() < 0.1:
                record.isr = tuple(self._random.choices(range(6), k=self._random.randint(0, 6)))
            if self._random.random() < 0.1:
                record.eligible_leader_replicas = tuple(
                    self._random.sample(range(6), self._random.randint(0, 3))
                )
            if self._random.random() < 0.1:
                record.last_known_elr = tuple(
                    self._random.sample(range(6), self._random.choice((0, 1, 1, 1, 2)))
                )
        return found

    def _add(self, record: Message) -> None:
        if isinstance(record, PartitionChangeRecord) and self._has_no(record):
            return
        version = self._random.randint(record.MIN_VERSION, record.MAX_VERSION)
        try:
            value = encode_metadata_record(record, version)
        except UnsupportedVersion:
            value = encode_metadata_record(record, record.MAX_VERSION)
        self.state.replay(decode_metadata_record(value)[0], BASE + len(self.values))
        self.values.append(value)

    def _has_no(self, record: PartitionChangeRecord) -> bool:
        return self.state.partitions.get(record.topic_id, record.partition_id) is None


def histories(seed: int, steps: int) -> History:
    history = History(Random(seed))
    for _ in range(steps):
        history.grow()
    return history


def replay_in_batches(state: MetadataState, values: Sequence[bytes], random: Random) -> None:
    position = 0
    while position < len(values):
        size = random.choice([1, 10, FEWEST_IN_COLUMNS, 200, 1000])
        state.replay_values(values[position : position + size], BASE + position)
        position += size


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_any_history_in_any_batches(seed: int, steps: int) -> None:
    history = histories(seed, steps)
    again = MetadataState()
    replay_in_batches(again, history.values, Random(seed))
    assert canonical(again, offsets=True) == canonical(history.state, offsets=True)
    for broker in range(6):
        assert again.partitions.count_led_by(broker) == history.state.partitions.count_led_by(broker)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_damaged_batches_fail_as_they_do_one_by_one(seed: int) -> None:
    random = Random(seed)
    values = histories(seed, 20).values
    at = random.randrange(len(values))
    damaged = bytearray(values[at])
    damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
    values[at] = bytes(damaged)
    assert_same(values)
