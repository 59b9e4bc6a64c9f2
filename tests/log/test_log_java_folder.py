"""Files of a Java 4.4.0 controller can be read, and written again byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_wire.log.batch import Batch, encode_batch, iter_records, record_values, split_batches
from kraft_wire.log.control import (
    ControlType,
    control_types,
    decode_control_batch,
    encode_control_batch,
    starts_epoch,
)
from kraft_wire.log.snapshot import encode_snapshot, parse_snapshot_file_name, verify_snapshot
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record, encode_metadata_record
from tests.log.batch_samples import JAVA_FOLDER, JAVA_SEGMENTS, JAVA_SNAPSHOTS, read_with_construct

FORMATTED = sorted(JAVA_FOLDER.glob("*.checkpoint"))


def written_again(batch: Batch) -> bytes:
    header = batch.header
    start = (header.base_offset, header.leader_epoch, header.base_timestamp)
    if header.is_control:
        return encode_control_batch(*start, decode_control_batch(batch))
    decoded = (decode_metadata_record(value) for value in record_values(batch))
    return encode_batch(*start, [encode_metadata_record(record, version) for record, version in decoded])


@pytest.mark.parametrize("file", [*JAVA_SEGMENTS, *JAVA_SNAPSHOTS, *FORMATTED], ids=lambda path: path.name)
def test_every_batch_is_the_same_when_written_again(file: Path) -> None:
    data = file.read_bytes()
    batches, consumed = split_batches(data)
    assert consumed == len(data)
    assert b"".join(map(written_again, batches)) == data


@pytest.mark.parametrize("file", [*JAVA_SEGMENTS, *JAVA_SNAPSHOTS, *FORMATTED], ids=lambda path: path.name)
def test_the_declared_layouts_read_the_same_records(file: Path) -> None:
    data = file.read_bytes()
    batches, _ = split_batches(data)
    second = read_with_construct(data)
    assert len(batches) == len(second)
    for batch, other in zip(batches, second, strict=True):
        assert batch.header.size_bytes == other.end - other.start
        assert batch.header.crc == other.header.crc
        assert batch.header.is_control == other.header.attributes.is_control
        keys_and_values = [(record.key or b"", record.value) for record in iter_records(batch)]
        assert keys_and_values == [(record.key, record.value) for record in other.records]


def test_the_segments_are_one_log_and_each_epoch_begins_with_its_leader() -> None:
    batches = [batch for file in JAVA_SEGMENTS for batch in split_batches(file.read_bytes())[0]]
    next_offset, epoch = 0, 0
    for batch in batches:
        assert batch.header.base_offset == next_offset
        assert starts_epoch(batch) == (batch.header.leader_epoch > epoch)
        next_offset, epoch = batch.header.next_offset, batch.header.leader_epoch
    assert (next_offset, epoch) == (115, 3)
    leader_changes = [decode_control_batch(batch)[0] for batch in batches if starts_epoch(batch)]
    assert [change.leader_id for change in leader_changes if isinstance(change, LeaderChangeMessage)] == [
        1,
        1,
        1,
    ]


@pytest.mark.parametrize("file", JAVA_SNAPSHOTS, ids=lambda path: path.name)
def test_a_snapshot_made_again_is_equal_except_for_when_it_was_made(file: Path) -> None:
    data = file.read_bytes()
    snapshot_id = parse_snapshot_file_name(file.name)
    assert snapshot_id is not None
    batches = verify_snapshot(data)
    header, *control = decode_control_batch(batches[0])
    assert isinstance(header, SnapshotHeaderRecord)
    values = [value for batch in batches[1:-1] for value in record_values(batch)]
    now_ms = batches[0].header.base_timestamp
    again = list(encode_snapshot(snapshot_id, control, values, header.last_contained_log_timestamp, now_ms))
    assert len(again) == len(batches)
    for mine, batch in zip(again, batches, strict=True):
        assert without_times(mine) == without_times(batch.data)
    assert again[0] == batches[0].data


def without_times(batch: bytes) -> bytes:
    """Return a batch without its checksum and its two timestamps."""
    return batch[:17] + batch[21:27] + batch[43:]


@pytest.mark.parametrize(
    ("name", "control"),
    [
        ("initial-controllers", [ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]),
        ("no-initial-controllers", [ControlType.KRAFT_VERSION]),
        ("static-voters", []),
    ],
)
def test_what_format_puts_before_the_bootstrap_records(name: str, control: list[ControlType]) -> None:
    batches = verify_snapshot((JAVA_FOLDER / f"{name}.checkpoint").read_bytes())
    assert control_types(batches[0]) == [ControlType.SNAPSHOT_HEADER, *control]
    assert [batch.header.is_control for batch in batches] == [True, False, True]
