"""The server as a process: what it keeps, what it refuses, how it stops."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.controller_process import GIVE_UP_S, Client, ControllerProcess, formatted

KEY = "message.max.bytes"


def _write_until_it_dies(client: Client, acknowledged: list[int]) -> None:
    try:
        for number in range(1_000_000, 2_000_000):
            client.set_config(KEY, str(number))
            acknowledged.append(number)
    except ConnectionError:
        return


def test_sigterm_stops_it_with_0_and_what_was_written_is_there_again(tmp_path: Path) -> None:
    file = _written(tmp_path)
    with ControllerProcess(file) as controller, controller.client() as client:
        assert client.config(KEY) == "1234567"


def test_sighup_stops_it_as_gracefully_with_java_s_exit_status(tmp_path: Path) -> None:
    not_under_nohup = ["env", "--default-signal=HUP"]
    with ControllerProcess(formatted(tmp_path), not_under_nohup) as controller:
        controller.wait_for("active controller")
        assert controller.terminate(signal.SIGHUP) == 129
        assert controller.wait_for("stopping")["signal"] == "SIGHUP"
        controller.wait_for("stopped")


def test_it_says_which_limits_it_has(tmp_path: Path) -> None:
    settings = {"kraft.wire.max.request.entries": "170", "max.connections": "5"}
    with ControllerProcess(formatted(tmp_path, settings)) as controller:
        limits = controller.wait_for("limits")
    assert limits["open_files"] > 0
    expected = {
        "kraft.wire.max.request.entries": 170,
        "kraft.wire.max.held.bytes": 536_870_912,
        "kraft.wire.answer.when.known.ms": 0,
        "socket.request.max.bytes": 104_857_600,
        "max.connections": 5,
    }
    assert {key: limits[key] for key in expected} == expected


def test_under_nohup_a_hangup_stops_nothing(tmp_path: Path) -> None:
    with ControllerProcess(formatted(tmp_path), ["nohup"]) as controller, controller.client() as client:
        controller.hang_up()
        client.set_config(KEY, "1234567")
        assert controller.terminate() == 0
        assert controller.wait_for("stopping")["signal"] == "SIGTERM"


def test_what_was_committed_is_applied_before_anybody_leads(tmp_path: Path) -> None:
    file = _written(tmp_path)
    with ControllerProcess(file) as controller, controller.client() as client:
        applied = controller.wait_for("committed log applied")
        assert 0 < applied["to_offset"] == controller.wait_for("became leader")["epoch_start_offset"]
        assert controller.text.index(applied["event"]) < controller.text.index("became leader")
        assert client.config(KEY) == "1234567"


def _written(tmp_path: Path) -> Path:
    """The properties of a controller that has stopped in peace, with one setting written."""
    file = formatted(tmp_path)
    with ControllerProcess(file) as controller:
        with controller.client() as client:
            client.set_config(KEY, "1234567")
        assert controller.terminate() == 0
    return file


@pytest.mark.parametrize("writes", [1, 50, 500])
def test_what_was_acknowledged_before_sigkill_is_there_again(tmp_path: Path, writes: int) -> None:
    file = formatted(tmp_path)
    acknowledged: list[int] = []
    with ControllerProcess(file) as controller, controller.client() as client:
        writer = threading.Thread(target=_write_until_it_dies, args=(client, acknowledged))
        writer.start()
        _wait_until(lambda: len(acknowledged) >= writes)
        controller.kill()
        writer.join()
    with ControllerProcess(file) as controller, controller.client() as client:
        found = int(client.config(KEY) or 0)
    # The last write may have been committed without its answer having left.
    assert found in (acknowledged[-1], acknowledged[-1] + 1)


def test_snapshots_are_made_and_the_log_is_trimmed_behind_them(tmp_path: Path) -> None:
    file = formatted(
        tmp_path,
        {
            "metadata.log.max.record.bytes.between.snapshots": "3000",
            "internal.metadata.log.segment.bytes": "2000",
            "metadata.max.retention.bytes": "6000",
        },
    )
    with ControllerProcess(file) as controller, controller.client() as client:
        number = 1_000_000
        while not any("log trimmed" in line for line in controller.text.splitlines()):
            number += 1
            client.set_config(KEY, str(number))
            assert "snapshot failed" not in controller.text
        # The file goes with the next flush.
        _wait_until(lambda: not (controller.log_dir / "00000000000000000000.log").exists())
        controller.kill()
    with ControllerProcess(file) as controller, controller.client() as client:
        controller.wait_for("snapshot loaded")
        assert client.config(KEY) == str(number)


def test_a_second_process_on_the_folder_is_refused_with_the_lock_named(tmp_path: Path) -> None:
    file = formatted(tmp_path)
    with ControllerProcess(file) as first:
        first.wait_for("active controller")
        with ControllerProcess(file) as second:
            assert second.ended() == 1
        assert str(tmp_path / "data" / ".lock") in second.text
        with first.client() as client:
            client.set_config(KEY, "1234567")


def test_a_flipped_bit_in_the_log_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    file = formatted(tmp_path)
    with ControllerProcess(file) as controller:
        with controller.client() as client:
            for number in range(20):
                client.set_config(KEY, str(1_000_000 + number))
        assert controller.terminate() == 0
    log = controller.log_dir / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    with ControllerProcess(file) as controller:
        assert controller.ended() == 1
    assert str(log) in controller.text
    assert "corrupt at byte" in controller.text
    assert log.read_bytes() == data


def test_a_torn_tail_is_cut_off_and_said_so(tmp_path: Path) -> None:
    file = formatted(tmp_path)
    with ControllerProcess(file) as controller:
        with controller.client() as client:
            client.set_config(KEY, "1234567")
        controller.kill()
    log = controller.log_dir / "00000000000000000000.log"
    with log.open("ab") as tail:
        tail.write(b"\x00\x00\x00\x00\x00\x00")
    with ControllerProcess(file) as controller, controller.client() as client:
        controller.wait_for("torn log tail truncated")
        assert client.config(KEY) == "1234567"


def test_an_address_in_use_is_refused_with_the_listener_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with ControllerProcess(formatted(tmp_path / "a")) as first:
        address = first.wait_for("listening")["address"]
        file = formatted(tmp_path / "b", {"listeners": f"CONTROLLER://{address}"})
        with ControllerProcess(file) as second:
            assert second.ended() == 1
    assert f"CONTROLLER://{address}" in second.text
    assert "Traceback" not in second.text


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + GIVE_UP_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)
