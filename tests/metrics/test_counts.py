"""What is counted in the steps of a node."""

from __future__ import annotations

import numpy as np
import pytest

from kraft_wire.controller.decision.records import Records
from kraft_wire.controller.node.effects import RecordsAppended
from kraft_wire.controller.node.events import StateLoaded
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.partitions.column_changes import PartitionChanges
from kraft_wire.metadata.partitions.columns import Changes
from kraft_wire.metadata.partitions.partition import NO_LEADER_CHANGE, RECOVERING
from kraft_wire.metadata.partitions.places import Places
from kraft_wire.metadata.state import MetadataState
from kraft_wire.metrics.counts import Counts
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.effects import AppendBatch, HighWatermarkAdvanced, RoleChanged, TruncateLog
from kraft_wire.raft.events import Failure, Now, RequestFailed, ResponseReceived, ShutDown, Tick
from kraft_wire.raft.roles import Role
from tests.controller.node.node_requests import create_topic, register_broker
from tests.metrics.counted import CountedController, active

AT_1_S = Now(1_000, 0)


@pytest.fixture
def controller() -> CountedController:
    return active()


def test_records_and_their_commits(controller: CountedController) -> None:
    counts = controller.counted
    assert counts.appended.total == controller.disk.end_offset
    assert counts.fetched.total == 0
    commits = sum(counts.commits.histogram.counts)
    controller.ask("broker", register_broker(), 4)
    controller.now_ms += 30
    controller.flush()
    assert sum(counts.commits.histogram.counts) == commits + 1
    assert counts.commits.recent_max_ms(controller.now_ms) == 30


def test_requests_by_api_and_refusals_by_error(controller: CountedController) -> None:
    controller.ask("topic", create_topic("t"), 7)
    assert controller.counted.requests[create_topic("t").API_KEY] == 1


def test_elections_and_leaders(controller: CountedController) -> None:
    counts = Counts(controller.node, AT_1_S)
    for role, leader_id, now_ms in (
        (Role.PROSPECTIVE, None, 2_000),
        (Role.CANDIDATE, None, 2_100),
        (Role.FOLLOWER, 2, 2_250),
        (Role.FOLLOWER, 2, 2_300),
    ):
        counts.stepped(Tick(), [RoleChanged(role, 7, leader_id)], Now(now_ms, 0))
    assert counts.elections.histogram.sum == 250
    assert counts.leader_changes == 1


def test_the_time_without_a_leader(controller: CountedController) -> None:
    counts = Counts(controller.node, AT_1_S)
    for role, leader_id, now_ms in (
        (Role.FOLLOWER, 2, 1_500),
        (Role.PROSPECTIVE, None, 2_000),
        (Role.CANDIDATE, None, 2_100),
        (Role.FOLLOWER, 3, 2_250),
    ):
        counts.stepped(Tick(), [RoleChanged(role, 7, leader_id)], Now(now_ms, 0))
    assert counts.leaderless.sum == 500 + 250
    assert sum(counts.leaderless.counts) == 2


def test_the_pieces_of_a_failover() -> None:
    controller = CountedController()
    controller.now_ms += 20
    controller.flush()
    controller.now_ms += 10
    controller.flush()
    counts = controller.counted
    assert (sum(counts.activations.counts), counts.activations.sum) == (1, 20)
    assert (sum(counts.first_writes.counts), counts.first_writes.sum) == (1, 30)


def test_flushes(controller: CountedController) -> None:
    counts = controller.counted
    before, took_ms = sum(counts.flushes.counts), counts.flushes.sum
    controller.ask("broker", register_broker(), 4)
    controller.now_ms += 40
    controller.flush()
    assert (sum(counts.flushes.counts), counts.flushes.sum) == (before + 1, took_ms + 40)
    controller.now_ms += 1_000
    controller.ask("topic", create_topic("t"), 7)
    controller.flush()
    assert counts.flushes.sum == took_ms + 40, "it was idle"


def test_truncations_and_loaded_snapshots(controller: CountedController) -> None:
    counts = Counts(controller.node, AT_1_S)
    assert counts.snapshots_loaded == 0
    counts.stepped(Tick(), [TruncateLog(1)], AT_1_S)
    counts.stepped(StateLoaded(SnapshotId(3, 1), controller.state.metadata), [], AT_1_S)
    counts.stepped(StateLoaded(SnapshotId(2, 1), MetadataState()), [], AT_1_S)
    assert (counts.truncations, counts.snapshots_loaded) == (1, 1), "the second one was too old"


def test_requests_to_peers(controller: CountedController) -> None:
    counts = Counts(controller.node, AT_1_S)
    counts.stepped(ResponseReceived(1, create_topic("t")), [], AT_1_S)
    counts.stepped(RequestFailed(2, Failure.LOST), [], AT_1_S)
    assert counts.raft_responses == 1
    assert counts.failed_raft_requests == {"lost": 1}


def test_unclean_elections_one_by_one_and_in_columns(controller: CountedController) -> None:
    counts = Counts(controller.node, AT_1_S)
    unclean = PartitionChangeRecord(
        partition_id=0, topic_id=Uuid.ZERO, leader=1, leader_recovery_state=RECOVERING
    )
    clean = PartitionChangeRecord(partition_id=1, topic_id=Uuid.ZERO, leader=1)
    counts.stepped(Tick(), [RecordsAppended([(unclean, 0), (clean, 0)])], AT_1_S)
    assert counts.unclean_elections == 1
    counts.stepped(Tick(), [RecordsAppended(_in_columns(RECOVERING, RECOVERING, -1))], AT_1_S)
    assert counts.unclean_elections == 3


def _in_columns(*recovery_states: int) -> Records:
    count = len(recovery_states)
    changes = Changes(
        np.full(count, NO_LEADER_CHANGE, np.int32),
        np.array(recovery_states, np.int8),
        np.empty((count, 1), np.int32),
        np.zeros(count, np.bool_),
    )
    places = Places([], np.zeros(0, np.intp), np.arange(count, dtype=np.int32))
    return Records([PartitionChanges(places, changes, 0)])


def test_what_is_late_is_known_since_when(controller: CountedController) -> None:
    counts, end = controller.counted, controller.disk.end_offset
    assert late(counts) == (None, None)
    controller.ask("broker", register_broker(), 4)
    asked_ms = controller.now_ms
    controller.now_ms += 100
    controller.ask("topic", create_topic("t"), 7)
    assert controller.disk.end_offset > end
    assert late(counts) == (asked_ms, asked_ms)
    controller.flush()
    assert late(counts) == (None, None)


def late(counts: Counts) -> tuple[int | None, int | None]:
    return counts.delays.uncommitted_ms, counts.delays.unflushed_ms


def test_a_high_watermark_that_moves_is_not_late(controller: CountedController) -> None:
    counts = Counts(controller.node, AT_1_S)
    end = controller.node.core.log_end_offset
    counts.stepped(Tick(), [AppendBatch(b"", end, end, 1)], AT_1_S)
    counts.stepped(Tick(), [HighWatermarkAdvanced(end - 1)], Now(3_000, 0))
    assert late(counts)[0] == 3_000
    counts.stepped(Tick(), [TruncateLog(end - 1)], Now(4_000, 0))
    assert late(counts) == (None, None)


def test_a_stop_is_noted(controller: CountedController) -> None:
    controller.step(ShutDown())
    assert controller.counted.is_stopping
