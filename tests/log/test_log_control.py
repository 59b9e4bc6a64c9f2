"""Control records: keys, messages, and records that are none."""

from __future__ import annotations

import pytest

from kraft_wire.log.batch import Batch, Record, encode_keyed_batch, split_batches
from kraft_wire.log.control import (
    ControlType,
    control_type,
    control_types,
    decode_control_batch,
    decode_control_record,
    encode_control_batch,
    starts_epoch,
)
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.log.layouts import ControlRecordKeyLayout
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.messages.voters_record import Endpoint, Voter, VotersRecord
from kraft_wire.protocol.uuid import Uuid
from tests.log.batch_samples import TIMESTAMP_MS, data_batch, leader_change, read_with_construct

ALL: list[Message] = [
    LeaderChangeMessage(leader_id=3),
    SnapshotHeaderRecord(last_contained_log_timestamp=TIMESTAMP_MS),
    SnapshotFooterRecord(),
    KRaftVersionRecord(kraft_version=1),
    VotersRecord(
        voters=[
            Voter(
                voter_id=3,
                voter_directory_id=Uuid.parse("J8aAPcfLQt2bqs1JT_rMgQ"),
                endpoints=[Endpoint(name="CONTROLLER", host="one.example", port=9093)],
            )
        ]
    ),
]


def only_batch(data: bytes) -> Batch:
    [batch], _ = split_batches(data)
    return batch


def test_every_control_record_is_read_as_it_was_written() -> None:
    batch = only_batch(encode_control_batch(17, 4, TIMESTAMP_MS, ALL))
    assert batch.header.is_control
    assert (batch.header.base_offset, batch.header.leader_epoch, batch.header.last_offset) == (17, 4, 21)
    assert decode_control_batch(batch) == ALL
    assert control_types(batch) == list(ControlType)


def test_the_declared_layouts_read_the_same_keys() -> None:
    [batch] = read_with_construct(encode_control_batch(17, 4, TIMESTAMP_MS, ALL))
    assert batch.header.attributes.is_control
    keys = [ControlRecordKeyLayout.parse(record.key) for record in batch.records]
    assert {key.version for key in keys} == {0}
    assert [str(key.type) for key in keys] == [kind.name.lower() for kind in ControlType]


def test_a_metadata_record_is_no_control_record() -> None:
    with pytest.raises(ValueError, match="FeatureLevelRecord"):
        encode_control_batch(0, 0, 0, [FeatureLevelRecord()])


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        (None, "too short"),
        (b"\x00\x00\x00", "too short"),
        (b"\xff\xff\x00\x02", "version -1"),
        (b"\x00\x00\x00\x00", "type 0"),
        (b"\x00\x00\x00\x63", "type 99"),
    ],
)
def test_keys_that_no_control_record_has(key: bytes | None, problem: str) -> None:
    record = Record(offset=9, timestamp=0, key=key, value=b"")
    for read in (control_type, decode_control_record):
        with pytest.raises(CorruptBatch, match=problem) as caught:
            read(record)
        assert caught.value.offset == 9


def test_a_later_version_of_the_key_is_read_as_java_does() -> None:
    record = Record(offset=9, timestamp=0, key=b"\x00\x05\x00\x04\x77", value=b"\x00\x00\x00")
    assert decode_control_record(record) == SnapshotFooterRecord()


def test_a_value_that_is_cut_off() -> None:
    record = Record(offset=9, timestamp=0, key=b"\x00\x00\x00\x06", value=b"\x00\x00\x05")
    with pytest.raises(CorruptBatch, match="VotersRecord"):
        decode_control_record(record)


def test_what_starts_an_epoch() -> None:
    assert starts_epoch(only_batch(leader_change(5, 2)))
    assert not starts_epoch(only_batch(data_batch(5, 2)))
    assert not starts_epoch(only_batch(encode_control_batch(5, 2, 0, [KRaftVersionRecord()])))
    assert not starts_epoch(
        only_batch(encode_keyed_batch(5, 2, 0, [(b"\x00\x00\x00\x02", b"")], attributes=0))
    )
