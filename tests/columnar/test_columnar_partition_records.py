"""New partitions that are written from columns have the bytes of those that are written one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.columnar.partition_records import (
    FIRST_VERSION,
    encode_new_partitions,
    new_partition_values,
)
from kraft_wire.log.record import encode_records
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.uuid import Uuid

BROKER = st.integers(0, 2**31 - 1)
DIRECTORY = st.binary(min_size=16, max_size=16).map(Uuid)
REPLICA = st.tuples(BROKER, DIRECTORY)
MOST_REPLICAS = 140


@st.composite
def partitions(draw: st.DrawFn) -> list[list[tuple[int, Uuid]]]:
    """Return the replicas of some partitions, equally many of each."""
    factor = draw(st.integers(1, 4) | st.integers(1, MOST_REPLICAS))
    replicas = st.lists(REPLICA, min_size=factor, max_size=factor)
    return draw(st.lists(replicas, min_size=1, max_size=8))


@given(
    partitions(),
    DIRECTORY,
    st.integers(0, 2**31 - 10),
    st.integers(FIRST_VERSION, PartitionRecord.MAX_VERSION),
    st.sampled_from((0, 60, 8188, 2**20 - 5)) | st.integers(0, 20_000),
)
def test_the_bytes_are_those_of_the_records_one_by_one(
    rows: list[list[tuple[int, Uuid]]], topic_id: Uuid, first_index: int, version: int, first_delta: int
) -> None:
    values = one_by_one(rows, topic_id, first_index, version)
    replicas = np.array([[broker for broker, _ in row] for row in rows], np.int32)
    directories = np.frombuffer(b"".join(each for row in rows for _, each in row), np.uint8)
    found = encode_new_partitions(
        topic_id, first_index, replicas, directories.reshape(len(rows), -1), version, first_delta
    )
    assert found == b"".join(encode_records(values, first_delta=first_delta))


@given(
    st.dictionaries(BROKER, DIRECTORY, min_size=1, max_size=6),
    st.data(),
    DIRECTORY,
    st.integers(0, 2**31 - 10),
    st.integers(FIRST_VERSION, PartitionRecord.MAX_VERSION),
)
def test_few_partitions_that_share_brokers_have_the_values_of_the_records(
    directories: dict[int, Uuid], data: st.DataObject, topic_id: Uuid, first_index: int, version: int
) -> None:
    some = st.lists(st.sampled_from(sorted(directories)), min_size=1, max_size=6)
    assignments = data.draw(st.lists(some, max_size=8))
    rows = [[(broker, directories[broker]) for broker in assignment] for assignment in assignments]
    found = new_partition_values(topic_id, first_index, assignments, directories, version)
    assert found == one_by_one(rows, topic_id, first_index, version)


def one_by_one(
    rows: list[list[tuple[int, Uuid]]], topic_id: Uuid, first_index: int, version: int
) -> list[bytes]:
    records = [
        PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=tuple(broker for broker, _ in row),
            isr=tuple(broker for broker, _ in row),
            leader=row[0][0],
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple(directory for _, directory in row),
        )
        for index, row in enumerate(rows, first_index)
    ]
    return [encode_metadata_record(record, version) for record in records]
