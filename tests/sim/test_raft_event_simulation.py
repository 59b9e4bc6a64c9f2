"""The nine properties of Kafka's RaftEventSimulationTest that don't change the voter set, by name, on our
core and with all of our invariants; 40 runs each."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from kraft_wire.sim.checkers.elections import (
    LeaderCompleteness,
    MonotonicEpoch,
    OneVote,
    VoteGoesToTheUpToDate,
)
from kraft_wire.sim.checkers.replication import MajorityReachedHighWatermark
from kraft_wire.sim.machines.node import SimNode
from tests.sim.scenario import Scenario

TRIES = 40
TRIES_A_TEST = 20

Property = Callable[[int, random.Random], None]
PROPERTIES: dict[str, Property] = {}


def prop(property: Property) -> Property:
    PROPERTIES[property.__name__] = property
    return property


def _majority(voters: int) -> int:
    return voters // 2 + 1


@prop
def can_elect_initial_leader(seed: int, chance: random.Random) -> None:
    scenario = Scenario(seed, chance.randint(1, 5), chance.randint(0, 5)).started()
    scenario.until(scenario.has_consistent_leader)
    scenario.until(lambda: scenario.all_reached(10))


@prop
def can_elect_new_leader_after_old_leader_failure(seed: int, chance: random.Random) -> None:
    scenario = Scenario(seed, chance.randint(3, 5), chance.randint(0, 5)).with_leader()
    leader = scenario.leader
    if chance.random() < 0.5:
        leader.shut_down()
        scenario.until(lambda: not leader.is_up)
    else:
        leader.lose_power(chance)
    scenario.until(lambda: scenario.all_reached(20))
    reached = scenario.committed
    leader.start()
    scenario.until(lambda: scenario.all_reached(reached + 10))


@prop
def can_recover_after_all_nodes_killed(seed: int, chance: random.Random) -> None:
    voters = chance.randint(1, 5)
    scenario = Scenario(seed, voters, chance.randint(0, 5)).with_leader()
    reached = scenario.committed
    for node in scenario.nodes:
        node.lose_power(chance)
    for node in scenario.nodes[: _majority(voters)]:
        node.start()
    scenario.until(lambda: scenario.all_reached(reached + 10))


@prop
def can_elect_new_leader_after_old_leader_partitioned_away(seed: int, chance: random.Random) -> None:
    scenario = Scenario(seed, chance.randint(3, 5), chance.randint(0, 5)).with_leader()
    old = scenario.leader
    scenario.isolate(old)
    others = [node for node in scenario.nodes if node is not old]
    scenario.until(lambda: scenario.all_reached(20, others))


@prop
def can_make_progress_if_majority_is_reachable(seed: int, chance: random.Random) -> None:
    scenario = Scenario(seed, 5, chance.randint(0, 3)).with_leader()
    here, there = (1, 2), (3, 4, 5)
    scenario.cut([pair for one in here for other in there for pair in ((one, other), (other, one))])
    end_offset = max(node.disk.end_offset for node in scenario.nodes)
    nodes = scenario.cluster.nodes
    majority, minority = [nodes[id] for id in there], [nodes[id] for id in here]
    scenario.until(lambda: max(node.high_watermark for node in majority) >= 2 * end_offset)
    assert max(node.high_watermark for node in minority) < 2 * end_offset
    scenario.heal()
    end_offset = max(node.disk.end_offset for node in scenario.nodes)
    scenario.until(lambda: scenario.all_reached(2 * end_offset))


@prop
def can_make_progress_after_back_to_back_leader_failures(seed: int, chance: random.Random) -> None:
    scenario = Scenario(seed, chance.randint(3, 5), chance.randint(0, 5)).with_leader()
    first = scenario.leader
    scenario.isolate(first)
    scenario.until(lambda: scenario.cluster.leader not in (None, first))
    second = scenario.leader
    scenario.heal()
    scenario.isolate(second)
    goal = scenario.committed + 10
    scenario.until(lambda: scenario.committed >= goal)


@prop
def can_recover_from_single_node_committed_data_loss(seed: int, chance: random.Random) -> None:
    """A node's disk is replaced. This is safe because the other nodes have a leader by then (KAFKA-14205)."""
    wounded = (
        LeaderCompleteness,
        MajorityReachedHighWatermark,
        MonotonicEpoch,
        OneVote,
        VoteGoesToTheUpToDate,
    )
    scenario = Scenario(seed, chance.randint(3, 5), chance.randint(0, 2), without=wounded).with_leader()
    lost = chance.choice(scenario.cluster.voters)
    lost.lose_power(chance)
    lost.disk = scenario.cluster.formatted_disk(lost.id)
    scenario.until(lambda: scenario.cluster.leader is not None and scenario.has_consistent_leader())
    reached = scenario.committed
    lost.start()
    scenario.until(lambda: scenario.all_reached(reached + 10))


KIP_996 = ((1, 3), (2, 4), (3, 4), (3, 5), (4, 5))
"""The links of KIP-996's example: without pre-votes, 3 and 4 take leadership from each other for ever."""


@prop
def leadership_assigned_only_once_with_network_partition_if_there_exists_majority(
    seed: int, chance: random.Random
) -> None:
    scenario = Scenario(seed, 5, chance.randint(0, 3))
    scenario.leave_only(KIP_996)
    scenario.started()
    scenario.until(lambda: scenario.cluster.leader is not None)
    leader = scenario.leader
    epoch = leader.raft.epoch
    assert leader.id in (3, 4, 5), "the others reach no majority"
    reached = [*_heard_by(scenario, leader), leader]
    scenario.until(lambda: scenario.all_reached(20, reached))
    scenario.run_for(6_000)
    assert scenario.cluster.leader is leader
    assert leader.raft.epoch == epoch


def _heard_by(scenario: Scenario, leader: SimNode) -> list[SimNode]:
    neighbours = {id for edge in KIP_996 if leader.id in edge for id in edge}
    return [scenario.cluster.nodes[id] for id in neighbours]


@prop
def leadership_will_not_change_during_network_partition_if_majority_still_reachable(
    seed: int, chance: random.Random
) -> None:
    scenario = Scenario(seed, 5, chance.randint(0, 3)).with_leader()
    scenario.until(scenario.has_consistent_leader)
    leader = scenario.leader
    epoch = leader.raft.epoch
    others = [node.id for node in scenario.cluster.voters if node is not leader]
    a, b, d, e = others
    c = leader.id
    scenario.leave_only(((a, c), (b, d), (c, d), (c, e), (d, e)))
    goal = scenario.committed + 20
    scenario.until(lambda: scenario.all_reached(goal, [scenario.cluster.nodes[id] for id in (a, c, d, e)]))
    scenario.run_for(6_000)
    assert scenario.cluster.leader is leader
    assert leader.raft.epoch == epoch


@pytest.mark.parametrize("first", range(0, TRIES, TRIES_A_TEST))
@pytest.mark.parametrize("name", PROPERTIES)
def test_property(name: str, first: int) -> None:
    for seed in range(first, first + TRIES_A_TEST):
        PROPERTIES[name](seed, random.Random(seed))


def test_there_are_nine() -> None:
    assert len(PROPERTIES) == 9
