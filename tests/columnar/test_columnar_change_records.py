"""Partition changes that are written from columns have the bytes of those that are written one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.columnar.change_records import MOST_MEMBERS, ChangeColumns, ElrFields, encode_changes
from kraft_wire.log.record import encode_records
from kraft_wire.metadata.partitions.cells import PAD
from kraft_wire.metadata.partitions.partition import NO_LEADER_CHANGE
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from numpy.typing import NDArray

INT32 = st.integers(0, 2**31 - 1)
LISTS = st.none() | st.lists(INT32, max_size=4).map(tuple) | st.lists(INT32, max_size=MOST_MEMBERS).map(tuple)
RECORDS = st.builds(
    PartitionChangeRecord,
    partition_id=INT32,
    topic_id=st.binary(min_size=16, max_size=16).map(Uuid),
    isr=LISTS,
    leader=st.just(NO_LEADER_CHANGE) | st.just(-1) | INT32,
    leader_recovery_state=st.sampled_from((-1, 0, 1)),
)
RECORDS_WITH_ELR = st.builds(
    lambda record, elr, last_known: msgspec.structs.replace(
        record, eligible_leader_replicas=elr, last_known_elr=last_known
    ),
    RECORDS,
    LISTS,
    st.none() | st.just(()) | st.tuples(INT32),
)


def padded(lists: list[tuple[int, ...] | None]) -> NDArray[np.int32]:
    width = max((len(each or ()) for each in lists), default=0)
    rows = [[*(each or ()), *[PAD] * (width - len(each or ()))] for each in lists]
    return np.array(rows, np.int32).reshape(len(lists), width)


def given_in(lists: list[tuple[int, ...] | None]) -> NDArray[np.bool_]:
    return np.array([each is not None for each in lists], np.bool_)


def elr_of(records: list[PartitionChangeRecord]) -> ElrFields:
    elrs = [record.eligible_leader_replicas for record in records]
    known = [-2 if (last := record.last_known_elr) is None else (*last, -1)[0] for record in records]
    return ElrFields(padded(elrs), given_in(elrs), np.array(known, np.int32))


def columns_of(records: list[PartitionChangeRecord], *, elr: bool) -> ChangeColumns:
    isrs = [record.isr for record in records]
    return ChangeColumns(
        np.frombuffer(b"".join(record.topic_id for record in records), np.uint8).reshape(-1, 16),
        np.array([record.partition_id for record in records], np.int32),
        np.array([record.leader for record in records], np.int32),
        np.array([record.leader_recovery_state for record in records], np.int8),
        padded(isrs),
        given_in(isrs),
        elr_of(records) if elr else None,
    )


def one_by_one(records: list[PartitionChangeRecord], version: int, first_delta: int) -> bytes:
    values = [encode_metadata_record(record, version) for record in records]
    return b"".join(encode_records(values, first_delta=first_delta))


FIRST_DELTAS = st.sampled_from((0, 60, 8188, 2**20 - 5)) | st.integers(0, 20_000)


@given(st.lists(RECORDS, max_size=12), st.integers(0, 2), FIRST_DELTAS)
def test_the_bytes_are_those_of_the_records_one_by_one(
    records: list[PartitionChangeRecord], version: int, first_delta: int
) -> None:
    expected = one_by_one(records, version, first_delta)
    assert encode_changes(columns_of(records, elr=False), version, first_delta) == expected


@given(st.lists(RECORDS_WITH_ELR, max_size=12), FIRST_DELTAS)
def test_the_bytes_with_elrs_are_those_of_the_records_one_by_one(
    records: list[PartitionChangeRecord], first_delta: int
) -> None:
    expected = one_by_one(records, 2, first_delta)
    assert encode_changes(columns_of(records, elr=True), 2, first_delta) == expected
