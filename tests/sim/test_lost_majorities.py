"""A majority's disks are lost, and an operator recovers the quorum: what docs/recovery.md promises of the
records, and of nodes that are started on their old disks."""

from __future__ import annotations

import pytest

from kraft_wire.raft.roles import Role
from kraft_wire.sim.machines.node import SimNode
from kraft_wire.sim.population.disasters import LostDisk
from tests.sim.scenario import Scenario

SEEDS = range(5)


class LostMajority:
    """A quorum of three whose leader and another voter lose their disks. The survivor may be cut off before,
    or the leader."""

    def __init__(self, seed: int, snapshot_interval_ms: int = 10_000_000) -> None:
        self.scenario = Scenario(
            seed,
            kraft_version=1,
            voters_change=True,
            snapshot_interval_ms=snapshot_interval_ms,
            retention_bytes=2_000,
        ).with_leader()
        self.leader = self.scenario.leader
        self.survivor, self.other = (node for node in self.scenario.nodes if node is not self.leader)

    def recover(self) -> LostDisk:
        """Lose the disks, and recover. Returns the former leader's disk. Both nodes come back."""
        cluster, scenario = self.scenario.cluster, self.scenario
        scenario.heal()
        lost = cluster.disasters.destroy_disk(self.leader)
        cluster.disasters.destroy_disk(self.other)
        cluster.disasters.end()
        scenario.until(lambda: self.survivor.leading is not None)
        return lost

    def start_on(self, lost: LostDisk) -> SimNode:
        """Start the former leader on its lost disk."""
        node = self.leader
        node.kill()
        self.scenario.cluster.operator.put_back(node, lost)
        node.start()
        return node

    def commit(self) -> None:
        """Let the new quorum commit something more."""
        committed = self.survivor.high_watermark
        self.scenario.until(lambda: self.survivor.high_watermark > committed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_survivor_that_has_everything_loses_nothing(seed: int) -> None:
    lost = LostMajority(seed)
    scenario = lost.scenario
    scenario.workload.stop()
    scenario.run_for(1_000)
    committed = scenario.committed
    assert scenario.all_reached(committed)
    lost.recover()
    assert scenario.cluster.checkers.committed.lost_from(lost.survivor.disk) > committed
    scenario.until(lambda: set(lost.survivor.raft.voters.ids) == {1, 2, 3})
    scenario.until(lambda: all(node.is_up and node.applied_end > committed for node in scenario.nodes))


@pytest.mark.parametrize("seed", SEEDS)
def test_an_old_disk_is_cut_where_it_was_never_committed_and_its_node_follows(seed: int) -> None:
    lost = LostMajority(seed)
    lost.scenario.isolate(lost.leader)
    end_offset = lost.leader.disk.end_offset
    lost.scenario.until(lambda: lost.leader.disk.flushed_offset > end_offset + 5)
    old = lost.recover()
    kept, end_offset = old.disk.committed_offset, old.disk.end_offset
    node = lost.start_on(old)
    assert not node.disk.is_estranged
    lost.commit()
    lost.scenario.until(lambda: node.applied_end == lost.survivor.applied_end > end_offset)
    assert node.disk.batch_before(kept) is not None, "what was committed is still there"
    assert node.raft.role is Role.FOLLOWER


def estranged(lost: LostMajority) -> SimNode:
    """Start the former leader on its disk when it has committed records that are lost. The power cut may have
    left an older floor; all of them are after the loss."""
    lost.scenario.isolate(lost.survivor)
    committed = lost.survivor.disk.end_offset
    lost.scenario.until(lambda: lost.leader.high_watermark > committed + 100)
    node = lost.start_on(lost.recover())
    assert node.disk.is_estranged
    return node


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_whose_committed_records_are_lost_stands_still(seed: int) -> None:
    """It doesn't keep the others from going on."""
    lost = LostMajority(seed)
    node = estranged(lost)
    log = list(node.disk.batches)
    epoch = lost.survivor.raft.epoch
    lost.scenario.run_for(10_000)
    lost.commit()
    assert lost.survivor.raft.epoch == epoch
    assert node.disk.batches == log
    assert node.leading is None


@pytest.mark.parametrize("seed", SEEDS)
def test_a_newer_snapshot_replaces_committed_records_that_are_lost(seed: int) -> None:
    lost = LostMajority(seed, snapshot_interval_ms=1_000)
    node = estranged(lost)
    lost.scenario.until(lambda: not node.disk.is_estranged)
    lost.commit()
    lost.scenario.until(lambda: node.applied_end == lost.survivor.applied_end)
