"""The supervisor of the exporters' process, without a controller."""

from __future__ import annotations

import logging
import math
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from kraft_wire.configs.exporter_orders import paused_key, reset_key
from kraft_wire.controller.node.effects import Activated, NodeEffect
from kraft_wire.exporters.messages import Exported, Failing, Recovered, Restarted, Told, line_of
from kraft_wire.exporters.positions import POSITIONS_FILE, Kept, parse_positions, positions_text
from kraft_wire.exporters.settings import ExporterSettings, read_exporters
from kraft_wire.raft.effects import BecameLeader, HighWatermarkAdvanced, LostLeadership
from kraft_wire.raft.events import Now, Tick
from kraft_wire.server.export_process import ExportProcess
from kraft_wire.server.exporters import Exporters

CLUSTER = "q3YRw3NrQz6yVPNUPcbbDA"
GIVE_UP_S = 30.0
LEADS = (BecameLeader(3, 10), Activated(3, 5), HighWatermarkAdvanced(11))


@pytest.fixture(autouse=True)
def _everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def _exporters(folder: Path) -> tuple[ExporterSettings, ...]:
    prefix = "kraft.wire.exporter.audit."
    return read_exporters(["audit"], {f"{prefix}type": "jsonl", f"{prefix}path": str(folder)}).exporters


def _step(process: ExportProcess, *effects: NodeEffect) -> None:
    process.stepped(Tick(), effects, Now(0, 0))


def _program(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let a script run in the place of the exporters. The file "input" has what it was told."""
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


@asynccontextmanager
async def _running(
    folder: Path, orders: dict[str, str] | None = None, *, is_observer: bool = False
) -> AsyncIterator[ExportProcess]:
    """Run the exporters. The test may change ``orders``, configurations of all brokers, meanwhile."""
    exporters = Exporters(_exporters(folder), folder, CLUSTER, 1, is_observer=is_observer)
    with trio.fail_after(GIVE_UP_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                exporters.run, lambda: None, lambda from_offset: None, lambda: dict(orders or {})
            )
            yield exporters.process
            nursery.cancel_scope.cancel()


async def _until_logged(caplog: pytest.LogCaptureFixture, event: str, count: int = 1) -> dict[str, object]:
    """Wait for an event, and return the fields of the last one."""
    while len(found := [each for each in caplog.records if each.getMessage() == event]) < count:
        await trio.sleep(0.01)
    fields: dict[str, object] = found[-1].__dict__["fields"]
    return fields


def _printing(*told: Told) -> str:
    return "\n".join(f"echo '{line_of(each).decode().strip()}'" for each in told)


async def _until_written(file: Path) -> None:
    """Wait until a program has written something: a leader that is deposed ends it at once."""
    with trio.fail_after(10):
        while not file.exists() or not file.stat().st_size:
            await trio.sleep(0.005)


async def test_exporters_start_only_when_a_record_of_the_leaders_epoch_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Before that, the leader may not know of everything that is committed."""
    _program(tmp_path, monkeypatch, f"cat > {tmp_path}/input")
    async with _running(tmp_path) as process:
        _step(process, HighWatermarkAdvanced(7), *LEADS[:2])
        _step(process, HighWatermarkAdvanced(10))
        await trio.sleep(0.05)
        assert not caplog.records
        _step(process, HighWatermarkAdvanced(11))
        await _until_logged(caplog, "exporters started")
        _step(process, HighWatermarkAdvanced(12), HighWatermarkAdvanced(13))
        await _until_written(tmp_path / "input")
        _step(process, LostLeadership(3, None))
        await _until_logged(caplog, "exporters stopped")
    first, *_ = (tmp_path / "input").read_bytes().splitlines()
    begin = msgspec.json.decode(first)
    assert (begin["cluster"], begin["positions"]) == (CLUSTER, {})
    assert 11 <= begin["high_watermark"] <= 13


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("kill -9 $$", "the process ended with status -9"),
        ("echo 'no room for it' >&2; exit 1", "no room for it"),
        ("echo nonsense; cat", "its process wrote b'nonsense': JSON is malformed"),
    ],
)
async def test_a_process_that_ends_is_started_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    script: str,
    reason: str,
) -> None:
    _program(tmp_path, monkeypatch, script)
    async with _running(tmp_path) as process:
        _step(process, *LEADS)
        fields = await _until_logged(caplog, "exporters ended", 3)
        assert str(fields["reason"]).startswith(reason)
        pauses = [
            each.__dict__["fields"]["retry_ms"] for each in caplog.records if each.levelno == logging.ERROR
        ]
        assert pauses[0] <= 200 < 400 <= pauses[2] <= 800


async def test_a_program_that_can_not_be_started_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    async with _running(tmp_path) as process:
        _step(process, *LEADS)
        fields = await _until_logged(caplog, "exporters ended", 2)
        assert "can't be started" in str(fields["reason"])


async def test_what_exporters_tell_is_logged_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told = (
        Failing("audit", "no room", 1, 200),
        Failing("audit", "no room", 2, 400),
        Failing("audit", "a bug", 3, 800, "Traceback"),
        Recovered("audit", 3),
        Failing("audit", "no room", 1, 200),
        Restarted("audit", 3, "the log begins at offset 5", 5),
        Exported("audit", 5),
        Exported("audit", 9),
    )
    _program(tmp_path, monkeypatch, f"{_printing(*told)}\ncat > {tmp_path}/input")
    async with _running(tmp_path) as process:
        _step(process, *LEADS)
        await _until_logged(caplog, "exporter restarted")
        _step(process, LostLeadership(3, None))
        await _until_logged(caplog, "exporters stopped")
        _step(process, *LEADS)
        await _until_logged(caplog, "exporters started", 2)
        _step(process, LostLeadership(3, None))
        await _until_logged(caplog, "exporters stopped", 2)
    assert (tmp_path / POSITIONS_FILE).read_bytes() == (
        b'{"version":1,"cluster":"%s","positions":{"audit":9}}\n' % CLUSTER.encode()
    )
    begin = msgspec.json.decode((tmp_path / "input").read_bytes().splitlines()[0])
    assert begin["positions"] == {"audit": 9}
    first = [each for each in caplog.records if each.getMessage() != "exporters started"][:5]
    assert [(each.levelname, each.getMessage()) for each in first] == [
        ("WARNING", "exporter failing"),
        ("ERROR", "exporter failing"),
        ("INFO", "exporter recovered"),
        ("WARNING", "exporter failing"),
        ("WARNING", "exporter restarted"),
    ]


async def test_a_process_that_does_not_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kraft_wire.server.export_process.STOP_S", 0.1)
    _program(tmp_path, monkeypatch, "exec sleep 1000")
    async with _running(tmp_path) as process:
        _step(process, *LEADS)
        await _until_logged(caplog, "exporters started")
        _step(process, LostLeadership(3, None))
        await _until_logged(caplog, "exporters stopped")


async def test_positions_that_can_not_be_written_stop_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / f"{POSITIONS_FILE}.tmp").mkdir()
    _program(tmp_path, monkeypatch, f"{_printing(Exported('audit', 9))}\ncat > {tmp_path}/input")
    async with _running(tmp_path) as process:
        _step(process, *LEADS)
        fields = await _until_logged(caplog, "exporter positions not written")
        assert "Is a directory" in str(fields["error"])
        (tmp_path / f"{POSITIONS_FILE}.tmp").rmdir()
        _step(process, LostLeadership(3, None))
        await _until_logged(caplog, "exporters stopped")
    assert (tmp_path / POSITIONS_FILE).exists()


async def test_a_process_that_reads_nothing_is_stopped_nevertheless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kraft_wire.server.export_process.STOP_S", 0.1)
    monkeypatch.setattr("kraft_wire.server.export_process.TELL_INTERVAL_S", 0.0)
    _program(tmp_path, monkeypatch, "exec sleep 1000")
    async with _running(tmp_path) as process:
        _step(process, *LEADS)
        await _until_logged(caplog, "exporters started")
        for offset in range(100_000, 106_000):  # more than a pipe holds
            _step(process, HighWatermarkAdvanced(offset))
            await trio.testing.wait_all_tasks_blocked()
        _step(process, LostLeadership(3, None))
        await _until_logged(caplog, "exporters stopped")


# The end.


ACKNOWLEDGES = _printing(Exported("audit", 9))
FINISHES = f"while read -r line; do case $line in *Finish*) {ACKNOWLEDGES}; exit;; esac; done"
"""A script that tells a position when it must finish, and only then."""


def _kept(folder: Path) -> dict[str, int]:
    """Return the positions on disk."""
    file = folder / POSITIONS_FILE
    return parse_positions(file.read_text(), CLUSTER).positions if file.exists() else {}


async def test_what_is_acknowledged_while_the_exporters_finish_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _program(tmp_path, monkeypatch, FINISHES)
    async with _running(tmp_path) as process:
        _step(process, *LEADS)
        await _until_logged(caplog, "exporters started")
        await process.finish()
        assert _kept(tmp_path) == {"audit": 9}
        _step(process, HighWatermarkAdvanced(12))
        await trio.testing.wait_all_tasks_blocked()
    assert [each.getMessage() for each in caplog.records].count("exporters started") == 1


async def test_a_process_that_does_not_finish_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kraft_wire.server.export_process.STOP_S", 0.1)
    monkeypatch.setattr("kraft_wire.server.export_process.FINISH_S", 0.1)
    _program(tmp_path, monkeypatch, "exec sleep 1000")
    async with _running(tmp_path) as process:
        _step(process, *LEADS)
        await _until_logged(caplog, "exporters started")
        await process.finish()


async def test_a_stop_waits_for_no_descendant_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It still holds the standard output."""
    monkeypatch.setattr("kraft_wire.server.export_process.STOP_S", 0.1)
    _program(tmp_path, monkeypatch, f"sleep 1000 &\necho $! > {tmp_path}/pid\nread -r line; read -r line")
    async with _running(tmp_path) as process:
        _step(process, *LEADS)
        await _until_logged(caplog, "exporters started")
        await process.finish()
        await _until_logged(caplog, "exporters stopped")
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


async def test_new_orders_wait_for_what_the_sinks_are_getting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kraft_wire.server.export_process.ORDERS_INTERVAL_S", 0.01)
    _program(tmp_path, monkeypatch, FINISHES)
    orders: dict[str, str] = {}
    async with _running(tmp_path, orders) as process:
        _step(process, *LEADS)
        await _until_logged(caplog, "exporters started")
        orders[paused_key("audit")] = "true"
        await _until_logged(caplog, "exporters stopped")
        assert _kept(tmp_path) == {"audit": 9}


async def test_a_leader_that_is_deposed_while_it_finishes_waits_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kraft_wire.server.export_process.FINISH_S", math.inf)
    _program(tmp_path, monkeypatch, "cat > /dev/null")
    async with _running(tmp_path) as process, trio.open_nursery() as nursery:
        _step(process, *LEADS)
        await _until_logged(caplog, "exporters started")
        nursery.start_soon(process.finish)
        await trio.testing.wait_all_tasks_blocked()
        _step(process, LostLeadership(3, None))
        await _until_logged(caplog, "exporters stopped")


async def test_exporters_that_do_not_run_have_finished(tmp_path: Path) -> None:
    async with _running(tmp_path) as process:
        await process.finish()


async def test_a_leader_that_is_deposed_waits_for_no_sink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The next leader exports the same."""
    _program(tmp_path, monkeypatch, f"cat > {tmp_path}/input")
    async with _running(tmp_path) as process:
        _step(process, *LEADS)
        await _until_logged(caplog, "exporters started")
        await _until_written(tmp_path / "input")
        _step(process, LostLeadership(3, None))
        await _until_logged(caplog, "exporters stopped")
    assert "Finish" not in (tmp_path / "input").read_text()


async def test_what_is_acknowledged_after_the_leadership_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The next leader may be further, or may have begun again because of an order."""
    _program(tmp_path, monkeypatch, f"cat > /dev/null\n{ACKNOWLEDGES}")
    async with _running(tmp_path) as process:
        _step(process, *LEADS)
        await _until_logged(caplog, "exporters started")
        _step(process, LostLeadership(3, None))
        await _until_logged(caplog, "exporters stopped")
    assert _kept(tmp_path) == {}


# Orders of operators.


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraft_wire.server.export_process.ORDERS_INTERVAL_S", 0.01)
    monkeypatch.setattr("kraft_wire.server.export_process.FINISH_S", 0.05)


def _begun(folder: Path) -> list[dict[str, Any]]:
    """Return what each process was told first."""
    file = folder / "input"
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    return [msgspec.json.decode(line) for line in lines if b"cluster" in line and line.endswith(b"\n")]


async def _until_begun(folder: Path, count: int) -> None:
    """Wait until so many processes have noted what they were told first: a deposed leader ends them at
    once."""
    with trio.fail_after(10):
        while len(_begun(folder)) < count:
            await trio.sleep(0.005)


@pytest.mark.usefixtures("soon")
async def test_a_paused_exporter_does_not_run_until_it_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _program(tmp_path, monkeypatch, f"cat >> {tmp_path}/input")
    orders = {paused_key("audit"): "true"}
    async with _running(tmp_path, orders) as process:
        _step(process, *LEADS)
        await trio.sleep(0.1)
        assert not caplog.records
        orders.clear()
        await _until_logged(caplog, "exporters started")
        orders[paused_key("audit")] = "true"
        fields = await _until_logged(caplog, "exporters stopped", 2)
        assert fields["reason"] == "there are new orders for them"
        await trio.sleep(0.1)
    assert len([each for each in caplog.records if each.getMessage() == "exporters started"]) == 1


@pytest.mark.usefixtures("soon")
async def test_a_reset_is_carried_out_once_and_never_taken_back_by_an_old_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _program(tmp_path, monkeypatch, f"{_printing(Exported('audit', 9))}\ncat >> {tmp_path}/input")
    orders = {reset_key("other"): "tail@1"}
    async with _running(tmp_path, orders) as process:
        _step(process, *LEADS)
        await _until_logged(caplog, "exporters started")
        await _until_begun(tmp_path, 1)
        _program(tmp_path, monkeypatch, f"cat >> {tmp_path}/input")
        orders[reset_key("audit")] = "3@a"
        fields = await _until_logged(caplog, "exporter reset")
        assert fields == {"exporter": "audit", "reset": "3@a"}
        await _until_logged(caplog, "exporters started", 2)
        await _until_begun(tmp_path, 2)
        _step(process, LostLeadership(3, None))
        await _until_logged(caplog, "exporters stopped", 2)
        _step(process, *LEADS)
        await _until_logged(caplog, "exporters started", 3)
        await _until_begun(tmp_path, 3)
    first, second, third = _begun(tmp_path)
    assert first["exporters"][0]["start"] == "snapshot+tail"
    assert (second["positions"], second["exporters"][0]["start"]) == ({}, 3)
    assert third == second | {"high_watermark": third["high_watermark"]}
    text = (tmp_path / POSITIONS_FILE).read_text()
    assert msgspec.json.decode(text)["resets"] == {"audit": "3@a"}
    assert len([each for each in caplog.records if each.getMessage() == "exporter reset"]) == 1


@pytest.mark.usefixtures("soon")
async def test_a_node_that_was_told_of_a_reset_by_the_leader_does_not_repeat_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _program(tmp_path, monkeypatch, f"cat >> {tmp_path}/input")
    (tmp_path / POSITIONS_FILE).write_text(positions_text(CLUSTER, Kept({"audit": 7}, {"audit": "3@a"})))
    async with _running(tmp_path, {reset_key("audit"): "3@a"}) as process:
        _step(process, *LEADS)
        await _until_logged(caplog, "exporters started")
        await _until_begun(tmp_path, 1)
    (begin,) = _begun(tmp_path)
    assert begin["positions"] == {"audit": 7}


# Observers.


async def test_an_observer_exports_when_it_knows_of_all_that_it_exported_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A leader that was just elected may tell a high watermark that is lower than the last one's."""
    _program(tmp_path, monkeypatch, f"cat >> {tmp_path}/input")
    (tmp_path / POSITIONS_FILE).write_text(positions_text(CLUSTER, Kept({"audit": 7})))
    async with _running(tmp_path, is_observer=True) as process:
        _step(process, HighWatermarkAdvanced(6))
        await trio.sleep(0.05)
        assert not caplog.records
        _step(process, HighWatermarkAdvanced(7))
        await _until_logged(caplog, "exporters started")
        await trio.sleep(0.05)
    (begin,) = _begun(tmp_path)
    assert begin["positions"] == {"audit": 7}
