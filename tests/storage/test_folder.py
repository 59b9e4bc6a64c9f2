"""A node's folders: formatted, of this node, and not in use; leftovers are removed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kraft_wire.log.files import MetaProperties, meta_properties_text
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.storage.errors import CorruptFile, DiskFailed, FolderLocked, NotFormatted, WrongFolder
from kraft_wire.storage.folder import open_folder

DIRECTORY = Uuid.parse("J8aAPcfLQt2bqs1JT_rMgQ")
PROPERTIES = MetaProperties("4L6g3nShT-eMCtK--X86sw", 7, DIRECTORY)


def formatted(path: Path, properties: MetaProperties = PROPERTIES) -> Path:
    path.mkdir(exist_ok=True)
    (path / "meta.properties").write_text(meta_properties_text(properties))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return formatted(tmp_path / "metadata")


def test_opening_makes_the_partition(path: Path) -> None:
    folder = open_folder(path, node_id=7, cluster_id=PROPERTIES.cluster_id)
    assert folder.properties == PROPERTIES
    assert folder.partition_path == path / "__cluster_metadata-0"
    assert (folder.partition_path / "partition.metadata").read_text() == (
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    )
    folder.close()
    open_folder(path, node_id=7).close()


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()], ids=["no folder", "empty"])
def test_a_folder_that_is_not_formatted(tmp_path: Path, make: object) -> None:
    path = tmp_path / "new"
    assert callable(make)
    make(path)
    with pytest.raises(NotFormatted, match="kraft-wire storage format") as caught:
        open_folder(path, node_id=7)
    assert caught.value.path == path / "meta.properties"
    assert not path.exists() or list(path.iterdir()) == []


def test_a_folder_with_a_log_and_without_meta_properties_was_formatted(path: Path) -> None:
    partition = path / "__cluster_metadata-0"
    partition.mkdir(exist_ok=True)
    (partition / "00000000000000000000.log").touch()
    (path / "meta.properties").unlink()
    with pytest.raises(CorruptFile, match="restore it from a copy") as caught:
        open_folder(path, node_id=7)
    assert caught.value.path == path / "meta.properties"


def test_a_folder_of_another_cluster(path: Path) -> None:
    with pytest.raises(WrongFolder) as caught:
        open_folder(path, node_id=7, cluster_id="another")
    said = str(caught.value)
    assert str(path / "meta.properties") in said and "another" in said and PROPERTIES.cluster_id in said


def test_a_folder_of_another_node(path: Path) -> None:
    with pytest.raises(WrongFolder, match=r"its node\.id is 7, that of the configuration is 8"):
        open_folder(path, node_id=8)


def test_folders_of_different_clusters(path: Path, tmp_path: Path) -> None:
    other = formatted(tmp_path / "other", MetaProperties("another", 7, DIRECTORY))
    with pytest.raises(WrongFolder, match=r"cluster\.id is another") as caught:
        open_folder(path, node_id=7, log_dirs=[path, other])
    assert caught.value.path == other / "meta.properties"


def test_another_folder_that_is_not_formatted(path: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFormatted, match=str(tmp_path / "other")):
        open_folder(path, node_id=7, log_dirs=[tmp_path / "other"])


def test_meta_properties_that_make_no_sense(path: Path) -> None:
    (path / "meta.properties").write_text("version=1\nnode.id=seven\n")
    with pytest.raises(CorruptFile, match=r"no cluster\.id") as caught:
        open_folder(path, node_id=7)
    assert caught.value.path == path / "meta.properties"


def test_a_folder_is_opened_once(path: Path, tmp_path: Path) -> None:
    other = formatted(tmp_path / "other")
    folder = open_folder(path, node_id=7, log_dirs=[other])
    for metadata_dir, log_dirs in ((path, []), (other, []), (other, [path])):
        with pytest.raises(FolderLocked, match=r"/\.lock: another process"):
            open_folder(metadata_dir, node_id=7, log_dirs=log_dirs)
    folder.close()
    open_folder(other, node_id=7, log_dirs=[path]).close()


def test_a_folder_that_another_process_holds(path: Path) -> None:
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path; from kraft_wire.storage.folder import open_folder\n"
            "folder = open_folder(Path(sys.argv[1]), node_id=7); print('held', flush=True); sys.stdin.read()",
            str(path),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(FolderLocked) as caught:
            open_folder(path, node_id=7)
        assert caught.value.path == path / ".lock"
        assert f"process {holder.pid} holds this lock; stop it" in str(caught.value)
        holder.stdin.close()
    open_folder(path, node_id=7).close()


def test_a_refused_folder_is_not_left_locked(path: Path) -> None:
    partition = path / "__cluster_metadata-0"
    partition.write_text("in the way")
    with pytest.raises(DiskFailed, match="Not a directory"):
        open_folder(path, node_id=7)
    partition.unlink()
    open_folder(path, node_id=7).close()


@pytest.mark.parametrize(
    "damaged",
    ["", "version: 0\n", "version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", "version: 0\ntopic_id: J8aA"],
)
def test_a_damaged_partition_metadata_is_made_anew(path: Path, damaged: str) -> None:
    """Its contents are always the same, so the controller can start."""
    open_folder(path, node_id=7).close()
    file = path / "__cluster_metadata-0" / "partition.metadata"
    whole = file.read_text()
    file.write_text(damaged)
    folder = open_folder(path, node_id=7)
    assert folder.rebuilt == [file]
    folder.close()
    assert file.read_text() == whole
    folder = open_folder(path, node_id=7)
    assert folder.rebuilt == []
    folder.close()


def test_leftovers_go_and_everything_else_stays(path: Path) -> None:
    partition = path / "__cluster_metadata-0"
    partition.mkdir()
    leftovers = [
        "00000000000000000305-0000000003.checkpoint.part",
        "00000000000000000305-0000000003-123456.checkpoint.part",
        "00000000000000000100-0000000001.checkpoint.deleted",
        "00000000000000000000.log.deleted",
        "quorum-state.tmp",
    ]
    kept = ["00000000000000000000.log", "00000000000000000305-0000000003.checkpoint", "quorum-state", "notes"]
    for name in [*leftovers, *kept]:
        (partition / name).write_bytes(b"")
    open_folder(path, node_id=7).close()
    assert sorted(file.name for file in partition.iterdir()) == sorted([*kept, "partition.metadata"])
