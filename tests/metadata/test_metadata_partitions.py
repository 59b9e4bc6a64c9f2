"""Topics and partitions: replay as in org.apache.kafka.metadata.PartitionRegistration, and queries."""

from __future__ import annotations

from itertools import count, product
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.metadata.errors import ReplayError
from kraft_wire.metadata.partitions.columns import FREE, PartitionColumns
from kraft_wire.metadata.partitions.partition import (
    DIRECTORY_LOST,
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    NO_LEADER,
    RECOVERING,
    Partition,
    PartitionRef,
    is_reserved_directory,
)
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.uuid import Uuid
from tests.support.metadata_records import BROKERS, RecordScript, partition_record, topic_record, uuid
from tests.support.partition_queries import partitions_where

pytestmark = pytest.mark.usefixtures("column_width")


def after(*records: Message) -> MetadataState:
    state = MetadataState()
    for offset, record in enumerate(records):
        state.replay(record, offset)
    return state


def changed(**changes: object) -> Partition:
    """Return partition 0 of topic 1, replicas 0, 1, 2, after one change."""
    state = after(topic_record(1), partition_record(1, 0))
    state.replay(msgspec.structs.replace(PartitionChangeRecord(0, uuid(1)), **changes), 2)
    partition = state.partitions.get(uuid(1), 0)
    assert partition is not None
    return partition


def test_topics_are_found_by_name_and_by_id() -> None:
    state = after(
        topic_record(1, "one"), topic_record(2, "two"), partition_record(2, 0), partition_record(2, 1)
    )
    two = state.topics.by_name("two")
    assert two is not None and (two.name, two.id, two.partition_count) == ("two", uuid(2), 2)
    assert state.topics.by_id(uuid(2)) == two
    assert state.topics.by_name("three") is None and state.topics.by_id(uuid(3)) is None
    assert len(state.topics) == 2 and {topic.name for topic in state.topics} == {"one", "two"}


def test_a_partition_is_read_as_it_was_written() -> None:
    record = PartitionRecord(
        partition_id=0,
        topic_id=uuid(1),
        replicas=(5, 3, 4, 9),
        isr=(4, 3),
        removing_replicas=(9,),
        adding_replicas=(5,),
        leader=4,
        leader_recovery_state=RECOVERING,
        leader_epoch=7,
        partition_epoch=8,
        directories=(uuid(50), uuid(51), DIRECTORY_LOST, DIRECTORY_UNASSIGNED),
        eligible_leader_replicas=(5,),
        last_known_elr=(9,),
    )
    state = after(topic_record(1), record)
    assert state.partitions.get(uuid(1), 0) == Partition(
        replicas=(5, 3, 4, 9),
        isr=(4, 3),
        leader=4,
        leader_epoch=7,
        partition_epoch=8,
        directories=(uuid(50), uuid(51), DIRECTORY_LOST, DIRECTORY_UNASSIGNED),
        leader_recovery_state=RECOVERING,
        removing_replicas=(9,),
        adding_replicas=(5,),
        elr=(5,),
        last_known_elr=(9,),
    )
    assert state.partitions.get(uuid(1), 1) is None
    assert state.partitions.get(uuid(1), -1) is None
    assert state.partitions.get(uuid(2), 0) is None
    assert state.partitions.of_topic(uuid(2)) == []


def test_partitions_that_are_being_reassigned_are_counted() -> None:
    adding, removing = partition_record(1, 0), partition_record(1, 1)
    adding.adding_replicas, removing.removing_replicas = (2,), (0,)
    wide = partition_record(1, 2, replicas=tuple(range(12)))
    state = after(topic_record(1), adding, removing, wide, partition_record(1, 3))
    assert state.partitions.count_reassigning() == 2
    change = PartitionChangeRecord(partition_id=0, topic_id=uuid(1), adding_replicas=())
    state.replay(change, 9)
    assert state.partitions.count_reassigning() == 1


def test_a_record_without_directories_means_that_they_are_migrating() -> None:
    record = partition_record(1, 0)
    record.directories = ()
    partition = after(topic_record(1), record).partitions.get(uuid(1), 0)
    assert partition is not None and partition.directories == (DIRECTORY_MIGRATING,) * 3


def test_the_columns_grow_wider_with_the_replication_factor() -> None:
    wide = tuple(range(20, 31))
    state = after(
        topic_record(1), partition_record(1, 0), partition_record(1, 1, wide), partition_record(1, 2, (7,))
    )
    assert [one.replicas for one in state.partitions.of_topic(uuid(1))] == [(0, 1, 2), wide, (7,)]
    assert [one.isr for one in state.partitions.of_topic(uuid(1))] == [(0, 1, 2), wide, (7,)]


def test_partitions_may_come_in_any_order() -> None:
    state = after(topic_record(1), *[partition_record(1, index, (index,)) for index in (3, 0, 4, 1)])
    assert [index for index, _ in state.partitions.indexed(uuid(1))] == [0, 1, 3, 4]
    assert [one.replicas for one in state.partitions.of_topic(uuid(1))] == [(0,), (1,), (3,), (4,)]
    topic = state.topics.by_id(uuid(1))
    assert topic is not None and topic.partition_count == len(state.partitions) == 4


def test_topics_that_grow_in_turn_keep_their_partitions() -> None:
    state = after(topic_record(1), topic_record(2))
    for index in range(40):
        for topic in (1, 2):
            state.replay(partition_record(topic, index, (topic, index + 10)), 2)
    for topic in (1, 2):
        assert [one.replicas for one in state.partitions.of_topic(uuid(topic))] == [
            (topic, index + 10) for index in range(40)
        ]
    assert state.partitions.led_by(2) == [PartitionRef(uuid(2), index) for index in range(40)]


def test_many_partitions_and_then_wider_ones() -> None:
    state = after(topic_record(1), topic_record(2), partition_record(2, 0))
    before = state.partitions.columns.size_bytes
    for index in range(5000):
        state.replay(partition_record(1, index, (index % 7, 8)), 3)
    state.replay(partition_record(2, 1, (1, 2, 3, 4, 5)), 4)
    assert state.partitions.columns.size_bytes > before
    assert len(state.partitions) == 5002
    assert [one.replicas for one in state.partitions.of_topic(uuid(1))] == [(i % 7, 8) for i in range(5000)]
    assert [one.replicas for one in state.partitions.of_topic(uuid(2))] == [(0, 1, 2), (1, 2, 3, 4, 5)]
    assert state.partitions.count_led_by(3) == len(state.partitions.led_by(3)) == 714
    assert len(partitions_where(state, lambda one: 8 in one.replicas)) == 5000


def test_a_change_without_a_leader_keeps_the_leader_epoch() -> None:
    assert changed(isr=(0, 1)) == Partition(
        (0, 1, 2), (0, 1), 0, 0, 1, (uuid(100), uuid(101), uuid(102)), leader_recovery_state=0
    )


@pytest.mark.parametrize("leader", [0, 1, NO_LEADER])
def test_naming_a_leader_raises_the_leader_epoch(leader: int) -> None:
    partition = changed(leader=leader)
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (leader, 1, 1)


def test_empty_lists_are_not_the_same_as_none() -> None:
    state = after(
        topic_record(1),
        partition_record(1, 0),
        PartitionChangeRecord(
            partition_id=0,
            topic_id=uuid(1),
            removing_replicas=(0,),
            adding_replicas=(2,),
            eligible_leader_replicas=(1,),
            last_known_elr=(2,),
        ),
        PartitionChangeRecord(partition_id=0, topic_id=uuid(1), isr=()),
    )
    partition = state.partitions.get(uuid(1), 0)
    assert partition is not None and partition.is_reassigning
    assert (partition.isr, partition.elr, partition.last_known_elr) == ((), (1,), (2,))
    assert in_elr(state, 1) == [PartitionRef(uuid(1), 0)] and in_elr(state, 2) == []
    state.replay(
        PartitionChangeRecord(
            partition_id=0,
            topic_id=uuid(1),
            removing_replicas=(),
            adding_replicas=(),
            eligible_leader_replicas=(),
            last_known_elr=(),
        ),
        9,
    )
    partition = state.partitions.get(uuid(1), 0)
    assert partition is not None and not partition.is_reassigning
    assert (partition.elr, partition.last_known_elr, partition.partition_epoch) == ((), (), 3)
    assert in_elr(state, 1) == []


def test_replicas_and_directories_change_together() -> None:
    partition = changed(replicas=(1, 5), directories=(uuid(101), DIRECTORY_UNASSIGNED))
    assert partition.replicas == (1, 5)
    assert partition.directory_of(5) == DIRECTORY_UNASSIGNED and partition.directory_of(0) is None


def test_new_replicas_of_migrating_directories_are_migrating_too() -> None:
    first = partition_record(1, 0)
    first.directories = ()
    state = after(topic_record(1), first, PartitionChangeRecord(0, uuid(1), replicas=(3, 4, 5, 6)))
    partition = state.partitions.get(uuid(1), 0)
    assert partition is not None and partition.directories == (DIRECTORY_MIGRATING,) * 4


def test_the_recovery_state_changes_only_where_it_is_given() -> None:
    assert changed(leader_recovery_state=1).leader_recovery_state == RECOVERING
    assert changed(isr=(0,)).leader_recovery_state == 0


def test_clear_elr_touches_only_partitions_that_have_one() -> None:
    def elr(topic: int, index: int) -> Message:
        return PartitionChangeRecord(partition_id=index, topic_id=uuid(topic), eligible_leader_replicas=(1,))

    first = [
        topic_record(1),
        partition_record(1, 0),
        partition_record(1, 1),
        topic_record(2),
        partition_record(2, 0),
    ]
    state = after(*first, elr(1, 0), elr(2, 0), ClearElrRecord("topic-1"))
    assert in_elr(state, 1) == [PartitionRef(uuid(2), 0)]
    assert [one.partition_epoch for one in state.partitions.of_topic(uuid(1))] == [2, 0]
    state.replay(ClearElrRecord(""), 20)
    assert in_elr(state, 1) == []
    assert [one.partition_epoch for one in state.partitions.of_topic(uuid(1))] == [2, 0]
    assert [one.partition_epoch for one in state.partitions.of_topic(uuid(2))] == [2]


def test_cleared_elrs_are_undone_and_redone_wherever_their_partitions_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only ELRs are remembered: a changed min.insync.replicas may clear those of all partitions."""
    for name in ("copy_changing", "change"):
        monkeypatch.setattr(PartitionColumns, name, None)
    state = after(*(topic_record(topic) for topic in (1, 2, 3)))
    offset = count(10)
    for topic, index in product((1, 2, 3), (0, 1, 2)):
        state.replay(partition_record(topic, index), next(offset))
        if index != topic - 1:
            elr = PartitionChangeRecord(index, uuid(topic), eligible_leader_replicas=(1, 2)[:topic])
            state.replay(elr, next(offset))

    def partitions() -> list[Partition]:
        return [one for topic in (1, 2, 3) for one in state.partitions.of_topic(uuid(topic))]

    before = partitions()
    state.journal.recording = True
    cleared_at = next(offset)
    state.replay(ClearElrRecord(""), cleared_at)
    cleared = partitions()
    assert [one.elr for one in cleared] == [()] * 9
    epochs = [new.partition_epoch - old.partition_epoch for old, new in zip(before, cleared, strict=True)]
    assert epochs == [int(bool(old.elr)) for old in before]
    moves = state.partitions.moves
    for index in range(3, 40):
        state.replay(partition_record(1, index), next(offset))
    assert state.partitions.moves > moves
    redo = state.journal.undo_with_redo(cleared_at)
    assert partitions() == before
    state.journal.redo(redo[:1])
    assert partitions() == cleared
    state.undo_to(cleared_at)
    assert partitions() == before


def test_elrs_of_any_length_can_be_cleared_and_the_clearing_undone() -> None:
    state = after(topic_record(1), *(partition_record(1, index) for index in range(5)))
    lists: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((2, 1), ()),
        ((), (2,)),
        ((1,), (1, 2)),
        ((), (-1,)),
    ]
    for index, (elr, last_known) in enumerate(lists):
        change = PartitionChangeRecord(
            index, uuid(1), eligible_leader_replicas=elr, last_known_elr=last_known
        )
        state.replay(change, 10 + index)
    before = state.partitions.of_topic(uuid(1))
    assert [(one.elr, one.last_known_elr) for one in before] == [*lists, ((), ())]
    state.journal.recording = True
    state.replay(ClearElrRecord("topic-1"), 20)
    cleared = state.partitions.of_topic(uuid(1))
    assert [(one.elr, one.last_known_elr) for one in cleared] == [((), ())] * 5
    assert [one.partition_epoch for one in cleared] == [2, 2, 2, 2, 0]
    state.undo_to(20)
    assert state.partitions.of_topic(uuid(1)) == before


def test_elrs_take_no_memory_until_there_are_some() -> None:
    state = after(topic_record(1), *(partition_record(1, index) for index in range(3_000)))
    state.replay(PartitionChangeRecord(0, uuid(1), isr=(1,), leader=1), 3_001)
    assert state.partitions.columns.elrs.size_bytes == 0
    state.replay(PartitionChangeRecord(0, uuid(1), isr=(), leader=1, eligible_leader_replicas=(1,)), 3_002)
    assert state.partitions.columns.elrs.size_bytes > 0


def test_deleting_a_topic_takes_its_partitions_and_its_configuration() -> None:
    state = after(
        topic_record(1),
        partition_record(1, 0),
        ConfigRecord(2, "topic-1", "x", "1"),
        ConfigRecord(2, "other", "x", "1"),
        RemoveTopicRecord(uuid(1)),
    )
    assert len(state.topics) == len(state.partitions) == 0
    assert state.partitions.get(uuid(1), 0) is None and state.partitions.led_by(0) == []
    assert state.configs.get(2, "topic-1") == {} and state.configs.get(2, "other") == {"x": "1"}
    state.replay(topic_record(2, "topic-1"), 9)
    assert state.topics.by_name("topic-1") is not None


def test_rows_of_deleted_topics_are_used_again() -> None:
    state = MetadataState()
    for number in range(200):
        state.replay(topic_record(number), number)
        for index in range(30):
            state.replay(partition_record(number, index), number)
        if number >= 3:
            state.replay(RemoveTopicRecord(uuid(number - 3)), number)
    assert len(state.partitions) == 90
    assert state.partitions.row_count <= 4 * 30 * 2


def test_names_with_the_same_metric_name_collide() -> None:
    state = after(topic_record(1, "a.b"), topic_record(2, "x-y"))
    assert state.topics.colliding("a_b") == "a.b"
    assert state.topics.colliding("a.b") is None and state.topics.colliding("x_y") is None
    state.replay(topic_record(3, "a_b"), 5)
    assert state.topics.colliding("a_b") == "a.b" and state.topics.colliding("a.b") == "a_b"
    state.replay(RemoveTopicRecord(uuid(1)), 6)
    assert state.topics.colliding("a_b") is None and state.topics.colliding("a.b") == "a_b"
    state.replay(RemoveTopicRecord(uuid(3)), 7)
    assert state.topics.colliding("a.b") is None


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (TopicRecord("topic-1", uuid(9)), "exists already"),
        (TopicRecord("new", uuid(1)), "is taken by 'topic-1'"),
        (partition_record(5, 0), "there is no topic with id"),
        (partition_record(1, -1), "out of range"),
        (partition_record(1, 2_000_000_000), "out of range"),
        (PartitionRecord(partition_id=1, topic_id=uuid(1), leader=-2), "cannot have leader -2"),
        (PartitionRecord(partition_id=1, topic_id=uuid(1), leader_recovery_state=2), "recovery state 2"),
        (PartitionRecord(partition_id=1, topic_id=uuid(1), leader_recovery_state=-1), "recovery state -1"),
        (
            PartitionRecord(partition_id=1, topic_id=uuid(1), replicas=(1, 2), directories=(uuid(1),)),
            "1 directories",
        ),
        (PartitionChangeRecord(partition_id=0, topic_id=uuid(5)), "there is no topic with id"),
        (PartitionChangeRecord(partition_id=1, topic_id=uuid(1)), "has no partition 1"),
        (PartitionChangeRecord(partition_id=-1, topic_id=uuid(1)), "has no partition -1"),
        (PartitionChangeRecord(partition_id=0, topic_id=uuid(1), leader=-3), "cannot have leader -3"),
        (PartitionChangeRecord(partition_id=0, topic_id=uuid(1), replicas=(1, 2)), "3 directories"),
        (
            PartitionChangeRecord(partition_id=0, topic_id=uuid(1), leader_recovery_state=5),
            "recovery state 5",
        ),
        (RemoveTopicRecord(uuid(5)), "there is no topic with id"),
        (ClearElrRecord("nope"), "there is no topic named 'nope'"),
    ],
)
def test_a_record_that_contradicts_the_state_is_refused(record: Message, what: str) -> None:
    state = after(topic_record(1), partition_record(1, 0))
    with pytest.raises(ReplayError, match=what):
        state.replay(record, 2)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 150))
def test_queries_over_all_rows_agree_with_a_scan_of_the_partitions(seed: int, count: int) -> None:
    script = RecordScript(Random(seed))
    state = MetadataState()
    for offset in range(count):
        state.replay(script.next_for(state), offset)
    partitions = state.partitions
    assert len(partitions) == len(partitions_where(state, lambda one: True))
    others = partitions_where(state, lambda one: one.leader != one.preferred_leader)
    assert partitions.count_led_by_others() == len(others)
    for broker in BROKERS:
        check_broker(state, broker)
    assert sorted(partitions.led_by(NO_LEADER)) == partitions_where(
        state, lambda one: one.leader == NO_LEADER
    )


def check_broker(state: MetadataState, broker: int) -> None:
    """Check the queries for leaders, ISRs, ELRs, directories and replicas."""
    partitions = state.partitions
    led = partitions_where(state, lambda one: one.leader == broker)
    assert sorted(partitions.led_by(broker)) == led
    assert partitions.count_led_by(broker) == len(led)
    in_isr = partitions_where(state, lambda one: broker in one.isr)
    assert sorted(partitions.with_isr_member(broker)) == in_isr
    assert in_elr(state, broker) == partitions_where(state, lambda one: broker in one.elr)
    if not len(partitions):
        return
    used = np.flatnonzero(partitions.columns.leader[: partitions.row_count] != FREE)
    wanted = (uuid(100 + broker), DIRECTORY_UNASSIGNED, uuid(99_999))
    placed = partitions.refs(partitions.rows_in_directories(used, broker, wanted))
    assert sorted(placed) == partitions_where(state, lambda one: one.directory_of(broker) in wanted)
    whole = [state.partitions.get(ref.topic_id, ref.index) for ref in partitions.refs(used)]
    assert partitions.replicas_in(used) == [one.replicas for one in whole if one is not None]
    assert partitions.replication_factors(used).tolist() == [
        len(one.replicas) for one in whole if one is not None
    ]


def in_elr(state: MetadataState, broker: int) -> list[PartitionRef]:
    partitions = state.partitions
    return sorted(partitions.refs(partitions.rows_with_elr_member(broker, slice(0, partitions.row_count))))


def test_which_directories_are_reserved() -> None:
    assert is_reserved_directory(Uuid.ZERO) and is_reserved_directory(DIRECTORY_LOST)
    assert is_reserved_directory(Uuid((99).to_bytes(16, "big")))
    assert not is_reserved_directory(Uuid((100).to_bytes(16, "big")))
