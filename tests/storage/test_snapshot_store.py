"""Snapshots on disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_wire.log.batch import record_values
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotId, encode_snapshot
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import CorruptSnapshot, DiskFailed
from kraft_wire.storage.snapshots.snapshot_store import (
    SnapshotStore,
    bootstrap_values,
    write_snapshot,
)
from tests.storage.storage_samples import TIMESTAMP_MS, flip

ID = SnapshotId(305, 3)
VALUES = [b"value %d" % n for n in range(2000)]
PIECES = list(
    encode_snapshot(ID, [KRaftVersionRecord(kraft_version=1)], VALUES, TIMESTAMP_MS, TIMESTAMP_MS + 9)
)
WHOLE = b"".join(PIECES)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SnapshotStore]:
    store = SnapshotStore(tmp_path, Disk())
    yield store
    store.close()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_snapshot_is_read_as_it_was_written(store: SnapshotStore) -> None:
    assert store.write(ID, PIECES) == len(WHOLE)
    assert names(store.folder) == ["00000000000000000305-0000000003.checkpoint"]
    assert store.path(ID).stat().st_mode & 0o777 == 0o400
    assert (store.ids, store.latest, store.earliest) == ([ID], ID, ID)
    assert store.size_bytes(ID) == len(WHOLE)
    assert b"".join(batch.data for batch in store.batches(ID)) == WHOLE
    assert [value for batch in list(store.batches(ID))[1:-1] for value in record_values(batch)] == VALUES
    store.verify(ID)
    assert store.control(ID) == [
        SnapshotHeaderRecord(last_contained_log_timestamp=TIMESTAMP_MS),
        KRaftVersionRecord(kraft_version=1),
    ]
    assert store.last_contained_log_timestamp_ms(ID) == TIMESTAMP_MS


def test_a_reader_goes_on_when_its_snapshot_is_deleted(store: SnapshotStore) -> None:
    """A thread loads the state of a snapshot, while a newer snapshot may replace it."""
    store.write(ID, PIECES)
    reader = store.open_reader(ID)
    batches = reader.batches()
    seen = [next(batches).data]
    store.delete(ID)
    other = SnapshotId(400, 3)
    store.write(other, [bytes(len(WHOLE))])
    store.size_bytes(other)  # opened: it gets the number of a file that is closed
    seen += [batch.data for batch in batches]
    reader.close()
    assert b"".join(seen) == WHOLE


def test_a_snapshot_is_read_in_pieces(store: SnapshotStore) -> None:
    store.write(ID, PIECES)
    read = b""
    while piece := store.read(ID, len(read), 1000):
        assert len(piece) == min(1000, len(WHOLE) - len(read))
        read += piece
    assert read == WHOLE
    assert store.read(ID, len(WHOLE) + 5, 10) == b""


def test_snapshots_are_found_and_sorted(store: SnapshotStore) -> None:
    ids = [SnapshotId(400, 3), BOOTSTRAP_SNAPSHOT_ID, SnapshotId(305, 3), SnapshotId(90, 1)]
    for snapshot_id in ids:
        store.write(snapshot_id, PIECES)
    (store.folder / "00000000000000000500-0000000003.checkpoint.part").write_bytes(b"")
    again = SnapshotStore(store.folder, Disk())
    assert again.ids == store.ids == sorted(ids)
    assert again.latest == (400, 3) and again.earliest == (0, 0)


def test_nothing_there(store: SnapshotStore) -> None:
    assert (store.ids, store.latest, store.earliest) == ([], None, None)
    with pytest.raises(FileNotFoundError):
        store.read(ID, 0, 10)


def test_writing_the_same_snapshot_again_replaces_it(store: SnapshotStore) -> None:
    store.write(ID, PIECES)
    store.write(ID, PIECES)
    assert store.ids == [ID]
    store.verify(ID)


def test_a_snapshot_in_the_making_is_no_snapshot(store: SnapshotStore) -> None:
    writer = store.create(ID)
    for piece in PIECES[:-1]:
        writer.append(piece)
    assert names(store.folder) == ["00000000000000000305-0000000003.checkpoint.part"]
    assert SnapshotStore(store.folder, Disk()).ids == []
    with pytest.raises(CorruptSnapshot, match="without a footer"):
        list(writer.open_reader().batches())
    writer.append(PIECES[-1])
    assert b"".join(batch.data for batch in writer.open_reader().batches()) == WHOLE
    assert writer.finish() == len(WHOLE)
    assert store.ids == []
    store.add(ID)
    store.add(ID)
    assert store.ids == [ID]


def test_a_snapshot_that_a_full_disk_refuses_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: bytes, position: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(DiskFailed, match="No space left on device; the disk is full: make room"):
        write_snapshot(tmp_path, ID, PIECES, Disk())
    assert names(tmp_path) == []


def test_an_abandoned_snapshot_leaves_nothing(store: SnapshotStore) -> None:
    writer = store.create(ID)
    writer.append(PIECES[0])
    writer.abandon()
    assert names(store.folder) == []


def test_a_snapshot_whose_making_fails_leaves_nothing(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield PIECES[0]
        raise KeyError("a defect")

    with pytest.raises(KeyError):
        write_snapshot(tmp_path, ID, pieces(), Disk())
    assert names(tmp_path) == []


def test_deleting(store: SnapshotStore) -> None:
    store.write(ID, PIECES)
    store.write(BOOTSTRAP_SNAPSHOT_ID, PIECES)
    assert store.read(ID, 0, 4) == WHOLE[:4]
    store.delete(ID)
    assert store.ids == [BOOTSTRAP_SNAPSHOT_ID]
    assert names(store.folder) == ["00000000000000000000-0000000000.checkpoint"]
    with pytest.raises(FileNotFoundError):
        store.read(ID, 0, 4)


def test_deletion_does_not_wait_for_the_disk(store: SnapshotStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(ID, PIECES)
    flushes: list[object] = []
    monkeypatch.setattr(os, "fsync", flushes.append)
    store.delete(ID)
    assert flushes == []


@pytest.mark.parametrize("position", range(len(PIECES[0])))
def test_a_flipped_bit_is_found(store: SnapshotStore, position: int) -> None:
    store.write(ID, PIECES)
    store.path(ID).chmod(0o600)
    flip(store.path(ID), position, bit=5)
    with pytest.raises(CorruptSnapshot) as caught:
        store.verify(ID)
    assert caught.value.path == store.path(ID)


def test_a_snapshot_that_is_cut_off_is_found(store: SnapshotStore) -> None:
    for length in (0, 5, len(PIECES[0]), len(WHOLE) - len(PIECES[-1]), len(WHOLE) - 1):
        store.write(ID, PIECES)
        os.truncate(store.path(ID), length)
        with pytest.raises(CorruptSnapshot):
            store.verify(ID)
        store.delete(ID)


def test_a_bad_snapshot_is_set_aside(store: SnapshotStore) -> None:
    store.write(ID, PIECES)
    aside = store.set_aside(ID)
    assert aside.read_bytes() == WHOLE
    assert store.ids == [] == SnapshotStore(store.folder, Disk()).ids


def test_bootstrap_records(tmp_path: Path) -> None:
    partition = tmp_path / "partition"
    partition.mkdir()
    store = SnapshotStore(partition, Disk())
    assert bootstrap_values(store, tmp_path) is None
    store.write(BOOTSTRAP_SNAPSHOT_ID, encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, [], [], 0, 0))
    assert bootstrap_values(store, tmp_path) == []
    legacy = b"".join(encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, [], [b"legacy"], 0, 0))
    (tmp_path / "bootstrap.checkpoint").write_bytes(legacy)
    assert bootstrap_values(store, tmp_path) == [b"legacy"]
    store.write(BOOTSTRAP_SNAPSHOT_ID, encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, [], [b"new"], 0, 0))
    store.close()
    assert bootstrap_values(SnapshotStore(partition, Disk()), tmp_path) == [b"new"]
    (tmp_path / "bootstrap.checkpoint").write_bytes(legacy[:-1])
    store.delete(BOOTSTRAP_SNAPSHOT_ID)
    with pytest.raises(CorruptSnapshot, match=r"bootstrap\.checkpoint.*Restore it"):
        bootstrap_values(store, tmp_path)
