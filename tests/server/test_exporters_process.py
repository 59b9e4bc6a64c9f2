"""Exporters of a real controller, which is killed, and whose exporters are killed, fail and hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraft_wire.exporters.filters import Filter
from kraft_wire.exporters.positions import POSITIONS_FILE
from kraft_wire.exporters.reading import FolderReader
from kraft_wire.exporters.records import ExportRecord
from kraft_wire.exporters.settings import FilterSettings
from kraft_wire.lake.records import LakeRecords, NoRecords
from kraft_wire.logs.copy import read_copy
from kraft_wire.metadata.canonical import canonical
from kraft_wire.tabular.record_rows import rows_of_batches
from tests.support.controller_process import CLUSTER_ID, COMMAND, ControllerProcess, Event, formatted
from tests.support.folder_state import state_at
from tests.support.live_quorum import Controllers, three_controllers, write
from tests.support.waiting import wait_until

PREFIX = "kraft.wire.exporter."


def _keys(folder: Path, **exporters: str) -> dict[str, str]:
    """Return the keys of exporters that begin at these places, with folders of their own names."""
    keys = {"kraft.wire.exporters": ",".join(exporters)}
    for name, start in exporters.items():
        keys |= {
            f"{PREFIX}{name}.type": "jsonl",
            f"{PREFIX}{name}.path": str(folder / name),
            f"{PREFIX}{name}.start": start,
        }
    return keys


def _lines(folder: Path) -> list[dict[str, Any]]:
    """Return the whole lines of all files, in the order of their names."""
    return [
        msgspec.json.decode(line)
        for path in sorted(folder.glob("*.jsonl"))
        if path.is_file()
        for line in path.read_bytes().splitlines(keepends=True)
        if line.endswith(b"\n")
    ]


def _committed(log_dir: Path) -> list[tuple[int, str, Any]]:
    """Return the records of a stopped controller's log, without those that say nothing."""
    reader = FolderReader(log_dir, Filter(FilterSettings()))
    end_offset = _last_offset(log_dir) + 1
    records: list[ExportRecord] = []
    offset = 0
    while offset < end_offset:
        found = reader.read_log(offset, end_offset)
        records += found.records
        assert found.next_offset is not None
        offset = found.next_offset
    reader.close()
    return [(record.offset, record.type, record.data) for record in records]


def _last_offset(log_dir: Path) -> int:
    return read_copy(log_dir).end.offset - 1


def _check(folder: Path, log_dir: Path) -> None:
    """Everything that was exported is in the log, complete and in order; duplicates have equal lines."""
    lines = _lines(folder)
    by_id = {f"{line['cluster']}/{line['offset']}/{line['index']}": line for line in lines}
    assert all(by_id[f"{line['cluster']}/{line['offset']}/{line['index']}"] == line for line in lines)
    once = list(by_id.values())
    last = once[-1]["offset"]
    expected = [each for each in _committed(log_dir) if each[0] <= last]
    assert [(line["offset"], line["type"], line["data"]) for line in once] == expected


def _has_value(folder: Path, value: int) -> bool:
    """Whether the setting that ``write`` writes for a value is exported."""
    text = str(1_000_000 + value)
    return any(line["type"] == "ConfigRecord" and line["data"]["value"] == text for line in _lines(folder))


def _wait_for_value(folder: Path, value: int) -> None:
    wait_until(lambda: _has_value(folder, value), f"value {value} in {folder}")


def _started(controller: ControllerProcess, count: int) -> list[Event]:
    """Wait until exporters have started so often."""

    def events() -> list[Event]:
        lines = [msgspec.json.decode(line) for line in controller.text.splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == "exporters started"]

    wait_until(lambda: len(events()) >= count, f"exporters to start {count} times")
    return events()


def test_exports_are_complete_after_their_process_and_the_controller_were_killed(tmp_path: Path) -> None:
    file = formatted(tmp_path, _keys(tmp_path, audit="0"))
    folder = tmp_path / "audit"
    with ControllerProcess(file) as controller:
        with controller.client() as client:
            write(client, range(50))
            _wait_for_value(folder, 49)
            for round_number in range(1, 4):
                pid = _started(controller, round_number)[-1]["pid"]
                os.kill(pid, signal.SIGKILL)
                first = 100 * round_number
                write(client, range(first, first + 50))
                _wait_for_value(folder, first + 49)
        ended = controller.wait_for("exporters ended")
        assert ended["reason"] == "the process ended with status -9"
        pid = _started(controller, 4)[-1]["pid"]
        os.kill(controller.pid, signal.SIGKILL)
        assert controller.ended() == -signal.SIGKILL
        wait_until(lambda: not _is_alive(pid), "the exporters to end with their controller")
    with ControllerProcess(file) as controller:
        with controller.client() as client:
            write(client, range(1000, 1050))
            _wait_for_value(folder, 1049)
        assert controller.terminate() == 0
    _check(folder, controller.log_dir)


def _is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def test_an_exporter_that_hangs_or_fails_stops_neither_another_nor_the_controller(tmp_path: Path) -> None:
    """One writes to a pipe that nobody reads, one to a full disk."""
    keys = _keys(tmp_path, hangs="0", full="0", works="0")
    for name in ("hangs", "full"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "hangs" / "hangs-00000000000000000000.jsonl")
    (tmp_path / "full" / "full-00000000000000000000.jsonl").symlink_to("/dev/full")
    with ControllerProcess(formatted(tmp_path, keys)) as controller:
        with controller.client() as client:
            write(client, range(100))
            _wait_for_value(tmp_path / "works", 99)
            failing = controller.wait_for("exporter failing")
            assert (failing["exporter"], failing["level"]) == ("full", "warning")
            assert "No space left" in failing["reason"]
            (tmp_path / "full" / "full-00000000000000000000.jsonl").unlink()
            assert controller.wait_for("exporter recovered")["exporter"] == "full"
            write(client, range(100, 110))
            for name in ("works", "full"):
                _wait_for_value(tmp_path / name, 109)
        assert controller.text.count("exporter failing") == 1
        assert controller.terminate() == 0
    for name in ("works", "full"):
        _check(tmp_path / name, controller.log_dir)
    assert "hangs" not in _positions(controller)


def _positions(controller: ControllerProcess) -> dict[str, int]:
    file = controller.log_dir / POSITIONS_FILE
    positions: dict[str, int] = msgspec.json.decode(file.read_bytes())["positions"]
    return positions


def test_a_second_signal_does_not_cut_a_stop_short(tmp_path: Path) -> None:
    """The first one waits for a sink that hangs."""
    (tmp_path / "hangs").mkdir()
    os.mkfifo(tmp_path / "hangs" / "hangs-00000000000000000000.jsonl")
    file = formatted(tmp_path, _keys(tmp_path, hangs="0"))
    with ControllerProcess(file) as controller:
        controller.wait_for("exporters started")
        with controller.client() as client:
            write(client, range(1))
        os.kill(controller.pid, signal.SIGTERM)
        controller.wait_for("stopping")
        os.kill(controller.pid, signal.SIGTERM)
        controller.wait_for("stopping already")
        assert controller.ended() == 0
        controller.wait_for("stopped")


def test_an_exporter_that_was_removed_is_removed_from_the_positions(tmp_path: Path) -> None:
    file = formatted(tmp_path, _keys(tmp_path, audit="0", other="tail"))
    with ControllerProcess(file) as controller:
        with controller.client() as client:
            write(client, range(10))
            _wait_for_value(tmp_path / "audit", 9)
        assert controller.terminate() == 0
    positions = _positions(controller)
    assert set(positions) == {"audit", "other"}
    kept = [line for line in file.read_text().splitlines() if "kraft.wire" not in line]
    keys = _keys(tmp_path, audit="0")
    file.write_text("\n".join([*kept, *(f"{key}={value}" for key, value in keys.items()), ""]))
    with ControllerProcess(file) as controller:
        with controller.client() as client:
            write(client, range(10, 20))
            _wait_for_value(tmp_path / "audit", 19)
        wait_until(lambda: set(_positions(controller)) == {"audit"}, "the other to be removed")
        assert controller.terminate() == 0
    assert _positions(controller)["audit"] > positions["audit"]
    offsets = [line["offset"] for line in _lines(tmp_path / "audit")]
    assert offsets == sorted(set(offsets)), "nothing was exported twice after a stop in peace"


@pytest.mark.parametrize("text", [b"{", b'{"version":1,"cluster":"another","positions":{"audit":7}}'])
def test_positions_that_can_not_be_used_are_set_aside(tmp_path: Path, text: bytes) -> None:
    file = formatted(tmp_path, _keys(tmp_path, audit="0"))
    positions = tmp_path / "data" / "__cluster_metadata-0" / POSITIONS_FILE
    positions.write_bytes(text)
    with ControllerProcess(file) as controller:
        with controller.client() as client:
            write(client, range(1))
            _wait_for_value(tmp_path / "audit", 0)
        assert controller.wait_for("exporter positions unusable")["file"] == str(positions)
        assert controller.terminate() == 0
    assert positions.with_name("exporters.json.corrupt").read_bytes() == text
    assert _lines(tmp_path / "audit")[0]["offset"] == 0


def _restart_with_audit(controllers: Controllers, folder: Path) -> None:
    """Give each controller an exporter with a folder of its own."""
    for id in list(controllers.processes):
        controllers.kill(id)
    for id in (1, 2, 3):
        keys = _keys(folder / str(id), audit="0")
        with controllers.file(id).open("a") as file:
            file.writelines(f"{key}={value}\n" for key, value in keys.items())
        controllers.start_one(id)


def test_a_new_leader_exports_and_the_old_one_stops(tmp_path: Path) -> None:
    with three_controllers(tmp_path) as controllers:
        _restart_with_audit(controllers, tmp_path)
        controllers.write(range(5))
        leader = controllers.leader()
        _wait_for_value(tmp_path / str(leader) / "audit", 4)
        assert [id for id in (1, 2, 3) if (tmp_path / str(id) / "audit").exists()] == [leader]
        old = controllers.processes.pop(leader)
        old.pause()
        try:
            controllers.write(range(5, 10))
            others = [tmp_path / str(id) / "audit" for id in (1, 2, 3) if id != leader]
            wait_until(lambda: any(folder.exists() for folder in others), "another leader's exporter")
            (folder,) = filter(Path.exists, others)
            _wait_for_value(folder, 9)
        finally:
            old.resume()
        old.wait_for("exporters stopped")
        offsets = [line["offset"] for line in _lines(folder)]
        assert len(offsets) == len(set(offsets))


def _has_position(controller: ControllerProcess, position: int) -> bool:
    if not (controller.log_dir / POSITIONS_FILE).exists():
        return False
    return _positions(controller).get("audit", 0) >= position


def test_a_new_leader_exports_from_where_the_old_one_was(tmp_path: Path) -> None:
    with three_controllers(tmp_path) as controllers:
        _restart_with_audit(controllers, tmp_path)
        controllers.write(range(5))
        leader = controllers.leader()
        old_folder = tmp_path / str(leader) / "audit"
        _wait_for_value(old_folder, 4)
        position = _lines(old_folder)[-1]["offset"] + 1
        others = [controllers.processes[id] for id in (1, 2, 3) if id != leader]
        for other in others:
            wait_until(partial(_has_position, other, position), "the position")
        controllers.kill(leader)
        controllers.write(range(5, 10))
        (new_leader,) = {controllers.leader()}
        new_folder = tmp_path / str(new_leader) / "audit"
        _wait_for_value(new_folder, 9)
        assert _lines(new_folder)[0]["offset"] >= position
        assert not _has_value(new_folder, 4)


def test_without_exporters_nothing_of_them_is_imported(tmp_path: Path) -> None:
    file = formatted(tmp_path)
    program = (
        "import sys, kraft_wire.server.main; from kraft_wire.server.config.server_config import *;"
        f"assert not load_server_config({str(file)!r}).exporters;"
        "print(*[name for name in sys.modules if 'export' in name])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["kraft_wire.server.config.exporter_keys"]


def test_the_past_is_restored_from_a_lake_that_an_exporter_filled(tmp_path: Path) -> None:
    """It began with a snapshot, and its exporter was killed in between."""
    lake, past = tmp_path / "lake", tmp_path / "past"
    file = formatted(tmp_path, {"metadata.log.max.record.bytes.between.snapshots": "2000"})
    with ControllerProcess(file) as controller, controller.client() as client:
        write(client, range(50))
        controller.wait_for("snapshot written")
        controller.terminate()
    with file.open("a") as properties:
        keys = {"type": "lake", "path": str(lake), "interval.ms": "50"}
        properties.write("\nkraft.wire.exporters=lake\n")
        properties.writelines(f"{PREFIX}lake.{key}={value}\n" for key, value in keys.items())
    with ControllerProcess(file) as controller, controller.client() as client:
        write(client, range(50, 60))
        os.kill(_started(controller, 1)[-1]["pid"], signal.SIGKILL)
        write(client, range(60, 70))
        wait_until(lambda: _lake_has_value(lake, 69), "the last value in the lake")
        controller.terminate()
    end_offset = _last_value_offset(lake, 69) + 1
    restore = ["pipeline", "restore", "--target", str(lake), "--cluster", CLUSTER_ID]
    options = ["--as-of-offset", str(end_offset - 1), "--into", str(past), "--node-id", "1"]
    subprocess.run([*COMMAND, *restore, *options], check=True, capture_output=True)
    assert canonical(state_at(past, end_offset)) == canonical(state_at(controller.data, end_offset))


def _values_in(lake: Path) -> dict[str, int]:
    """Return the offset of each value that ``write`` wrote."""
    try:
        rows = list(rows_of_batches(LakeRecords(str(lake), CLUSTER_ID).batches()))
    except NoRecords:
        return {}
    return {msgspec.json.decode(row.json)["value"]: row.offset for row in rows if row.type == "ConfigRecord"}


def _lake_has_value(lake: Path, value: int) -> bool:
    try:
        return str(1_000_000 + value) in _values_in(lake)
    except FileNotFoundError:
        return False  # the exporter replaced a file meanwhile


def _last_value_offset(lake: Path, value: int) -> int:
    return _values_in(lake)[str(1_000_000 + value)]
