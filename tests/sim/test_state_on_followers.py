"""Zeebe's ZEP-007, "Build state on followers": the five cases of its section "State on Followers", compaction
and snapshots. Each test is named after its section. Three whole controllers run in the simulator.

Each test compares states with one that is replayed from the committed log outside of the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kraft_wire.metadata.snapshot import snapshot_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kraft_wire.sim.machines.controller_node import SNAPSHOT_BYTES, ControllerNode
from kraft_wire.sim.machines.metadata_state import state_hash, state_in
from kraft_wire.sim.population.population import Population
from tests.sim.commands import VERSION, set_broker_configs
from tests.sim.scenario import Scenario

SEEDS = (1, 3)
SETTLED_MS = 5_000


class Followers(Scenario):
    """Three controllers with brokers and an administrator around them."""

    def __init__(self, seed: int, retention_bytes: int = 100_000) -> None:
        super().__init__(seed, 3, controllers=True, brokers=3, retention_bytes=retention_bytes)
        self.with_leader(committed=100)

    @property
    def everybody(self) -> Population:
        assert self.population is not None
        return self.population

    @property
    def controllers(self) -> list[ControllerNode]:
        return [node for node in self.nodes if isinstance(node, ControllerNode)]

    @property
    def active(self) -> ControllerNode:
        return next(node for node in self.controllers if node.is_active)

    def followers(self) -> list[ControllerNode]:
        return [node for node in self.controllers if node.is_up and not node.is_active]

    def has_active(self) -> bool:
        return any(node.is_active for node in self.controllers)

    def fall_silent(self) -> None:
        """Let the administrator stop, and wait until all nodes have everything."""
        self.everybody.stop()
        self.run_for(SETTLED_MS)
        self.until(self.is_applied_everywhere)

    def is_applied_everywhere(self) -> bool:
        end = self.everybody.committed.end_offset
        running = [node for node in self.controllers if node.is_up]
        return self.has_active() and all(node.metadata.last_applied_offset == end - 1 for node in running)

    def assert_states_equal(self) -> None:
        expected = state_hash(self.everybody.committed.state)
        for node in (node for node in self.controllers if node.is_up):
            assert state_hash(node.metadata) == expected, f"node {node.id}"


@pytest.fixture(params=SEEDS)
def cluster(request: pytest.FixtureRequest) -> Followers:
    return Followers(request.param)


def refused(node: ControllerNode) -> ErrorCode:
    """Send a command and return the answer's error."""
    answers: list[Message] = []
    before, node.on_answer = node.on_answer, lambda token, response: answers.append(response)
    node.ask(("command",), set_broker_configs("1", {"num.io.threads": "9"}), VERSION)
    node.on_answer = before
    (answer,) = answers
    assert isinstance(answer, IncrementalAlterConfigsResponse)
    return ErrorCode(answer.responses[0].error_code)


def moments(cluster: Followers, ms: int) -> Iterator[None]:
    """Let time pass, a millisecond at a time."""
    for _ in range(ms):
        cluster.run_for(1)
        yield


def test_bootstrap_leader_partition_replays_until_the_end_before_it_processes_commands(
    cluster: Followers,
) -> None:
    for node in cluster.controllers:
        node.kill()
    committed = cluster.everybody.committed.end_offset
    for node in cluster.controllers:
        node.start()
    for _ in moments(cluster, 20_000):
        if cluster.has_active():
            break
    assert cluster.active.metadata.last_applied_offset >= committed - 1
    cluster.fall_silent()
    cluster.assert_states_equal()


def test_bootstrap_follower_partition_replays_continuously_and_refuses_commands(cluster: Followers) -> None:
    follower = cluster.followers()[0]
    follower.kill()
    cluster.run_for(3_000)
    follower.start()
    cluster.until(lambda: follower.metadata.last_applied_offset > cluster.everybody.committed.end_offset - 50)
    assert refused(follower) is ErrorCode.NOT_CONTROLLER
    seen = follower.metadata.last_applied_offset
    cluster.run_for(3_000)
    assert follower.metadata.last_applied_offset > seen
    cluster.fall_silent()
    cluster.assert_states_equal()


def test_switch_to_leader_partition_goes_on_with_the_state_it_has(cluster: Followers) -> None:
    followers = cluster.followers()
    states = {node.id: node.metadata for node in followers}
    committed = cluster.everybody.committed.end_offset
    cluster.active.kill()
    cluster.until(cluster.has_active)
    new = cluster.active
    assert new in followers
    assert new.metadata is states[new.id], "nothing was loaded"
    assert new.metadata.last_applied_offset >= committed - 1, "the old leader's records are applied"
    cluster.fall_silent()
    cluster.assert_states_equal()


def test_switch_to_follower_partition_undoes_what_restoring_the_snapshot_would_undo(
    cluster: Followers,
) -> None:
    """The document restores the latest snapshot. Here the undo journal goes back, to the same state."""
    old = cluster.active
    cluster.isolate(old)
    cluster.run_for(1_000)
    committed, uncommitted = old.high_watermark, old.metadata.last_applied_offset + 1
    assert uncommitted > committed, "it has applied what it can't commit"
    state = old.metadata
    cluster.until(lambda: not old.is_active)
    assert refused(old) is ErrorCode.NOT_CONTROLLER
    assert old.metadata is state
    assert old.metadata.last_applied_offset < committed
    assert state_hash(old.metadata) == state_hash(restored(old, committed))
    cluster.heal()
    cluster.fall_silent()
    cluster.assert_states_equal()


def restored(node: ControllerNode, end_offset: int) -> MetadataState:
    """Return the state of the latest snapshot, and of the committed log after it."""
    latest = node.disk.latest_snapshot
    assert latest is not None
    state = state_in(latest)
    for batch in node.batches(latest.id.end_offset, end_offset):
        if not batch.header.is_control:
            state.replay_batch(batch)
    return state


def test_re_init_follower_partition_replaces_the_state_by_the_installed_snapshots() -> None:
    cluster = Followers(1, retention_bytes=SNAPSHOT_BYTES)
    follower = cluster.followers()[0]
    cluster.isolate(follower)
    end = follower.raft.log_end_offset
    cluster.until(lambda: cluster.active.raft.log_start_offset > end)
    before = follower.metadata
    cluster.heal()
    cluster.until(lambda: follower.raft.log_start_offset > end)
    cluster.until(lambda: follower.metadata is not before)
    cluster.fall_silent()
    cluster.assert_states_equal()
    assert follower.disk.latest_snapshot is not None


def test_compacting_the_log_each_node_takes_its_own_snapshots_and_its_disk_use_is_bounded() -> None:
    cluster = Followers(1, retention_bytes=SNAPSHOT_BYTES)
    limit_bytes, states = 6 * SNAPSHOT_BYTES, [node.metadata for node in cluster.controllers]
    for _ in range(20):
        cluster.run_for(3_000)
        for node in cluster.controllers:
            assert node.disk.size_bytes < limit_bytes
    starts = [node.raft.log_start_offset for node in cluster.controllers]
    assert all(start > 0 for start in starts)
    assert all(node.disk.latest_snapshot is not None for node in cluster.controllers)
    assert [node.metadata for node in cluster.controllers] == states, "nobody loaded the leader's snapshots"


def test_snapshotting_on_the_leader_covers_committed_records_only(cluster: Followers) -> None:
    leader = cluster.active
    cluster.isolate(leader)
    committed = leader.high_watermark
    before = leader.disk.latest_snapshot
    leader.on_answer = lambda token, response: None
    for number in range(600):
        leader.ask(
            ("uncommitted", number), set_broker_configs("1", {"num.io.threads": str(number + 1)}), VERSION
        )
    uncommitted = leader.disk.batches_between(committed, leader.raft.log_end_offset)
    assert sum(len(batch.data) for batch in uncommitted) > SNAPSHOT_BYTES
    cluster.until(lambda: not leader.is_active)
    assert leader.disk.latest_snapshot is before
    cluster.heal()
    cluster.until(lambda: leader.disk.latest_snapshot is not before)


def test_testing_the_state_is_built_on_leader_and_followers_and_is_the_same(cluster: Followers) -> None:
    cluster.run_for(10_000)
    cluster.fall_silent()
    cluster.assert_states_equal()
    assert len(list(snapshot_records(cluster.active.metadata))) > 10
