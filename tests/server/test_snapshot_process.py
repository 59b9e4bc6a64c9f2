"""The process that makes snapshots, when it can't."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from kraft_wire.log.files import segment_file_name
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.server.snapshot_process import SnapshotProcess, SnapshotProcessFailed
from tests.support.waiting import wait_until

ID = SnapshotId(10, 1)
GIVE_UP_S = 30.0


async def test_what_the_process_says_is_told(tmp_path: Path) -> None:
    with pytest.raises(SnapshotProcessFailed) as failed:
        await SnapshotProcess(tmp_path).make(ID, is_urgent=False)
    assert str(failed.value) == f"{tmp_path}: the log holds no batch at offset 0, below 10"


async def test_a_process_that_is_killed_is_told_with_its_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(SnapshotProcessFailed, match="status -9"):
        await SnapshotProcess(tmp_path).make(ID, is_urgent=False)


async def test_a_process_that_can_not_be_started_is_a_failed_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    with pytest.raises(SnapshotProcessFailed, match="can't be started"):
        await SnapshotProcess(tmp_path).make(ID, is_urgent=False)


@pytest.mark.parametrize(("is_urgent", "niceness"), [(False, 10), (True, 0)])
async def test_a_process_comes_after_others_unless_the_snapshot_is_urgent(
    tmp_path: Path, *, is_urgent: bool, niceness: int
) -> None:
    log = tmp_path / segment_file_name(0)
    os.mkfifo(log)

    async def make() -> None:
        with pytest.raises(SnapshotProcessFailed, match="no batch"):
            await SnapshotProcess(tmp_path).make(ID, is_urgent=is_urgent)

    with trio.fail_after(GIVE_UP_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(make)
            # A pipe opens when somebody reads it.
            writable = await trio.to_thread.run_sync(os.open, log, os.O_WRONLY, abandon_on_cancel=True)
            # While others come and go, a look at all processes may miss one.
            while not (processes := processes_with(tmp_path)):
                await trio.sleep(0)
            (process,) = processes
            above_ours = os.getpriority(os.PRIO_PROCESS, process) - os.getpriority(os.PRIO_PROCESS, 0)
            os.close(writable)
    assert above_ours == niceness


def test_a_process_ends_with_the_controller_that_started_it(tmp_path: Path) -> None:
    """The folder's next owner must not share it."""
    os.mkfifo(tmp_path / segment_file_name(0))  # whoever reads it waits
    owner = "import sys, trio; from kraft_wire.server.snapshot_process import *; from pathlib import Path; "
    making = "trio.run(lambda: SnapshotProcess(Path(sys.argv[1])).make(SnapshotId(10, 1), is_urgent=False))"
    controller = subprocess.Popen([sys.executable, "-c", owner + making, str(tmp_path)])
    try:
        wait_until(lambda: len(processes_with(tmp_path)) == 2, "the process to start")
    finally:
        controller.kill()
        controller.wait()
    wait_until(lambda: not processes_with(tmp_path), "the process to end")


def processes_with(word: Path) -> list[int]:
    """Those whose command lines name it."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if os.fsencode(word) in command.read_bytes().split(b"\0"):
                found.append(int(command.parent.name))
    return found
