"""All files of a node: what is chosen, finished and refused when they are opened."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kraft_wire.log.files import ElectionState, MetaProperties, meta_properties_text
from kraft_wire.log.snapshot import SnapshotId, encode_snapshot
from kraft_wire.storage.errors import (
    CorruptLog,
    CorruptSnapshot,
    FolderLocked,
    MissingRecords,
)
from kraft_wire.storage.log.metadata_log import LogConfig
from kraft_wire.storage.store import Store
from tests.storage.storage_samples import FIRST_SEGMENT, data_batch, epoch_batches, flip

NODE_ID = 1
JAVA_FOLDER = Path(__file__).parent.parent / "log" / "data" / "java-4.4.0"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "meta.properties").write_text(meta_properties_text(MetaProperties("cluster", NODE_ID)))
    return tmp_path


def open_store(path: Path) -> Store:
    return Store.open(path, node_id=NODE_ID, config=LogConfig(segment_bytes=500))


def partition(path: Path) -> Path:
    return path / "__cluster_metadata-0"


def write(store: Store, snapshot_id: SnapshotId) -> None:
    store.snapshots.write(snapshot_id, encode_snapshot(snapshot_id, [], [b"value"], 0, 0))


@pytest.fixture
def used(path: Path) -> Path:
    """A folder with records to offset 41, and snapshots up to 10, 20 and 30."""
    store = open_store(path)
    store.write_election_state(ElectionState(NODE_ID, 2), kraft_version=1)
    for batch in epoch_batches(0, 2, [1] * 40):
        store.log.append([batch])
    for end_offset in (10, 20, 30):
        write(store, SnapshotId(end_offset, 2))
    store.close()
    return path


def test_a_used_folder_is_found_as_it_was_left(used: Path) -> None:
    store = open_store(used)
    assert store.election == ElectionState(NODE_ID, 2)
    assert (store.log.start_offset, store.log.end_offset, store.log.flushed_offset) == (0, 41, 41)
    assert store.snapshots.ids == [(10, 2), (20, 2), (30, 2)]
    recovery = store.recovery
    assert (recovery.torn_tail, recovery.log_reset_to, recovery.election_state_missing) == (None, None, False)
    assert not recovery.corrupt_snapshots and not recovery.snapshots_set_aside
    with pytest.raises(FolderLocked):
        open_store(used)
    store.close()
    open_store(used).close()


def test_a_missing_quorum_state_is_told(used: Path) -> None:
    (partition(used) / "quorum-state").unlink()
    store = open_store(used)
    assert store.election is None
    assert store.recovery.election_state_missing


def test_a_new_folder_misses_no_quorum_state(path: Path) -> None:
    assert not open_store(path).recovery.election_state_missing


def test_a_refused_folder_is_not_left_locked(used: Path) -> None:
    for snapshot in partition(used).glob("*.checkpoint"):
        snapshot.unlink()
    flip(partition(used) / FIRST_SEGMENT, 30)
    with pytest.raises(CorruptLog):
        open_store(used)
    flip(partition(used) / FIRST_SEGMENT, 30)
    open_store(used).close()


def test_a_torn_tail_is_told(used: Path) -> None:
    last = sorted(partition(used).glob("*.log"))[-1]
    last.write_bytes(last.read_bytes() + data_batch(41, 2)[:50])
    recovery = open_store(used).recovery
    assert recovery.torn_tail is not None
    assert (recovery.torn_tail.path, recovery.torn_tail.offset) == (last, 41)


def test_a_bad_snapshot_gives_way_to_the_one_before(used: Path) -> None:
    bad = [partition(used) / f"000000000000000000{end}-0000000002.checkpoint" for end in (20, 30)]
    for path in bad:
        flip(path, 100)
    store = open_store(used)
    assert store.snapshots.ids == [(10, 2)]
    assert [error.path for error in store.recovery.corrupt_snapshots] == [bad[1], bad[0]]
    assert all(path.exists() for path in store.recovery.snapshots_set_aside)
    assert not any(path.exists() for path in bad)
    store.close()
    again = open_store(used)
    assert (again.snapshots.ids, again.recovery.corrupt_snapshots) == ([(10, 2)], [])


def test_an_old_snapshot_that_is_bad_keeps_nobody_from_starting(used: Path) -> None:
    """The newest snapshot is whole, and so is the log."""
    old = partition(used) / "00000000000000000010-0000000002.checkpoint"
    flip(old, 100)
    store = open_store(used)
    assert [id.end_offset for id in store.snapshots.ids] == [20, 30]
    assert [error.path for error in store.recovery.corrupt_snapshots] == [old]
    for snapshot_id in store.snapshots.ids:
        assert store.snapshots.last_contained_log_timestamp_ms(snapshot_id) >= 0
    assert store.lost_below_offset is None


def test_a_bad_snapshot_that_is_needed_is_refused_and_nothing_changes(used: Path) -> None:
    store = open_store(used)
    store.log.delete_before(30)
    store.log.flush()
    start_offset = max(10, min(int(path.stem) for path in partition(used).glob("*.log")))
    store.close()
    assert 20 < start_offset <= 30
    flip(partition(used) / "00000000000000000030-0000000002.checkpoint", 100)
    before = sorted(partition(used).iterdir())
    for _ in range(2):
        with pytest.raises(CorruptSnapshot, match=r"00000000000000000030-0000000002\.checkpoint") as caught:
            open_store(used)
        assert f"`kraft-wire fsck {used} --repair`" in str(caught.value)
    assert sorted(partition(used).iterdir()) == before


def test_a_log_that_begins_above_what_snapshots_hold_is_refused(used: Path) -> None:
    store = open_store(used)
    store.log.delete_before(30)
    store.close()
    (partition(used) / "00000000000000000030-0000000002.checkpoint").unlink()
    with pytest.raises(MissingRecords, match="the latest ends at 20"):
        open_store(used)


def test_a_bad_bootstrap_snapshot_matters_to_an_empty_log_only(path: Path) -> None:
    store = open_store(path)
    write(store, SnapshotId(0, 0))
    store.close()
    zero = partition(path) / "00000000000000000000-0000000000.checkpoint"
    flip(zero, 100)
    with pytest.raises(CorruptSnapshot, match="format it again"):
        open_store(path)
    flip(zero, 100)
    store = open_store(path)
    store.log.append(epoch_batches(0, 1, []))
    store.close()
    flip(zero, 100)
    store = open_store(path)
    assert store.snapshots.ids == [] and store.log.end_offset == 1
    assert store.bootstrap_values() == [], "not Kafka's defaults, which may be another version's"


def test_snapshots_that_the_log_no_longer_reaches_back_to_go(used: Path) -> None:
    store = open_store(used)
    store.log.delete_before(25)
    store.log.flush()
    start_offset = min(int(path.stem) for path in partition(used).glob("*.log"))
    store.close()
    assert 10 < start_offset <= 25
    again = open_store(used)
    assert again.log.start_offset == start_offset
    assert again.snapshots.ids == [id for id in [(10, 2), (20, 2), (30, 2)] if id[0] >= start_offset]


@pytest.mark.parametrize(
    "snapshot_id", [SnapshotId(60, 2), SnapshotId(60, 3), SnapshotId(41, 3), SnapshotId(35, 3)]
)
def test_a_snapshot_ahead_of_the_log_replaces_it(used: Path, snapshot_id: SnapshotId) -> None:
    """The node crashed after it fetched a snapshot, before it reset its log."""
    store = open_store(used)
    store.write_election_state(ElectionState(NODE_ID, 3), kraft_version=1)
    write(store, snapshot_id)
    store.close()
    again = open_store(used)
    end = snapshot_id.end_offset
    assert (again.log.start_offset, again.log.end_offset, again.recovery.log_reset_to) == (end, end, end)
    assert again.snapshots.ids == [snapshot_id]
    again.close()
    once_more = open_store(used)
    assert once_more.recovery.log_reset_to is None
    assert once_more.log.start_offset == end


def test_a_folder_that_lost_its_empty_segment_begins_at_its_snapshot(used: Path) -> None:
    store = open_store(used)
    write(store, SnapshotId(60, 2))
    store.log.reset_to(60)
    store.close()
    (partition(used) / "00000000000000000060.log").unlink()
    again = open_store(used)
    assert (again.log.start_offset, again.log.end_offset) == (60, 60)


def test_the_election_state_is_written_and_the_floor_follows_its_epoch(used: Path) -> None:
    store = open_store(used)
    store.write_election_state(ElectionState(-1, 9, NODE_ID), kraft_version=1)
    assert store.election == ElectionState(-1, 9, NODE_ID)
    store.close()
    last = sorted(partition(used).glob("*.log"))[-1]
    last.write_bytes(last.read_bytes()[:-1])
    with pytest.raises(CorruptLog, match="durable up to offset 41"):
        open_store(used)


def test_a_folder_that_java_wrote(tmp_path: Path) -> None:
    path = tmp_path / "java"
    shutil.copytree(JAVA_FOLDER, path)
    store = open_store(path)
    assert store.election == ElectionState(1, 3)
    assert (store.log.start_offset, store.log.end_offset) == (0, 115)
    assert store.log.epochs.entries == [(1, 0), (2, 47), (3, 81)]
    assert store.snapshots.latest == (107, 3)
    recovery = store.recovery
    assert (recovery.torn_tail, recovery.log_reset_to, recovery.corrupt_snapshots) == (None, None, [])
    values = store.bootstrap_values()
    assert values is not None and len(values) == 6
    store.log.append(epoch_batches(115, 4, [1]))
    store.close()
    original = JAVA_FOLDER / "__cluster_metadata-0"
    for name in ("00000000000000000000.log", "00000000000000000000.index", "00000000000000000000.timeindex"):
        assert (partition(path) / name).read_bytes() == (original / name).read_bytes()
    assert (
        (partition(path) / "leader-epoch-checkpoint").read_text().startswith("0\n4\n1 0\n2 47\n3 81\n4 115\n")
    )
