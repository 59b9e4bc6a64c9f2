"""Properties files and folders as they are read, and the lines that edit a file, run by a shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import javaproperties
import pytest

from kraft_wire.cli.errors import UsageError
from kraft_wire.cli.quorum import Unreadable
from kraft_wire.cli.quorum.migrate.commands import COPY_SUFFIX, drop_static_voters
from kraft_wire.cli.quorum.migrate.facts import File, Folder
from kraft_wire.cli.quorum.migrate.files import read_files
from kraft_wire.storage.recovery.vote_guards import LOST_BELOW, NO_VOTE_UP_TO, guard_text
from tests.cli.conftest import write_properties
from tests.cli.migrate.samples import VOTERS, controller, properties
from tests.support.controller_process import CLUSTER_ID, NODE_ID, formatted

VOTERS_KEY = "controller.quorum.voters"
BOOTSTRAP_KEY = "controller.quorum.bootstrap.servers"


def read(path: Path) -> File:
    (file,) = read_files([path])
    return file


def folder_of(path: Path) -> Folder:
    folder = read(path).folder
    assert folder is not None
    return folder


def test_a_controller_s_file_names_its_folder(tmp_path: Path) -> None:
    file = formatted(tmp_path)
    found = read(file)
    assert (found.path, found.node_id) == (str(file), NODE_ID)
    folder = folder_of(file)
    assert (folder.path, folder.cluster_id, folder.node_id) == (str(tmp_path / "data"), CLUSTER_ID, NODE_ID)
    assert len(folder.directory_id) == 22
    assert (folder.is_here, folder.problem, folder.pid, folder.guards) == (True, "", None, ())


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ({"metadata.log.dir": "/no/a", "log.dirs": "/no/b"}, "/no/a"),
        ({"log.dirs": " /no/b , /no/c"}, "/no/b"),
        ({"log.dir": "/no/d"}, "/no/d"),
        ({"log.dirs": "", "log.dir": "/no/d"}, "/no/d"),
    ],
)
def test_the_metadata_folder_is_found_as_kafka_finds_it(
    said: dict[str, str], path: str, tmp_path: Path
) -> None:
    file = write_properties(tmp_path / "p", {"process.roles": "controller", "node.id": "1", **said})
    assert folder_of(file) == Folder(path=path, is_here=False)


def test_a_broker_s_folder_is_not_looked_at(tmp_path: Path) -> None:
    file = write_properties(tmp_path / "p", {"process.roles": "broker", "broker.id": "11", "log.dirs": "/no"})
    assert (read(file).folder, read(file).node_id) == (None, 11)


def test_guards_and_damage_are_found(tmp_path: Path) -> None:
    file = formatted(tmp_path)
    partition = tmp_path / "data" / "__cluster_metadata-0"
    (partition / LOST_BELOW).write_text(guard_text(7))
    (partition / NO_VOTE_UP_TO).write_text(guard_text(8))
    (partition / "quorum-state").write_text("{}")
    folder = folder_of(file)
    assert (folder.guards, folder.no_vote_up_to) == ((LOST_BELOW, NO_VOTE_UP_TO), 8)
    assert any("quorum-state is damaged" in problem for problem in folder.damage)


def test_a_folder_without_identity_can_not_be_read(tmp_path: Path) -> None:
    file = formatted(tmp_path)
    (tmp_path / "data" / "meta.properties").write_text("nonsense")
    assert "meta.properties" in folder_of(file).problem


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"missing\.properties: cannot be read"):
        read_files([tmp_path / "missing.properties"])
    twice = [write_properties(tmp_path / name, {"node.id": "1"}) for name in ("a", "b")]
    with pytest.raises(UsageError, match=r"/a and .*/b are both of node 1: give one of them"):
        read_files(twice)


def test_a_node_id_that_is_no_number_is_none(tmp_path: Path) -> None:
    assert read(write_properties(tmp_path / "p", {"node.id": "one"})).node_id is None


# The lines that edit a file.


@pytest.mark.parametrize(
    "line",
    [
        f"{VOTERS_KEY}={VOTERS}",
        f"  {VOTERS_KEY} = {VOTERS}",
        f"{VOTERS_KEY}:{VOTERS}",
        f"#{VOTERS_KEY}=old\n{VOTERS_KEY}={VOTERS}",
        f"{VOTERS_KEY}=old\n{VOTERS_KEY}={VOTERS}",
    ],
)
@pytest.mark.parametrize("end", ["\n", ""])
def test_the_printed_lines_remove_the_voters_and_nothing_else(line: str, end: str, tmp_path: Path) -> None:
    path = tmp_path / "my node.properties"
    before = {"node.id": "1", "x.controller.quorum.voters": "stays", BOOTSTRAP_KEY: "old:1"}
    text = "".join(f"{key}={value}\n" for key, value in before.items()) + line + end
    path.write_text(text)
    file = read(path)
    assert file.can_be_edited
    lines = drop_static_voters(controller(1, file=file), "c1:9093,c2:9093")
    subprocess.run("\n".join(lines), shell=True, check=True)
    assert javaproperties.loads(path.read_text()) == {**before, BOOTSTRAP_KEY: "c1:9093,c2:9093"}
    assert path.with_name(path.name + COPY_SUFFIX).read_text() == text
    subprocess.run(drop_static_voters(controller(1, file=file), None)[0], shell=True, check=True)
    assert read(path).properties[BOOTSTRAP_KEY] == "c1:9093,c2:9093"


@pytest.mark.parametrize(
    "text",
    [
        f"{VOTERS_KEY}=1@c1:9093,\\\n2@c2:9093\nnode.id=1\n",
        f"{VOTERS_KEY} {VOTERS}\n",
        f"controller.quorum\\u002evoters={VOTERS}\n",
        f"a=b\\\n{VOTERS_KEY}=c\n",
    ],
)
def test_a_file_that_sed_would_spoil_is_left_to_the_operator(text: str, tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_text(text)
    file = read(path)
    assert not file.can_be_edited
    assert drop_static_voters(controller(1, file=file), None) == [f"# in {path}: remove {VOTERS_KEY}"]


def test_a_file_without_the_key_can_be_edited(tmp_path: Path) -> None:
    said = properties(1)
    del said[VOTERS_KEY]
    assert read(write_properties(tmp_path / "p", said)).can_be_edited
