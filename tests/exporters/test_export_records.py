"""Records on their way to a sink."""

from __future__ import annotations

import pytest

from kraft_wire.exporters.records import (
    UNKNOWN,
    UNKNOWN_VERSION,
    ExportBatch,
    ExportRecord,
    log_records,
    snapshot_records,
    type_and_version,
)
from kraft_wire.log.batch import Batch, encode_batch, split_batches
from kraft_wire.log.control import encode_control_batch
from kraft_wire.log.snapshot import SnapshotId, encode_snapshot
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from tests.exporters.export_samples import exported, of_value
from tests.support.metadata_records import topic_record

TOPIC = encode_metadata_record(topic_record(1), 0)


def _batch(data: bytes) -> Batch:
    (batch,), _ = split_batches(data)
    return batch


def test_records_of_the_log_have_their_own_offset_and_index_0() -> None:
    batch = _batch(encode_batch(7, 3, 1234, [TOPIC, encode_metadata_record(NoOpRecord(), 0)]))
    first, second = log_records(batch)
    assert (first.offset, first.index, first.epoch, first.timestamp_ms) == (7, 0, 3, 1234)
    assert (first.type, first.version, second.type) == ("TopicRecord", 0, "NoOpRecord")
    assert first.data == {"name": "topic-1", "topicId": str(topic_record(1).topic_id)}
    assert second.id_in("c") == "c/8/0"


def test_control_records_are_records_too() -> None:
    batch = _batch(encode_control_batch(7, 3, 1234, [LeaderChangeMessage(leader_id=5)]))
    (record,) = log_records(batch)
    assert (record.offset, record.type, record.version, record.problem) == (7, "LeaderChangeMessage", 0, "")
    assert record.data is not None
    assert record.data["leaderId"] == 5


def test_records_of_a_snapshot_share_an_offset_and_are_counted_from_1() -> None:
    snapshot_id = SnapshotId(100, 4)
    control = [KRaftVersionRecord(kraft_version=1)]
    data = b"".join(encode_snapshot(snapshot_id, control, [TOPIC] * 1025, 99, 1))
    found: list[ExportRecord] = []
    for batch in split_batches(data)[0]:
        found += snapshot_records(batch, snapshot_id, 99, len(found) + 1)
    assert [record.index for record in found] == list(range(1, 1027))
    assert {(record.offset, record.epoch, record.timestamp_ms) for record in found} == {(99, 4, 99)}
    assert [record.type for record in found[:2]] == ["KRaftVersionRecord", "TopicRecord"]


@pytest.mark.parametrize(
    ("value", "type", "version", "problem"),
    [
        (b"\x01\x64\x00\x07", UNKNOWN, 0, "there is no record 100"),
        (b"\x01\x02\x09" + TOPIC[3:], "TopicRecord", 9, "TopicRecord"),
        (b"\x02\x02\x00" + TOPIC[3:], UNKNOWN, UNKNOWN_VERSION, "frame version"),
        (b"\x01\x80\x01\x00", UNKNOWN, 0, "there is no record 128"),
        (b"\x01", UNKNOWN, UNKNOWN_VERSION, "the record ends here"),
        (b"", UNKNOWN, UNKNOWN_VERSION, "the record ends here"),
        (TOPIC + b"\x00", "TopicRecord", 0, "1 bytes follow the record"),
    ],
)
def test_a_record_that_can_not_be_decoded_says_why(
    value: bytes, type: str, version: int, problem: str
) -> None:
    record = of_value(value)
    assert (record.type, record.version) == (type, version)
    assert record.message is None
    assert record.data is None
    assert problem in record.problem
    assert record.value == value


def test_the_type_is_known_without_decoding() -> None:
    assert type_and_version(TOPIC[:3]) == ("TopicRecord", 0)
    assert not exported(topic_record(1)).is_decoded


def test_a_batch_knows_its_offsets() -> None:
    batch = ExportBatch("c", [exported(NoOpRecord(), 5), exported(NoOpRecord(), 9)])
    assert (batch.first_offset, batch.last_offset) == (5, 9)
