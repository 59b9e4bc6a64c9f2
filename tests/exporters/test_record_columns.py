"""Records in columns are the same records as one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kraft_wire.columnar.gather import Malformed
from kraft_wire.exporters.arrow_lines import lines_of
from kraft_wire.exporters.arrow_rows import table_of
from kraft_wire.exporters.columns import (
    ColumnRecords,
    SnapshotPart,
    log_columns,
    part_records,
    snapshot_columns,
)
from kraft_wire.exporters.filters import Filter
from kraft_wire.exporters.json_form import json_text
from kraft_wire.exporters.reading import FolderReader
from kraft_wire.exporters.records import ExportBatch, ExportRecord, log_records
from kraft_wire.exporters.settings import FilterSettings
from kraft_wire.log.batch import Batch, encode_batch, split_batches
from kraft_wire.log.control import encode_control_batch
from kraft_wire.log.snapshot import SnapshotId, encode_snapshot
from kraft_wire.protocol.messages import METADATA_RECORDS
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.registry import message_class
from tests.support.metadata_logs import LogWriter
from tests.support.random_messages import random_message

NEW_TYPE = b"\x01\x63\x00\x07"
CUT = b"\x01\x02\x00\xff"
FILTERS = [
    FilterSettings(),
    FilterSettings(no_op=True),
    FilterSettings(types=("TopicRecord", "PartitionRecord", "LeaderChangeMessage")),
    FilterSettings(types=("Unknown",)),
]


def _values(random: Random, count: int) -> list[bytes]:
    """Return records of all types and versions, and one of a type that nobody knows."""
    values = [NEW_TYPE]
    for name in random.choices(list(METADATA_RECORDS.values()), k=count - 1):
        record_class = message_class(name)
        version = random.randint(record_class.MIN_VERSION, record_class.MAX_VERSION)
        message = random_message(random, record_class, version, unknown_tags=False)
        values.append(encode_metadata_record(message, version))
    random.shuffle(values)
    return values


def _log(random: Random, first_offset: int, batch_count: int) -> list[Batch]:
    data, offset = b"", first_offset
    for number in range(batch_count):
        if number % 3 == 2:
            data += encode_control_batch(offset, 4, 1_700_000_000_000, [LeaderChangeMessage(leader_id=7)])
            offset += 1
        else:
            values = _values(random, random.randint(1, 60))
            data += encode_batch(offset, 3 + number, 1_700_000_000_000 + number, values)
            offset += len(values)
    return split_batches(data)[0]


def _fields(records: Sequence[ExportRecord]) -> list[tuple[Any, ...]]:
    return [
        (each.offset, each.index, each.epoch, each.timestamp_ms, each.value, each.type, each.version)
        for each in records
    ]


def _check(columns: ColumnRecords, records: Sequence[ExportRecord]) -> None:
    assert len(columns) == len(records)
    assert bool(columns) is bool(records)
    if not records:
        return
    assert _fields([columns[0], columns[-1]]) == _fields([records[0], records[-1]])
    in_columns, one_by_one = ExportBatch("a", columns), ExportBatch("a", records)
    assert table_of(in_columns).to_pylist() == table_of(one_by_one).to_pylist()
    assert lines_of(in_columns) == b"".join(json_text("a", each) + b"\n" for each in records)
    assert _fields(list(columns)) == _fields(records)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("wanted", FILTERS)
def test_a_part_of_the_log(seed: int, wanted: FilterSettings) -> None:
    random = Random(seed)
    batches = _log(random, 1000, random.randint(1, 6))
    from_offset = random.randint(1000, batches[0].header.last_offset)
    found = [each for batch in batches for each in log_records(batch) if each.offset >= from_offset]
    records = list(filter(Filter(wanted).takes, found))
    _check(log_columns(batches, Filter(wanted), from_offset), records)


@pytest.mark.parametrize("wanted", FILTERS)
def test_a_snapshot(wanted: FilterSettings) -> None:
    snapshot_id = SnapshotId(5000, 9)
    data = b"".join(encode_snapshot(snapshot_id, [], _values(Random(1), 300), 1_700_000_000_000, 7))
    batches = split_batches(data)[0]
    first_indexes, index = [], 1
    for batch in batches:
        first_indexes.append(index)
        index += 0 if batch.header.is_control else batch.header.record_count
    part = SnapshotPart(snapshot_id, 1_700_000_000_000, first_indexes)
    records = list(filter(Filter(wanted).takes, part_records(batches, part)))
    _check(snapshot_columns(batches, Filter(wanted), part), records)


def test_a_record_that_can_not_be_decoded_is_shown_as_it_is() -> None:
    values = [*_values(Random(1), 30), CUT]
    batches = split_batches(encode_batch(0, 1, 1_000, values))[0]
    records = list(log_records(batches[0]))
    _check(log_columns(batches, Filter(FilterSettings(no_op=True)), 0), records)


def test_unusual_records_are_not_read_in_columns() -> None:
    batches = split_batches(encode_batch(0, 1, 1_000, [b""]))[0]
    with pytest.raises(Malformed):
        log_columns(batches, Filter(FilterSettings()), 0)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LogWriter]:
    found = LogWriter(tmp_path / "data")
    yield found
    found.close()


def test_many_records_are_read_in_columns_and_unusual_ones_one_by_one(
    writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kraft_wire.exporters.reading.MANY", 10)
    writer.append(20)
    writer.log.append([encode_batch(21, 1, 1_000, [b"", *[NEW_TYPE] * 11])])
    reader = FolderReader(writer.partition, Filter(FilterSettings()), read_bytes=1)
    control = reader.read_log(0, 1).records
    usual = reader.read_log(1, 21).records
    unusual = reader.read_log(21, 33).records
    assert [isinstance(each, ColumnRecords) for each in (control, usual, unusual)] == [False, True, False]
    assert [each.offset for each in (*control, *usual, *unusual)] == list(range(33))
    topics = FolderReader(writer.partition, Filter(FilterSettings(topics=("topic-3",))))
    assert [each.offset for each in topics.read_log(0, 21).records] == [3]


def test_a_snapshot_is_read_in_columns(writer: LogWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraft_wire.exporters.reading.MANY", 10)
    writer.append(50)
    snapshot_id = writer.snapshot()
    selection = FolderReader(writer.partition, Filter(FilterSettings())).read_snapshot(snapshot_id)
    assert isinstance(selection.records, ColumnRecords)
    places = [(record.offset, record.index) for record in selection.records]
    assert places == [(50, index) for index in range(1, 52)]
