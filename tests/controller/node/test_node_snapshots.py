"""Snapshots: when a node makes them, and how it continues with one that was installed."""

from __future__ import annotations

import pytest

from kraft_wire.controller.node.effects import (
    FreeState,
    ReadCommitted,
)
from kraft_wire.controller.node.events import StateLoaded
from kraft_wire.controller.settings import Settings
from kraft_wire.log.batch import encode_batch, split_batches
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.messages.abort_transaction_record import AbortTransactionRecord
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.effects import HighWatermarkAdvanced, InstallSnapshot
from kraft_wire.raft.events import (
    Now,
    SnapshotVerified,
    SnapshotWritten,
    Tick,
)
from tests.controller.lone_controller import NODE_ID, LoneController, active_controller


def test_a_snapshot_is_due_after_the_bytes_before_and_after_a_restart() -> None:
    settings = _snapshots_after(5_000)
    controller = active_controller(settings)
    restarts = 0
    while not controller.snapshots_wanted() and restarts < 100:
        restarts += 1
        controller = controller.crash_and_restart()
        controller.flush()
    assert 5 < restarts < 100


def test_a_node_that_starts_with_too_long_a_log_makes_an_urgent_snapshot_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also before it knows a leader: the log that it applied is committed."""
    disk = active_controller().disk
    disk.committed = disk.end_offset
    monkeypatch.setattr(RaftCore, "step", lambda core, event, now: [])
    starting = LoneController(disk, _snapshots_after(disk.size_bytes // 3))
    (wanted,) = starting.snapshots_wanted()
    assert (wanted.snapshot_id.end_offset, wanted.is_urgent) == (disk.end_offset, True)
    (wanted,) = LoneController(disk, _snapshots_after(disk.size_bytes)).snapshots_wanted()
    assert not wanted.is_urgent
    assert LoneController(disk, _snapshots_after(disk.size_bytes + 1)).snapshots_wanted() == []


def _snapshots_after(size_bytes: int) -> Settings:
    return Settings(node_id=NODE_ID, metadata_log_max_record_bytes_between_snapshots=size_bytes)


def test_no_snapshot_is_made_before_anything_is_committed() -> None:
    controller = LoneController(settings=Settings(node_id=NODE_ID, metadata_log_max_snapshot_interval_ms=1))
    controller.tick(1000)
    assert controller.snapshots_wanted() == []


def test_a_node_continues_with_the_state_of_the_newest_snapshot_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log starts at the end of the newest: it does not continue an older one."""
    controller = LoneController()
    node, core = controller.node, controller.node.core
    older, newer = SnapshotId(100, 3), SnapshotId(200, 4)
    for snapshot_id in (older, newer):
        with monkeypatch.context() as context:
            context.setattr(core, "step", lambda event, now, id=snapshot_id: [InstallSnapshot(id)])
            controller.step(SnapshotVerified(snapshot_id, 1000, 0, ()))
    with monkeypatch.context() as context:
        context.setattr(core, "step", lambda event, now: [HighWatermarkAdvanced(250)])
        assert controller.step(Tick()) == [HighWatermarkAdvanced(250)]
    states = {snapshot_id: MetadataState() for snapshot_id in (older, newer)}
    first = controller.state.metadata
    now = Now(controller.now_ms, 0)
    assert node.step(StateLoaded(older, states[older]), now) == [FreeState(states[older])]
    assert controller.state.metadata is not states[older]
    assert node.step(StateLoaded(newer, states[newer]), now) == [FreeState(first), ReadCommitted(200, 250)]
    assert controller.state.metadata is states[newer]
    assert node.step(StateLoaded(older, states[older]), now) == [FreeState(states[older])]
    assert controller.state.metadata is states[newer]


def test_one_snapshot_is_made_after_enough_bytes() -> None:
    settings = _snapshots_after(1)
    controller = active_controller(settings)
    (wanted,) = controller.snapshots_wanted()
    controller.tick(500)
    controller.flush()
    assert controller.snapshots_wanted() == [wanted]
    assert wanted.snapshot_id.epoch == controller.node.core.epoch
    controller.step(SnapshotWritten(wanted.snapshot_id, 1000, 0))
    controller.tick(500)
    controller.flush()
    second = controller.snapshots_wanted()[-1]
    assert second.snapshot_id.end_offset > wanted.snapshot_id.end_offset


def test_no_snapshot_ends_in_a_transaction_that_is_aborted() -> None:
    settings = _snapshots_after(1)
    disk = active_controller(settings).disk
    begun_at = disk.end_offset
    values = [encode_metadata_record(BeginTransactionRecord(), 0), encode_metadata_record(NoOpRecord(), 0)]
    disk.batches += split_batches(encode_batch(begun_at, 1, 0, values))[0]
    disk.flushed = disk.end_offset
    controller = LoneController(disk, settings)
    (before_it,) = controller.snapshots_wanted()
    assert before_it.snapshot_id.end_offset == begun_at
    controller.step(SnapshotWritten(before_it.snapshot_id, 1000, 0))
    controller.flush()
    assert isinstance(disk.records()[-2], AbortTransactionRecord)
    assert controller.snapshots_wanted() == [before_it]
    controller.flush()
    (_, wanted) = controller.snapshots_wanted()
    assert wanted.snapshot_id.end_offset == disk.end_offset
