"""A committed record of a newer release: replay stops there, the node goes on replicating, and doesn't lead
(Zeebe's ZEP-007, "Rolling upgrades" and error events)."""

from __future__ import annotations

import pytest

from kraft_wire.controller.node.effects import ReadCommitted, ReplayContinues, ReplayStopped
from kraft_wire.controller.node.events import CommittedBatches, StateLoaded, StateTooNew
from kraft_wire.log.batch import Batch, encode_batch, split_batches
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.canonical import fingerprint
from kraft_wire.metadata.features.supported import METADATA_VERSION
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.effects import HighWatermarkAdvanced, InstallSnapshot
from kraft_wire.raft.events import SnapshotVerified, Tick
from tests.controller.lone_controller import Disk, LoneController, active_controller

UNKNOWN_TYPE = b"\x01\x63\x00\x00"
NEW_VERSION = b"\x01\x02\x09\x00"
"""A TopicRecord of version 9."""
NEW_FRAME = b"\x02\x02\x00\x00"
HIGHER_LEVEL = encode_metadata_record(FeatureLevelRecord(METADATA_VERSION, 1000), 0)
LATER_RELEASE = pytest.mark.parametrize(
    ("value", "reason"),
    [
        (UNKNOWN_TYPE, "there is no record 99"),
        (NEW_VERSION, "TopicRecord version 9"),
        (NEW_FRAME, "frame version"),
        (HIGHER_LEVEL, "metadata.version 1000 is not supported here"),
    ],
    ids=["type", "version", "frame", "level"],
)


def topic(name: str) -> bytes:
    return encode_metadata_record(TopicRecord(name, Uuid(name.encode().ljust(16))), 0)


def log_with(*values: bytes) -> Disk:
    """Return the log of a controller, all committed, with a batch of these records at its end."""
    disk = active_controller().disk
    append(disk, *values)
    return disk


def append(disk: Disk, *values: bytes) -> Batch:
    assert disk.election is not None
    data = encode_batch(disk.end_offset, disk.election.leader_epoch, 0, list(values))
    ((batch,), _) = split_batches(data)
    disk.batches.append(batch)
    disk.flushed = disk.committed = disk.end_offset
    return batch


def stops(controller: LoneController) -> list[ReplayStopped]:
    return [effect for effect in controller.effects if isinstance(effect, ReplayStopped)]


@LATER_RELEASE
def test_replay_stops_at_a_record_of_a_newer_release(value: bytes, reason: str) -> None:
    disk = log_with(topic("before"), topic("also-before"), value, topic("after"))
    controller = LoneController(disk)
    (stopped,) = stops(controller)
    assert stopped.offset == disk.end_offset - 2
    assert reason in stopped.reason
    metadata = controller.state.metadata
    assert metadata.last_applied_offset == stopped.offset - 1
    assert [metadata.topics.is_name(name) for name in ("before", "also-before", "after")] == [
        True,
        True,
        False,
    ]


def test_nothing_of_the_record_is_applied() -> None:
    known = log_with(topic("before"))
    with_unknown = log_with(topic("before"), HIGHER_LEVEL)
    states = [LoneController(disk).state.metadata for disk in (known, with_unknown)]
    assert fingerprint(states[0]) == fingerprint(states[1])


def test_a_lone_controller_that_can_not_apply_its_log_does_not_lead() -> None:
    controller = LoneController(log_with(UNKNOWN_TYPE))
    controller.live(60_000)
    assert not controller.node.core.is_leader
    assert not controller.node.is_active
    assert len(stops(controller)) == 1, "it is reported once"


def test_after_the_upgrade_a_restart_goes_on() -> None:
    disk = log_with(topic("before"), UNKNOWN_TYPE)
    LoneController(disk).live(1000)
    assert disk.batches.pop().header.record_count == 2, "nothing was appended"
    append(disk, topic("before"), encode_metadata_record(NoOpRecord(), 0))  # as the newer release reads it
    upgraded = LoneController(disk)
    upgraded.flush()
    assert stops(upgraded) == []
    assert upgraded.node.is_active


def test_a_stopped_node_reads_no_further_and_makes_no_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = log_with(UNKNOWN_TYPE)
    controller = LoneController(disk)
    core = controller.node.core
    append(disk, topic("later"))
    with monkeypatch.context() as context:
        context.setattr(core, "step", lambda event, now: [HighWatermarkAdvanced(disk.end_offset)])
        effects = controller.step(Tick())
    assert not any(isinstance(effect, ReadCommitted) for effect in effects)
    controller.tick(2 * controller.state.settings.metadata_log_max_snapshot_interval_ms)
    assert controller.snapshots_wanted() == []


def test_batches_that_were_read_already_are_not_applied_after_the_stop() -> None:
    disk = log_with(UNKNOWN_TYPE)
    controller = LoneController(disk)
    before = fingerprint(controller.state.metadata)
    later = append(disk, topic("later"))
    controller.step(CommittedBatches([later], disk.end_offset))
    assert fingerprint(controller.state.metadata) == before


def install(monkeypatch: pytest.MonkeyPatch, controller: LoneController, snapshot_id: SnapshotId) -> None:
    with monkeypatch.context() as context:
        context.setattr(controller.node.core, "step", lambda event, now: [InstallSnapshot(snapshot_id)])
        controller.step(SnapshotVerified(snapshot_id, 1000, 0, ()))


def test_a_snapshot_that_covers_the_record_ends_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = log_with(UNKNOWN_TYPE)
    controller = LoneController(disk)
    snapshot_id = SnapshotId(disk.end_offset + 100, 9)
    install(monkeypatch, controller, snapshot_id)
    effects = controller.step(StateLoaded(snapshot_id, MetadataState()))
    assert ReplayContinues(snapshot_id.end_offset) in effects
    assert controller.node.replay_stopped is None


def test_a_snapshot_of_a_newer_release_stops_replay_and_the_old_state_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller = active_controller().crash_and_restart()
    metadata = controller.state.metadata
    older, newer = SnapshotId(500, 9), SnapshotId(600, 9)
    install(monkeypatch, controller, older)
    install(monkeypatch, controller, newer)
    controller.step(StateTooNew(older, "an outdated answer"))
    assert stops(controller) == []
    controller.step(StateTooNew(newer, "there is no record 99"))
    assert [stop.reason for stop in stops(controller)] == ["there is no record 99"]
    assert controller.state.metadata is metadata
