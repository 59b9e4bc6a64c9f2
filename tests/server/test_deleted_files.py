"""A real server under which somebody deletes or moves files: it ends before it acknowledges more, and says
which file it was."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.controller_process import GIVE_UP_S, ControllerProcess, Event, formatted

KEY = "message.max.bytes"
FIRST = 1_000_000
SEGMENT = "__cluster_metadata-0/00000000000000000000.log"
SMALL = {"internal.metadata.log.segment.bytes": "2000"}
SNAPSHOTS = {**SMALL, "metadata.log.max.record.bytes.between.snapshots": "3000"}


def end_of(controller: ControllerProcess) -> Event:
    """The last line of a server that ended with an error and without a traceback."""
    assert controller.ended() == 1
    assert "Traceback" not in controller.text
    last: Event = json.loads(controller.text.splitlines()[-1])
    assert (last["level"], last["error"]) == ("error", "FileGone")
    return last


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replaced(path: Path) -> None:
    """Another file of the same contents: what is written from now on isn't in it."""
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    copy.rename(path)


REMOVALS: list[Callable[[Path], None]] = [Path.unlink, moved, replaced]


@pytest.mark.parametrize("remove", REMOVALS, ids=["deleted", "moved", "replaced"])
def test_the_first_write_after_its_segment_is_gone_is_not_acknowledged(
    tmp_path: Path, remove: Callable[[Path], None]
) -> None:
    with ControllerProcess(formatted(tmp_path)) as controller, controller.client() as client:
        client.set_config(KEY, str(FIRST))
        segment = tmp_path / "data" / SEGMENT
        remove(segment)
        with pytest.raises(OSError):
            client.set_config(KEY, str(FIRST + 1))
        assert f"fatal: {segment}: was deleted, moved or replaced" in end_of(controller)["event"]


@pytest.mark.parametrize(
    "name",
    [
        SEGMENT,
        "__cluster_metadata-0/quorum-state",
        "__cluster_metadata-0/durable-floor",
        ".lock",
        "meta.properties",
    ],
)
def test_a_deleted_file_ends_an_idle_server(tmp_path: Path, name: str) -> None:
    with ControllerProcess(formatted(tmp_path)) as controller:
        controller.wait_for("active controller")
        (tmp_path / "data" / name).unlink()
        assert f"fatal: {tmp_path / 'data' / name}: was deleted" in end_of(controller)["event"]


@pytest.mark.parametrize("name", ["data", "data/__cluster_metadata-0"])
@pytest.mark.parametrize("remove", [shutil.rmtree, moved], ids=["deleted", "moved"])
def test_a_folder_that_is_gone_ends_an_idle_server(
    tmp_path: Path, name: str, remove: Callable[[Path], None]
) -> None:
    with ControllerProcess(formatted(tmp_path)) as controller:
        controller.wait_for("active controller")
        remove(tmp_path / name)
        # While a folder is deleted, one of its files may be missed first.
        assert f"fatal: {tmp_path / name}" in end_of(controller)["event"]


def test_a_deleted_old_segment_ends_an_idle_server(tmp_path: Path) -> None:
    with ControllerProcess(formatted(tmp_path, SMALL)) as controller:
        segments = write(controller, lambda: sorted(controller.log_dir.glob("*.log")), 3)
        segments[1].unlink()
        assert f"fatal: {segments[1]}: was deleted" in end_of(controller)["event"]


def test_a_deleted_newest_snapshot_ends_the_server_and_an_older_one_does_not(tmp_path: Path) -> None:
    with ControllerProcess(formatted(tmp_path, SNAPSHOTS)) as controller:
        snapshots = write(controller, lambda: sorted(controller.log_dir.glob("*.checkpoint")), 3)
        snapshots[0].unlink()
        with controller.client() as client:
            client.set_config(KEY, str(FIRST))
        newest = snapshots[-1]
        newest.unlink()
        assert f"fatal: {newest}: was deleted" in end_of(controller)["event"]


def test_files_that_the_server_deletes_itself_do_not_end_it(tmp_path: Path) -> None:
    """Segments and snapshots go behind new snapshots, while the files are looked at in every flush."""
    settings = {**SNAPSHOTS, "metadata.max.retention.bytes": "6000"}
    file = formatted(tmp_path, settings)
    with ControllerProcess(file) as controller:
        first = tmp_path / "data" / SEGMENT
        write(controller, lambda: [] if first.exists() else [first], 1)
        with controller.client() as client:
            client.set_config(KEY, str(FIRST))
        assert controller.terminate() == 0


def test_a_segment_that_was_moved_back_has_all_that_was_acknowledged(tmp_path: Path) -> None:
    file = formatted(tmp_path)
    segment = tmp_path / "data" / SEGMENT
    with ControllerProcess(file) as controller, controller.client() as client:
        client.set_config(KEY, str(FIRST))
        moved(segment)
        end_of(controller)
    segment.with_name("elsewhere").rename(segment)
    with ControllerProcess(file) as controller, controller.client() as client:
        assert client.config(KEY) == str(FIRST)


def write(controller: ControllerProcess, found: Callable[[], list[Path]], count: int) -> list[Path]:
    """Write until there are so many files."""
    deadline_s = time.monotonic() + GIVE_UP_S
    number = 0
    with controller.client() as client:
        while len(files := found()) < count:
            assert time.monotonic() < deadline_s, f"{number} writes, and not {count} files"
            client.set_config(KEY, str(FIRST + number))
            number += 1
    return files
