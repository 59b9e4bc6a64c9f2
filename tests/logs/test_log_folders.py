"""Logs on disk are found by folders and globs, with all their copies."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.logs.copies import MissingLog
from kraft_wire.logs.folder_store import FolderStore
from kraft_wire.logs.folders import NoLogs, UnknownCluster, find_folders
from kraft_wire.logs.positions import LogPosition
from kraft_wire.logs.store import LogBounds
from kraft_wire.storage.errors import CorruptFile
from tests.support.metadata_logs import LogWriter
from tests.support.spark_readers import Stream, batch

Make = Callable[..., LogWriter]


def bounds_in(*patterns: Path | str) -> dict[str, LogBounds]:
    return FolderStore([str(pattern) for pattern in patterns]).bounds()


def test_logs_are_found_in_a_folder_below_it_and_by_a_glob(tmp_path: Path, make_log: Make) -> None:
    make_log("one/metadata", "b-cluster")
    make_log("two/deep/down", "a-cluster")
    unnamed = make_log("three", "unknown")
    (unnamed.partition.parent / "meta.properties").unlink()
    for patterns in ([tmp_path], [f"{tmp_path}/*"], [f"{tmp_path}/one/metadata", f"{tmp_path}/t*"]):
        assert list(bounds_in(*patterns)) == ["a-cluster", "b-cluster", "three"]
    assert list(bounds_in(tmp_path / "one/metadata/__cluster_metadata-0")) == ["b-cluster"]


@pytest.mark.parametrize("unnamed", [["a", "b"], ["b"]])
def test_logs_that_only_have_the_same_folders_name_are_an_error(
    tmp_path: Path, make_log: Make, unnamed: list[str]
) -> None:
    """They may be of different clusters, and all but one would be ignored as copies."""
    make_log("a/kraft-logs", "kraft-logs").append(5)
    make_log("b/kraft-logs", "another")
    for folder in unnamed:
        (tmp_path / folder / "kraft-logs/meta.properties").unlink()
    with pytest.raises(UnknownCluster, match=r"kraft-logs/__cluster_metadata-0.*Copy each node's meta\.prop"):
        bounds_in(tmp_path)
    assert list(bounds_in(tmp_path / "b")) == ["kraft-logs"]


def test_a_folder_that_is_named_twice_is_one(tmp_path: Path, make_log: Make) -> None:
    make_log("one")
    assert len(find_folders([str(tmp_path), f"{tmp_path}/*"])) == 1


def test_folders_are_found_with_whole_paths(
    tmp_path: Path, make_log: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task on another machine, or in another process, has another working directory."""
    log = make_log("one")
    monkeypatch.chdir(tmp_path)
    assert find_folders(["one"]) == find_folders(["o*"]) == [log.partition]


def test_the_folder_that_we_are_in_is_no_glob(
    tmp_path: Path, make_log: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log("w[1]*/one")
    monkeypatch.chdir(tmp_path / "w[1]*")
    assert find_folders(["one"]) == find_folders(["o*"]) == find_folders(["."]) == [log.partition]


def test_where_there_is_no_log_the_error_names_the_place(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(NoLogs, match=str(place)):
            bounds_in(place)


def test_bounds_say_what_there_is(tmp_path: Path, make_log: Make) -> None:
    log = make_log("one")
    assert bounds_in(tmp_path)["one"] == LogBounds("one", 0, LogPosition(1, 1))
    log.append(5)
    log.lead(4)
    snapshot_id = log.snapshot()
    log.append(2)
    assert bounds_in(tmp_path)["one"] == LogBounds("one", 0, LogPosition(4, 9), 7, (snapshot_id,))
    log.roll()
    assert bounds_in(tmp_path)["one"] == LogBounds("one", 0, LogPosition(4, 9), 7, (snapshot_id,))
    log.trim(9)
    assert bounds_in(tmp_path)["one"] == LogBounds("one", 9, LogPosition(0, 9))
    log.append()
    assert bounds_in(tmp_path)["one"] == LogBounds("one", 9, LogPosition(4, 12))


def test_a_log_that_begins_where_a_snapshot_ends_has_its_epoch(tmp_path: Path, make_log: Make) -> None:
    log = make_log("one", epoch=5)
    log.append()
    snapshot_id = log.snapshot()
    log.roll()
    log.trim(4)
    assert bounds_in(tmp_path)["one"] == LogBounds("one", 4, LogPosition(5, 4), 4, (snapshot_id,))


def test_a_snapshot_that_was_fetched_is_ahead_of_the_log(tmp_path: Path, make_log: Make) -> None:
    log, leader = make_log("one", "a"), make_log("two", "b", epoch=3)
    leader.append(10)
    snapshot_id = leader.snapshot()
    log.checkpoint(snapshot_id).write_bytes(leader.checkpoint(snapshot_id).read_bytes())
    assert bounds_in(tmp_path)["a"] == LogBounds("a", 11, LogPosition(3, 11), 11, (SnapshotId(11, 3),))


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_of_a_clusters_copies_the_one_that_goes_furthest_is_read(
    tmp_path: Path, make_log: Make, order: tuple[int, int]
) -> None:
    """An earlier epoch may have many records that were never committed."""
    first, second = (make_log(f"{number}") for number in order)
    first.append(50)
    second.append()
    second.lead(2)
    assert bounds_in(tmp_path)["one"].end == LogPosition(2, 5)
    second.snapshot()
    first.lead(2)
    found = bounds_in(tmp_path)["one"]
    assert (found.end, found.committed_end_offset) == (LogPosition(2, 52), 5)


def test_what_the_controller_knew_to_be_committed_is(tmp_path: Path, make_log: Make) -> None:
    log = make_log("one")
    log.append(5)
    log.commit(4)
    assert bounds_in(tmp_path)["one"].committed_end_offset == 4
    log.snapshot()
    assert bounds_in(tmp_path)["one"].committed_end_offset == 6
    (log.partition / "quorum-state").unlink()  # a Java controller may have run here
    log.checkpoint(SnapshotId(6, 1)).unlink()
    assert bounds_in(tmp_path)["one"].committed_end_offset is None


def test_an_empty_folder_is_an_empty_log(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "one")
    log.close()
    for file in log.partition.iterdir():
        file.unlink()
    assert bounds_in(tmp_path)["one"] == LogBounds("one", 0, LogPosition(0, 0))


@pytest.mark.parametrize("left", ["leader-epoch-checkpoint", "00000000000000000000.index", "durable-floor"])
def test_a_log_that_is_gone_is_no_empty_log(tmp_path: Path, make_log: Make, left: str) -> None:
    log = LogWriter(tmp_path / "one")
    log.append()
    log.close()
    make_log("two", "two")
    for file in log.partition.iterdir():
        if file.name not in (left, "quorum-state"):
            file.unlink()
    with pytest.raises(
        MissingLog, match=f"{log.partition}: there was a log, and none of its segments is left"
    ):
        bounds_in(tmp_path)
    assert set(bounds_in(tmp_path / "two")) == {"two"}


def test_a_log_that_is_gone_from_one_folder_is_read_of_another(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "one")
    log.append()
    log.close()
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    expected = bounds_in(tmp_path)
    log.segment().unlink()
    assert bounds_in(tmp_path) == expected


def test_a_cluster_without_a_name_is_an_error_that_names_the_file(tmp_path: Path, make_log: Make) -> None:
    path = make_log("one").partition.parent / "meta.properties"
    path.write_text("version=1\ncluster.id=\nnode.id=1\n")
    with pytest.raises(CorruptFile, match=f"{path}: there is no cluster.id"):
        bounds_in(tmp_path)


@pytest.fixture
def copies(make_log: Make) -> tuple[LogWriter, LogWriter, LogWriter]:
    """Three copies of a log of epochs 1 and 2. The first was trimmed up to 10 and ends last; the second has
    everything from 4 up to 16; the third has another leader's records from 7 on."""
    logs = make_log("1"), make_log("2"), make_log("3")
    for log in logs:
        log.append()
        if log is not logs[2]:
            log.snapshot()
        log.roll()
        log.append()
        log.append(3) if log is not logs[2] else log.append(6)
        if log is not logs[2]:
            log.lead(2)
    for log in logs[:2]:
        log.append(5)
    logs[0].snapshot()
    logs[0].roll()
    logs[0].append()
    logs[0].trim(16)
    logs[1].trim(4)
    return logs


def test_what_one_copy_has_trimmed_is_read_of_another(
    tmp_path: Path, copies: tuple[LogWriter, LogWriter, LogWriter]
) -> None:
    assert bounds_in(tmp_path / "1")["one"].start_offset == 16
    bounds = bounds_in(tmp_path)["one"]
    assert (bounds.start_offset, bounds.end, bounds.committed_end_offset) == (4, LogPosition(2, 19), 16)
    assert bounds.snapshots == (SnapshotId(4, 1), SnapshotId(16, 2))
    rows = batch(tmp_path)
    assert [row["offset"] for row in rows if not row["in_snapshot"]] == list(range(4, 19))
    assert {(row["offset"], row["epoch"]) for row in rows if row["in_snapshot"]} == {(3, 1)}
    in_last = batch(tmp_path, startingOffsets="snapshot")
    assert {row["offset"] for row in in_last} == {15, 16, 17, 18}
    for start, end in ((4, 8), (10, 17), (15, 16), (16, 17), (17, 19)):
        found = batch(tmp_path, startingOffsets=at(start), endingOffsets=at(end))
        assert [row["offset"] for row in found] == list(range(start, end))
        assert found == [row for row in rows if not row["in_snapshot"] and start <= row["offset"] < end]


def test_positions_are_looked_up_in_the_copy_that_has_them(
    tmp_path: Path, copies: tuple[LogWriter, LogWriter, LogWriter]
) -> None:
    store = FolderStore([str(tmp_path)])
    store.bounds()
    for offset in range(4, 20):
        position = LogPosition(1 if offset <= 10 else 2, offset)
        assert store.position_at("one", offset) == position
        assert store.holds("one", position)
    assert store.holds("one", LogPosition(1, 4, snapshot=True))
    assert not store.holds("one", LogPosition(1, 12))
    assert store.next_offset_within("one", 4, 1) == 7
    assert store.next_offset_within("one", 4, 10_000) == 16
    assert store.next_offset_within("one", 16, 10_000) == 19


def test_a_copy_that_parts_from_the_others_is_not_read(
    tmp_path: Path, copies: tuple[LogWriter, LogWriter, LogWriter]
) -> None:
    """It has offset 0 and reaches up to the first one's start, but with other records."""
    copies[2].append(10)
    assert copies[2].log.start_offset == 0
    assert bounds_in(tmp_path / "1", tmp_path / "3")["one"].start_offset == 16


def test_a_stream_goes_on_below_where_the_copy_that_goes_furthest_begins(
    tmp_path: Path, copies: tuple[LogWriter, LogWriter, LogWriter]
) -> None:
    stream = Stream(tmp_path / "2", startingOffsets="latest")
    stream.position = {"one": {"epoch": 1, "offset": 9}}
    assert [row["offset"] for row in stream.trigger()] == list(range(9, 16))
    stream = Stream(tmp_path, maxOffsetsPerTrigger="4")
    stream.position = {"one": {"epoch": 1, "offset": 9}}
    while stream.trigger():
        pass
    assert [row["offset"] for row in stream.rows] == list(range(9, 19))


def at(offset: int) -> str:
    return json.dumps({"one": {"epoch": 1 if offset <= 10 else 2, "offset": offset}})
