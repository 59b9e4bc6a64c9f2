"""Snapshots that a separate process makes of the log and snapshots of a Java controller."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kraft_wire.log.batch import record_values, scan_batches
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.snapshot import SnapshotId, parse_snapshot_file_name
from kraft_wire.metadata.canonical import canonical
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import MissingRecords
from kraft_wire.storage.snapshots.snapshot_store import SnapshotStore
from kraft_wire.storage.snapshots.snapshotter import make_snapshot

JAVA_FOLDER = Path(__file__).parents[1] / "metadata" / "java-4.4.0"


def _id_of(path: Path) -> SnapshotId:
    snapshot_id = parse_snapshot_file_name(path.name)
    assert snapshot_id is not None
    return snapshot_id


JAVA_SNAPSHOTS = {_id_of(path): path for path in sorted(JAVA_FOLDER.glob("*.checkpoint"))}
OLDEST, *LATER = JAVA_SNAPSHOTS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the log alone."""
    shutil.copy(JAVA_FOLDER / "00000000000000000000.log", tmp_path)
    return tmp_path


def _load(folder: Path, snapshot_id: SnapshotId) -> MetadataState:
    batches = SnapshotStore(folder, Disk()).batches(snapshot_id)
    values = [value for batch in batches if not batch.header.is_control for value in record_values(batch)]
    records = [decode_metadata_record(value)[0] for value in values]
    return MetadataState.from_snapshot(records, snapshot_id.end_offset - 1)


@pytest.mark.parametrize("snapshot_id", JAVA_SNAPSHOTS, ids=lambda id: str(id.end_offset))
def test_a_snapshot_of_the_log_holds_what_javas_holds(folder: Path, snapshot_id: SnapshotId) -> None:
    make_snapshot(folder, snapshot_id)
    ours, java = _load(folder, snapshot_id), _load(JAVA_FOLDER, snapshot_id)
    assert canonical(ours, offsets=False) == canonical(java, offsets=False)


@pytest.mark.parametrize("snapshot_id", LATER, ids=lambda id: str(id.end_offset))
def test_a_snapshot_builds_on_the_one_before(folder: Path, snapshot_id: SnapshotId) -> None:
    """Nothing before the older snapshot's end is read: the log may begin there."""
    shutil.copy(JAVA_SNAPSHOTS[OLDEST], folder)
    log = folder / "00000000000000000000.log"
    make_snapshot(folder, snapshot_id)
    expected = canonical(_load(folder, snapshot_id), offsets=False)
    (folder / JAVA_SNAPSHOTS[snapshot_id].name).unlink()
    data = bytearray(log.read_bytes())
    _blank_records_below(data, OLDEST.end_offset)
    log.write_bytes(data)
    make_snapshot(folder, snapshot_id)
    assert canonical(_load(folder, snapshot_id), offsets=False) == expected


def _blank_records_below(data: bytearray, end_offset: int) -> None:
    """Replace every batch below an offset by a control batch of an unknown type, with a valid checksum."""
    import google_crc32c

    for position, header in list(scan_batches(bytes(data))):
        if header.next_offset <= end_offset:
            data[position + 21 : position + 23] = (0x20).to_bytes(2, "big")
            end = position + header.size_bytes
            crc = google_crc32c.value(bytes(data[position + 21 : end]))
            data[position + 17 : position + 21] = crc.to_bytes(4, "big")


def test_header_and_voters_go_into_the_snapshot(folder: Path) -> None:
    snapshot_id = LATER[-1]
    written = make_snapshot(folder, snapshot_id)
    store = SnapshotStore(folder, Disk())
    first = next(store.batches(snapshot_id))
    header, *control = decode_control_batch(first)
    assert isinstance(header, SnapshotHeaderRecord)
    assert header.last_contained_log_timestamp == written.last_contained_log_timestamp_ms > 0
    java = next(SnapshotStore(JAVA_FOLDER, Disk()).batches(snapshot_id))
    _, *java_control = decode_control_batch(java)
    assert control == java_control
    assert any(isinstance(message, VotersRecord) for message in control)
    assert written.size_bytes == store.size_bytes(snapshot_id)


def test_a_log_that_ends_too_early_makes_no_snapshot(folder: Path) -> None:
    beyond = SnapshotId(1_000_000, 1)
    with pytest.raises(MissingRecords, match="1000000"):
        make_snapshot(folder, beyond)
    assert [path.name for path in folder.iterdir()] == ["00000000000000000000.log"]


def test_what_is_being_written_behind_the_end_is_not_looked_at(folder: Path) -> None:
    whole = make_snapshot(folder, OLDEST)
    log = folder / "00000000000000000000.log"
    ends = {header.next_offset: at + header.size_bytes for at, header in scan_batches(log.read_bytes())}
    with log.open("r+b") as file:
        file.truncate(ends[OLDEST.end_offset] + 70)
    assert make_snapshot(folder, OLDEST) == whole


def test_the_process_says_what_it_wrote(folder: Path) -> None:
    snapshot_id = LATER[-1]
    arguments = [str(folder), str(snapshot_id.end_offset), str(snapshot_id.epoch), "0"]
    command = [sys.executable, "-m", "kraft_wire.storage.snapshots.snapshotter", *arguments]
    readable, writable = os.pipe()
    try:
        result = subprocess.run(command, stdin=readable, capture_output=True, check=True)
    finally:
        os.close(readable)
        os.close(writable)
    told = json.loads(result.stdout)
    assert told["snapshot_id"] == list(snapshot_id)
    assert told["size_bytes"] == (folder / JAVA_SNAPSHOTS[snapshot_id].name).stat().st_size
