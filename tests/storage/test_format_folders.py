"""Formatting a node's folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.log.batch import record_values
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.files import MetaProperties, parse_meta_properties
from kraft_wire.log.snapshot import verify_snapshot
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.messages.voters_record import Voter, VotersRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.storage.errors import AlreadyFormatted, CorruptFile, DiskFailed, WrongFolder
from kraft_wire.storage.folder import check_role
from kraft_wire.storage.format import Checkpoint, FormatPlan, format_folders
from kraft_wire.storage.store import Store
from tests.storage.storage_samples import TIMESTAMP_MS, contents

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
DIRECTORY = Uuid.parse("J8aAPcfLQt2bqs1JT_rMgQ")
CONTROL = [KRaftVersionRecord(kraft_version=1), VotersRecord(voters=[Voter(voter_id=7)])]
CHECKPOINT = Checkpoint(CONTROL, [b"first", b"second"], TIMESTAMP_MS)
ZERO_SNAPSHOT = Path("__cluster_metadata-0") / "00000000000000000000-0000000000.checkpoint"


def counted_ids() -> Iterator[Uuid]:
    for number in range(1, 100):
        yield Uuid(bytes([number]) * 16)


def plan(*directories: Path, **changes: Any) -> FormatPlan:
    ids = counted_ids()
    settings: dict[str, Any] = {
        "cluster_id": CLUSTER_ID,
        "node_id": 7,
        "directories": directories,
        "metadata_dir": directories[0],
        "new_directory_id": lambda: next(ids),
        "directory_id": DIRECTORY,
        "checkpoint": CHECKPOINT,
    }
    return FormatPlan(**{**settings, **changes})


def test_a_controllers_folder(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "metadata"
    assert format_folders(plan(path)) == [path]
    properties = parse_meta_properties((path / "meta.properties").read_text())
    assert properties == MetaProperties(CLUSTER_ID, 7, DIRECTORY)
    batches = verify_snapshot((path / ZERO_SNAPSHOT).read_bytes())
    header = SnapshotHeaderRecord(last_contained_log_timestamp=TIMESTAMP_MS)
    assert decode_control_batch(batches[0]) == [header, *CONTROL]
    assert record_values(batches[1]) == [b"first", b"second"]
    assert {batch.header.base_timestamp for batch in batches} == {TIMESTAMP_MS}
    assert sorted(file.name for file in path.rglob("*") if file.is_file()) == [
        ZERO_SNAPSHOT.name,
        "meta.properties",
    ]


def test_what_was_formatted_can_be_opened(tmp_path: Path) -> None:
    format_folders(plan(tmp_path / "a", tmp_path / "b"))
    store = Store.open(tmp_path / "a", node_id=7, cluster_id=CLUSTER_ID, log_dirs=[tmp_path / "b"])
    assert store.snapshots.ids == [(0, 0)]
    assert store.bootstrap_values() == [b"first", b"second"]
    assert (store.log.end_offset, store.election) == (0, None)
    assert store.properties.directory_id == DIRECTORY
    store.close()


def test_the_other_folders_get_ids_of_their_own_and_no_checkpoint(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("metadata", "b", "a")]
    assert format_folders(plan(*paths)) == sorted(paths)
    ids = [parse_meta_properties((path / "meta.properties").read_text()).directory_id for path in paths]
    assert ids == [DIRECTORY, Uuid(bytes([2]) * 16), Uuid(bytes([1]) * 16)]
    assert [path.name for path in sorted(tmp_path.rglob("*.checkpoint"))] == [ZERO_SNAPSHOT.name]


def test_a_node_that_is_no_voter_gets_an_id_and_a_broker_no_checkpoint(tmp_path: Path) -> None:
    format_folders(plan(tmp_path / "broker", directory_id=None, checkpoint=None))
    text = (tmp_path / "broker" / "meta.properties").read_text()
    assert parse_meta_properties(text).directory_id == Uuid(bytes([1]) * 16)
    assert [file.name for file in (tmp_path / "broker").iterdir()] == ["meta.properties"]


def test_a_formatted_folder_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    format_folders(plan(tmp_path / "b"))
    before = contents(tmp_path / "b" / "__cluster_metadata-0")
    with pytest.raises(AlreadyFormatted, match="--ignore-formatted") as caught:
        format_folders(plan(tmp_path / "a", tmp_path / "b"))
    assert caught.value.path == tmp_path / "b"
    assert not (tmp_path / "a").exists()
    assert contents(tmp_path / "b" / "__cluster_metadata-0") == before


def test_ignoring_formatted_folders_formats_the_others(tmp_path: Path) -> None:
    format_folders(plan(tmp_path / "b"))
    text = (tmp_path / "b" / "meta.properties").read_text()
    everything = plan(tmp_path / "a", tmp_path / "b", ignore_formatted=True, directory_id=None)
    assert format_folders(everything) == [tmp_path / "a"]
    assert (tmp_path / "b" / "meta.properties").read_text() == text
    assert format_folders(everything) == []


@pytest.mark.parametrize("changes", [{"cluster_id": "another"}, {"node_id": 8}])
def test_folders_of_others_are_refused_although_formatted_ones_are_ignored(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    format_folders(plan(tmp_path / "b"))
    with pytest.raises(WrongFolder):
        format_folders(plan(tmp_path / "a", tmp_path / "b", ignore_formatted=True, **changes))
    assert not (tmp_path / "a").exists()


def test_meta_properties_that_make_no_sense_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=9\n")
    with pytest.raises(CorruptFile, match="version '9'"):
        format_folders(plan(tmp_path))


def test_a_metadata_log_without_meta_properties_is_not_formatted_over(tmp_path: Path) -> None:
    partition = tmp_path / "__cluster_metadata-0"
    partition.mkdir()
    (partition / "quorum-state").write_text("{}")
    with pytest.raises(AlreadyFormatted, match="restore that file, or move") as caught:
        format_folders(plan(tmp_path))
    assert caught.value.path == partition / "quorum-state"


def test_formatting_that_was_interrupted_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_fdatasync = os.fdatasync
    for failing_call in range(1, 10):
        path = tmp_path / str(failing_call)
        calls = 0

        def fdatasync(fd: int, limit: int = failing_call) -> None:
            nonlocal calls
            calls += 1
            if calls == limit:
                raise OSError(5, "Input/output error")
            real_fdatasync(fd)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", fdatasync)
            if failing_call > 2:
                format_folders(plan(path))
                break
            with pytest.raises(DiskFailed):
                format_folders(plan(path))
        assert not (path / "meta.properties").exists()
        assert format_folders(plan(path)) == [path]
        verify_snapshot((path / ZERO_SNAPSHOT).read_bytes())
    assert calls == 2


def test_the_metadata_folder_must_be_among_the_folders(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not among"):
        format_folders(plan(tmp_path / "a", metadata_dir=tmp_path / "b"))


# An observer's folder.


def test_an_observers_folder_is_marked(tmp_path: Path) -> None:
    folder = tmp_path / "observer"
    format_folders(plan(folder, directory_id=None, checkpoint=None, is_observer=True))
    assert parse_meta_properties((folder / "meta.properties").read_text()).node_id == 7
    assert [file.name for file in (folder / "__cluster_metadata-0").iterdir()] == ["observer"]
    check_role(folder, is_observer=True)
    with pytest.raises(WrongFolder, match="that of an observer, which never votes"):
        check_role(folder, is_observer=False)


def test_other_folders_are_no_observers(tmp_path: Path) -> None:
    format_folders(plan(tmp_path / "controller"))
    check_role(tmp_path / "controller", is_observer=False)
    with pytest.raises(WrongFolder, match="that of a controller or broker"):
        check_role(tmp_path / "controller", is_observer=True)


def test_formatting_an_observers_folder_goes_on_after_a_crash(tmp_path: Path) -> None:
    """The mark is written first, meta.properties last."""
    folder = tmp_path / "observer"
    format_folders(plan(folder, checkpoint=None, is_observer=True))
    (folder / "meta.properties").unlink()
    assert format_folders(plan(folder, checkpoint=None, is_observer=True)) == [folder]
    check_role(folder, is_observer=True)
