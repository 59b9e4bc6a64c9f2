"""quorum-state on disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kraft_wire.log.files import ElectionState
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import CorruptFile, DiskFailed
from kraft_wire.storage.quorum_state import read_election_state, write_election_state

STATE = ElectionState(-1, 5, 2, Uuid.parse("J8aAPcfLQt2bqs1JT_rMgQ"))


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_election_state(tmp_path) is None
    write_election_state(tmp_path, STATE, Disk(), kraft_version=1)
    assert read_election_state(tmp_path) == STATE
    assert [path.name for path in tmp_path.iterdir()] == ["quorum-state"]


def test_the_version_follows_kraft_version(tmp_path: Path) -> None:
    write_election_state(tmp_path, STATE, Disk(), kraft_version=0, voter_ids=[1, 2])
    text = (tmp_path / "quorum-state").read_text()
    assert '"data_version":0' in text and '{"voterId":2}' in text
    assert read_election_state(tmp_path) == ElectionState(-1, 5, 2)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe\x00", b"[]"])
def test_a_file_that_makes_no_sense_is_not_a_missing_one(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "quorum-state").write_bytes(data)
    with pytest.raises(CorruptFile) as caught:
        read_election_state(tmp_path)
    assert caught.value.path == tmp_path / "quorum-state"


def test_a_failed_flush_leaves_the_old_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    write_election_state(tmp_path, STATE, disk, kraft_version=1)

    def failing(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", failing)
    with pytest.raises(DiskFailed):
        write_election_state(tmp_path, ElectionState(1, 6), disk, kraft_version=1)
    assert read_election_state(tmp_path) == STATE
