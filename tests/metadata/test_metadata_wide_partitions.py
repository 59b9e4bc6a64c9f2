"""A partition with many replicas makes the columns of the others no wider."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from kraft_wire.metadata.canonical import canonical
from kraft_wire.metadata.partitions.partition import Partition, PartitionRef
from kraft_wire.metadata.partitions.rare import WIDEST
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from tests.support.metadata_records import partition_record, topic_record, uuid

REPLICAS = tuple(range(100))
DIRECTORIES = tuple(uuid(1_000 + broker_id) for broker_id in REPLICAS)


def wide_record(index: int, replicas: tuple[int, ...] = REPLICAS) -> PartitionRecord:
    record = PartitionRecord(index, uuid(1), replicas, replicas, leader=7, leader_epoch=0, partition_epoch=0)
    record.directories = DIRECTORIES[: len(replicas)]
    return record


def after(*records: Message) -> MetadataState:
    """Return a state with one topic of a narrow partition and a wide one, and what the records made of it."""
    state = MetadataState()
    for offset, record in enumerate([topic_record(1), partition_record(1, 0), wide_record(1), *records]):
        state.replay(record, offset)
    return state


def wide(state: MetadataState) -> Partition:
    partition = state.partitions.get(uuid(1), 1)
    assert partition is not None
    return partition


def test_the_columns_stay_narrow() -> None:
    state = after()
    assert state.partitions.columns.width == 3
    assert (wide(state).replicas, wide(state).isr) == (REPLICAS, REPLICAS)
    assert wide(state).directories == DIRECTORIES


def test_the_columns_hold_lists_up_to_the_limit() -> None:
    state = after(wide_record(2, REPLICAS[:WIDEST]), wide_record(3, REPLICAS[: WIDEST + 1]))
    assert state.partitions.columns.width == WIDEST


def test_it_is_found_by_its_brokers_and_directories() -> None:
    partitions = after().partitions
    ref, both = PartitionRef(uuid(1), 1), np.arange(partitions.row_count)
    assert partitions.with_isr_member(99) == [ref]
    assert partitions.refs(partitions.rows_in_directories(both, 99, [uuid(1_099)])) == [ref]
    assert partitions.refs(partitions.rows_in_directories(both, 99, [uuid(1_098)])) == []


def test_elrs_of_wide_partitions_are_cleared_with_the_others() -> None:
    eligible = PartitionChangeRecord(1, uuid(1), isr=(7,), eligible_leader_replicas=REPLICAS[10:20])
    state = after(eligible)
    partitions = state.partitions
    rows = partitions.rows_with_elr_member(15, slice(0, partitions.row_count))
    assert partitions.refs(rows) == [PartitionRef(uuid(1), 1)]
    epoch = wide(state).partition_epoch
    state.replay(ClearElrRecord(""), 4)
    assert (wide(state).elr, wide(state).partition_epoch) == ((), epoch + 1)


def test_an_isr_alone_can_be_too_long() -> None:
    state = after(PartitionChangeRecord(0, uuid(1), isr=REPLICAS))
    assert state.partitions.columns.width == 3
    assert state.partitions.with_isr_member(99)[0] == PartitionRef(uuid(1), 0)


def test_it_gets_narrow_and_wide_again_and_a_change_is_undone() -> None:
    state = after()
    state.journal.recording = True
    before = canonical(state, offsets=True)
    state.replay(PartitionChangeRecord(1, uuid(1), replicas=(1, 2), isr=(1,), directories=DIRECTORIES[:2]), 3)
    narrow = canonical(state, offsets=True)
    assert (wide(state).replicas, wide(state).isr) == ((1, 2), (1,))
    assert state.partitions.with_isr_member(99) == []
    state.replay(
        PartitionChangeRecord(1, uuid(1), replicas=REPLICAS, isr=REPLICAS, directories=DIRECTORIES), 4
    )
    assert wide(state).isr == REPLICAS
    state.undo_to(4)
    assert canonical(state, offsets=True) == narrow
    state.undo_to(3)
    assert canonical(state, offsets=True) == before


@pytest.mark.parametrize("change", [{"leader": 8}, {"isr": (7, 8)}, {"isr": REPLICAS[:50], "leader": 9}])
def test_many_changes_in_a_batch_reach_it(change: dict[str, object]) -> None:
    """A batch of so many changes is replayed in columns, which don't have its lists."""
    partitions = [partition_record(1, index) for index in range(2, 40)]
    changes = [
        msgspec.structs.replace(PartitionChangeRecord(index, uuid(1)), **change) for index in range(40)
    ]
    one_by_one = after(*partitions, *changes)
    in_batches = after(*partitions)
    values = [encode_metadata_record(each, 0) for each in changes]
    in_batches.replay_values(values, 41)
    assert canonical(in_batches) == canonical(one_by_one)
