"""Seeds hold while the voters change."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.sim.faults import DISASTERS, MEMBERSHIP_FAULTS, STRANGERS
from kraft_wire.sim.swarm import membership_of, schedule_of
from tests.sim.scenario import Scenario, assert_they_hold, seconds_of

SEEDS = 1_000
SEEDS_A_TEST = 20
SECONDS = 10
LONG_SECONDS = 20


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_TEST))
def test_seeds_hold_with_voters_that_change(first: int) -> None:
    seeds = range(first, first + SEEDS_A_TEST)
    assert_they_hold(membership_of(seed, seconds_of(seed, SECONDS, LONG_SECONDS)) for seed in seeds)


def test_all_changes_of_the_voters_are_among_the_faults() -> None:
    drawn = {kind for seed in range(100) for kind in membership_of(seed).fault_kinds}
    assert drawn >= MEMBERSHIP_FAULTS.keys() | STRANGERS.keys() | DISASTERS.keys()


def test_a_disaster_moves_no_other_fault_and_is_moved_by_none() -> None:
    """Minimising leaves out faults, and cuts the end off."""
    options = next(
        o for o in map(membership_of, range(100)) if not DISASTERS.keys().isdisjoint(o.fault_kinds)
    )
    without = msgspec.structs.replace(
        options, fault_kinds=tuple(kind for kind in options.fault_kinds if kind not in DISASTERS)
    )
    alone = msgspec.structs.replace(options, fault_kinds=tuple(DISASTERS))
    schedule = schedule_of(options)
    disasters = [fault for fault in schedule if fault.kind in DISASTERS]
    assert disasters
    assert disasters == schedule_of(alone)
    assert [fault for fault in schedule if fault.kind not in DISASTERS] == schedule_of(without)
    assert schedule_of(msgspec.structs.replace(alone, seconds=20)) == disasters[:1]


@pytest.mark.parametrize("voters", [1, 3])
def test_strangers_end_no_leader_and_raise_no_epoch(voters: int) -> None:
    """They claim no voter's id and directory id."""
    scenario = Scenario(1, voters=voters, kraft_version=1).with_leader()
    leader, epoch = scenario.leader, scenario.leader.raft.epoch
    asked = 0
    for _ in range(3_000):
        for node in scenario.nodes:
            asked += scenario.cluster.strangers.ask(node, scenario.chance, as_outsider=True)
        scenario.run_for(10)
    assert asked == 3_000 * voters
    assert {node.raft.epoch for node in scenario.nodes} == {epoch}
    assert scenario.leader is leader
    committed = scenario.committed
    scenario.until(lambda: scenario.committed > committed)
