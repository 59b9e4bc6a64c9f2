"""What records change: before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kraft_wire.exporters.changes import Changes
from kraft_wire.exporters.filters import Filter
from kraft_wire.exporters.json_form import json_fields
from kraft_wire.exporters.reading import FolderReader
from kraft_wire.exporters.records import ExportRecord
from kraft_wire.exporters.settings import FilterSettings
from kraft_wire.log.batch import encode_batch
from kraft_wire.metadata.snapshot import snapshot_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.uuid import Uuid
from tests.support.metadata_logs import LogWriter
from tests.support.metadata_records import RecordScript

BROKER = 4
UNKNOWN_TYPE = b"\x01\x63\x00\x00"


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LogWriter]:
    """A log with a LeaderChange at offset 0."""
    found = LogWriter(tmp_path / "data")
    yield found
    found.close()


def append(writer: LogWriter, *values: Message | bytes) -> None:
    """Append records as one batch."""
    encoded = [
        value if isinstance(value, bytes) else encode_metadata_record(value, value.MAX_VERSION)
        for value in values
    ]
    writer.log.append([encode_batch(writer.end_offset, writer.epoch, 0, encoded)])
    writer.log.flush()


def read(writer: LogWriter, offset: int = 1, **wanted: Any) -> list[ExportRecord]:
    """Read the log in parts, with what records change."""
    reader = FolderReader(
        writer.partition, Filter(FilterSettings(**wanted)), with_changes=True, read_bytes=200
    )
    found: list[ExportRecord] = []
    while offset < writer.end_offset:
        selection = reader.read_log(offset, writer.end_offset)
        assert selection.next_offset is not None
        found += selection.records
        offset = selection.next_offset
    reader.close()
    return found


def changes_of(records: Sequence[ExportRecord]) -> list[tuple[int, Any, Any]]:
    return [(record.offset, record.before, record.after) for record in records if record.has_change]


def setting(value: str | None) -> ConfigRecord:
    return ConfigRecord(BROKER, "", "log.retention.ms", value)


def test_a_configuration_has_its_value_before_and_after(writer: LogWriter) -> None:
    append(writer, setting("1"), setting("2"))
    append(writer, setting(None))
    one, two = (setting(value).to_json(0) for value in ("1", "2"))
    assert changes_of(read(writer)) == [(1, None, one), (2, one, two), (3, two, None)]


def test_a_topic_is_there_after_its_record_and_not_after_its_removal(writer: LogWriter) -> None:
    topic = TopicRecord("t", Uuid(b"t" * 16))
    append(writer, topic)
    append(writer, RemoveTopicRecord(topic.topic_id))
    shown = topic.to_json(0)
    assert changes_of(read(writer)) == [(1, None, shown), (2, shown, None)]


def test_records_that_are_about_nothing_say_nothing(writer: LogWriter) -> None:
    append(writer, NoOpRecord())
    records = read(writer, no_op=True)
    assert [record.type for record in records] == ["NoOpRecord"]
    assert "before" not in json_fields("c", records[0])


def test_the_json_form_has_both(writer: LogWriter) -> None:
    append(writer, setting("1"))
    (record,) = read(writer)
    fields = json_fields("c", record)
    assert (fields["before"], fields["after"]) == (None, setting("1").to_json(0))


def test_what_a_filter_leaves_out_counts_nevertheless(writer: LogWriter) -> None:
    append(
        writer, FeatureLevelRecord("metadata.version", 33), setting("1"), TopicRecord("t", Uuid(b"t" * 16))
    )
    append(writer, setting("2"))
    found = read(writer, offset=4, types=("ConfigRecord",))
    assert changes_of(found) == [(4, setting("1").to_json(0), setting("2").to_json(0))]


def scripted(writer: LogWriter, seed: int, count: int) -> None:
    """Append random records, in batches of random sizes."""
    random, state = Random(seed), MetadataState()
    script = RecordScript(random, transactions=False)
    offset = writer.end_offset
    batch: list[Message] = []
    for _ in range(count):
        record = script.next_for(state)
        state.replay(record, offset)
        offset += 1
        batch.append(record)
        if random.random() < 0.3:
            append(writer, *batch)
            batch = []
    if batch:
        append(writer, *batch)


@pytest.mark.parametrize("seed", range(5))
def test_from_any_offset_the_changes_are_the_same(writer: LogWriter, seed: int) -> None:
    scripted(writer, seed, 150)
    whole = changes_of(read(writer))
    assert len(whole) > 100
    for offset in (2, 50, 51, 52, 149):
        assert changes_of(read(writer, offset)) == [each for each in whole if each[0] >= offset]


@pytest.mark.parametrize("seed", range(5))
def test_what_is_after_one_record_is_before_the_next_one_of_the_same(writer: LogWriter, seed: int) -> None:
    """And at the end it is what a snapshot would have."""
    scripted(writer, seed, 300)
    last: dict[object, Any] = {}
    state = MetadataState()
    for record in read(writer):
        message = record.message
        assert message is not None
        state.replay(message, record.offset)
        if isinstance(message, ConfigRecord):
            key = (message.resource_type, message.resource_name, message.name)
            if message.resource_type != 2:  # a topic that is removed takes its own with it
                assert record.before == last.get(key)
                last[key] = record.after
    in_snapshot = {
        (record.resource_type, record.resource_name, record.name): record.to_json(version)
        for record, version in snapshot_records(state)
        if isinstance(record, ConfigRecord) and record.resource_type != 2
    }
    assert {key: value for key, value in last.items() if value is not None} == in_snapshot


def test_after_a_record_of_a_newer_release_nothing_is_said(writer: LogWriter) -> None:
    append(writer, setting("1"))
    append(writer, UNKNOWN_TYPE)
    append(writer, setting("2"))
    records = read(writer)
    assert [record.offset for record in records] == [1, 2, 3], "all are exported"
    assert [record.has_change for record in records] == [True, False, False]


def test_a_part_that_is_read_again_is_applied_again() -> None:
    loads: list[int] = []

    def load(offset: int) -> MetadataState:
        loads.append(offset)
        return MetadataState()

    changes = Changes(load)
    for end in (None, 9, 9):
        changes.begin_at(5)
        changes.apply(ExportRecord(5, 0, 1, 0, b"", "NoOpRecord", 0, True, NoOpRecord()), is_wanted=True)
        if end is not None:
            changes.end_at(end)
    assert loads == [5, 5, 5]
    changes.begin_at(9)
    assert loads == [5, 5, 5]
