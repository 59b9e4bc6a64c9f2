"""The difference between two states, as records, makes the earlier one the later one."""

from __future__ import annotations

from random import Random

import pytest

from kraft_wire.exporters.records import ExportRecord, type_and_version
from kraft_wire.exporters.resync.difference import difference
from kraft_wire.metadata.snapshot import snapshot_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.metadata_record import decode_metadata_record, encode_metadata_record
from tests.support.metadata_records import RecordScript, broker_record, partition_record, topic_record

OFFSET, EPOCH, TIME_MS = 99, 3, 1_700_000_000_000


def values_of(state: MetadataState) -> list[bytes]:
    return [encode_metadata_record(record, version) for record, version in snapshot_records(state)]


def exported(values: list[bytes]) -> list[ExportRecord]:
    return [
        ExportRecord(OFFSET, index, EPOCH, TIME_MS, value, *type_and_version(value))
        for index, value in enumerate(values, start=1)
    ]


def exported_messages(*messages: Message) -> list[ExportRecord]:
    return exported([encode_metadata_record(message, message.MAX_VERSION) for message in messages])


@pytest.mark.parametrize("seed", range(40))
def test_random_states_are_made_equal_by_their_difference(seed: int) -> None:
    script = RecordScript(Random(seed), transactions=False)
    state, sink = MetadataState(), MetadataState()
    for offset in range(150 + seed):
        record = script.next_for(state)
        for each in (state, sink):
            each.replay(record, offset)
    before = values_of(state)
    for offset in range(300):
        state.replay(script.next_for(state), 10_000 + offset)
    found = difference(exported(before), exported(values_of(state)))
    for exported_record in found:
        message, _ = decode_metadata_record(exported_record.value)
        sink.replay(message, 20_000)
    assert values_of(sink) == values_of(state)
    assert len({(each.offset, each.index) for each in found}) == len(found)


def test_what_is_gone_comes_first_and_partitions_go_with_their_topic() -> None:
    before = exported_messages(topic_record(1), partition_record(1, 0), topic_record(2), broker_record(5))
    after = exported_messages(topic_record(2), topic_record(3), broker_record(5, epoch=8))
    found = difference(before, after)
    assert [(record.type, record.offset, record.index, record.epoch) for record in found] == [
        ("RemoveTopicRecord", OFFSET, -2, EPOCH),
        ("TopicRecord", OFFSET, 2, EPOCH),
        ("RegisterBrokerRecord", OFFSET, 3, EPOCH),
    ]
    assert found[0].data == {"topicId": str(topic_record(1).topic_id)}
    assert found[0].timestamp_ms == TIME_MS


def test_equal_states_differ_in_nothing() -> None:
    records = exported_messages(topic_record(1), partition_record(1, 0))
    assert difference(records, records) == []
    assert difference(records, []) == []
