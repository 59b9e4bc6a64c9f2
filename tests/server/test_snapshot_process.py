"""The process that makes snapshots, when it can't."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.server.snapshot_process import SnapshotProcess, SnapshotProcessFailed

ID = SnapshotId(10, 1)


async def test_what_the_process_says_is_told(tmp_path: Path) -> None:
    with pytest.raises(SnapshotProcessFailed) as failed:
        await SnapshotProcess(tmp_path).make(ID)
    assert str(failed.value) == f"{tmp_path}: the log holds no batch at offset 0, below 10"


async def test_a_process_that_is_killed_is_told_with_its_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(SnapshotProcessFailed, match="status -9"):
        await SnapshotProcess(tmp_path).make(ID)


async def test_a_process_that_can_not_be_started_is_a_failed_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    with pytest.raises(SnapshotProcessFailed, match="can't be started"):
        await SnapshotProcess(tmp_path).make(ID)
