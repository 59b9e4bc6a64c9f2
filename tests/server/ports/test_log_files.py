"""The log in files: what a truncation says, and what it leaves."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import cast

import pytest
import trio

from kraft_wire.controller.node.events import CommittedBatches
from kraft_wire.controller.node.node import NodeEvent
from kraft_wire.log.batch import encode_batch
from kraft_wire.log.files import ElectionState, MetaProperties, meta_properties_text
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import LogTruncated
from kraft_wire.server.assembly import _report_recovery
from kraft_wire.server.ports.background import Background
from kraft_wire.server.ports.log_files import LogFiles
from kraft_wire.storage.store import Store
from tests.storage.storage_samples import data_batch, leader_change

NODE_ID = 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "meta.properties").write_text(meta_properties_text(MetaProperties("cluster", NODE_ID)))
    return tmp_path


def open_store(path: Path) -> Store:
    return Store.open(path, node_id=NODE_ID, static_voter_ids=[1, 2, 3])


def append(files: LogFiles, data: bytes, offset: int, epoch: int) -> None:
    files.append([AppendBatch(data, offset, offset, epoch)])


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("was_flushed", [True, False], ids=["flushed", "not flushed"])
@pytest.mark.parametrize("led", [True, False], ids=["former leader", "follower"])
def test_an_uncommitted_leader_change_that_is_cut_is_no_loss(
    path: Path, caplog: pytest.LogCaptureFixture, led: bool, was_flushed: bool
) -> None:
    """It is the first record of a leader without a majority. Nobody misses it, also after a restart."""
    caplog.set_level(logging.INFO)
    fed: list[NodeEvent] = []
    store = open_store(path)
    files = LogFiles(store, fed.append, cast(Background, None), lambda: 0)
    append(files, leader_change(0, 1), 0, 1)
    append(files, data_batch(1, 1), 1, 1)
    store.log.flush()
    files.note_committed(2)
    store.write_election_state(ElectionState(NODE_ID if led else 2, 2), kraft_version=1)
    append(files, leader_change(2, 2), 2, 2)
    if was_flushed:
        store.log.flush()
    store.write_election_state(ElectionState(3, 3), kraft_version=1)
    files.truncate(2)
    assert [type(event) for event in fed] == [LogTruncated]
    append(files, leader_change(2, 3), 2, 3)
    store.log.flush()
    store.close()
    again = open_store(path)
    _report_recovery(again)
    assert (again.log.end_offset, again.lost_below_offset, again.no_vote_up_to_epoch) == (3, None, -1)
    assert warnings(caplog) == []
    assert "log truncated" in [record.getMessage() for record in caplog.records]
    again.close()


def test_what_many_replicas_ask_for_is_read_once(path: Path) -> None:
    store = open_store(path)
    files = LogFiles(store, lambda event: None, cast(Background, None), lambda: 0)
    append(files, data_batch(0, 1), 0, 1)
    first = files.read(0, 1, 1 << 20)
    assert first
    assert files.read(0, 1, 1 << 20) is first
    assert files.read(0, 1, len(first) + 1) == first


def test_a_read_after_a_truncation_is_new(path: Path) -> None:
    store = open_store(path)
    files = LogFiles(store, lambda event: None, cast(Background, None), lambda: 0)
    append(files, data_batch(0, 1), 0, 1)
    append(files, data_batch(1, 1), 1, 1)
    old = files.read(0, 2, 1 << 20)
    files.truncate(1)
    append(files, data_batch(1, 2), 1, 2)
    new = files.read(0, 2, 1 << 20)
    assert new != old
    assert new == store.log.read(0, 2, 1 << 20)


def test_a_read_after_trimming_finds_nothing_of_what_was_trimmed(path: Path) -> None:
    store = open_store(path)
    files = LogFiles(store, lambda event: None, cast(Background, None), lambda: 0)
    append(files, data_batch(0, 1), 0, 1)
    files.read(0, 1, 1 << 20)
    files.trim(1)
    assert files._last_read is None


async def test_a_high_watermark_in_the_middle_of_a_batch_ends_nobody(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever plays a leader can say that. What is missing below the log's end is another thing."""
    fed: list[NodeEvent] = []
    store = open_store(path)
    files = LogFiles(store, fed.append, cast(Background, None), lambda: 0)
    append(files, encode_batch(0, 1, 0, [b"a", b"b", b"c"]), 0, 1)
    await files._read_committed(0, 2, trio.CancelScope())
    assert fed == [CommittedBatches([], 0)]
    with pytest.raises(InvariantViolated, match="the log has nothing at 3"):
        await files._read_committed(0, 9, trio.CancelScope())
    monkeypatch.setattr(store.log, "read", lambda *asked: b"damage")
    with pytest.raises(InvariantViolated, match="the log has nothing at 0"):
        await files._read_committed(0, 2, trio.CancelScope())
    store.close()
