"""Partition changes that are written from columns have the bytes of those that are written one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.columnar.change_records import MOST_MEMBERS, ChangeColumns, encode_changes
from kraft_wire.log.record import encode_records
from kraft_wire.metadata.partitions.columns import PAD
from kraft_wire.metadata.partitions.partition import NO_LEADER_CHANGE
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.uuid import Uuid

INT32 = st.integers(0, 2**31 - 1)
RECORDS = st.builds(
    PartitionChangeRecord,
    partition_id=INT32,
    topic_id=st.binary(min_size=16, max_size=16).map(Uuid),
    isr=st.none()
    | st.lists(INT32, max_size=4).map(tuple)
    | st.lists(INT32, max_size=MOST_MEMBERS).map(tuple),
    leader=st.just(NO_LEADER_CHANGE) | st.just(-1) | INT32,
    leader_recovery_state=st.sampled_from((-1, 0, 1)),
)


def columns_of(records: list[PartitionChangeRecord]) -> ChangeColumns:
    width = max((len(record.isr or ()) for record in records), default=0)
    isr = [[*(record.isr or ()), *[PAD] * (width - len(record.isr or ()))] for record in records]
    return ChangeColumns(
        np.frombuffer(b"".join(record.topic_id for record in records), np.uint8).reshape(-1, 16),
        np.array([record.partition_id for record in records], np.int32),
        np.array([record.leader for record in records], np.int32),
        np.array([record.leader_recovery_state for record in records], np.int8),
        np.array(isr, np.int32).reshape(len(records), width),
        np.array([record.isr is not None for record in records], np.bool_),
    )


@given(
    st.lists(RECORDS, max_size=12),
    st.integers(0, 2),
    st.sampled_from((0, 60, 8188, 2**20 - 5)) | st.integers(0, 20_000),
)
def test_the_bytes_are_those_of_the_records_one_by_one(
    records: list[PartitionChangeRecord], version: int, first_delta: int
) -> None:
    values = [encode_metadata_record(record, version) for record in records]
    expected = b"".join(encode_records(values, first_delta=first_delta))
    assert encode_changes(columns_of(records), version, first_delta) == expected
