"""A node remembers its committed offset over a power cut that brings back truncated records."""

from __future__ import annotations

import pytest

from kraft_wire.sim.checkers.violations import Violation
from kraft_wire.sim.machines.node import SimNode
from kraft_wire.sim.machines.world import NextFlush
from kraft_wire.sim.scheduler import MS
from tests.sim.planted_bugs import planted
from tests.sim.scenario import Scenario

SEEDS = range(20)
"""The planted bug needs a leader that is elected while the former one flushes: one seed in about 15."""


def older_records_come_back(seed: int, *, controllers: bool) -> None:
    """A former leader truncates records that no other node has, fetches the committed ones in their place,
    learns of a new epoch, and loses power before it has flushed."""
    scenario = Scenario(seed, controllers=controllers).with_leader()
    former = scenario.leader
    scenario.isolate(former)
    scenario.until(lambda: scenario.cluster.leader not in (None, former))
    scenario.run_for(500)
    died: list[SimNode] = []
    former.flush_to_die_in = NextFlush(
        until_us=scenario.cluster.scheduler.now_us + 60_000 * MS,
        stall_us=20_000 * MS,
        is_after_truncation=True,
        then=died.append,
    )
    scenario.heal()
    scenario.until(lambda: former.is_up and former.high_watermark > former.disk.flushed_offset)
    scenario.until(lambda: scenario.cluster.leader is not None)
    leader = scenario.leader
    leader.kill()
    scenario.until(lambda: bool(died))
    former.start()
    leader.start()
    reached = scenario.committed
    scenario.until(lambda: all(node.applied_end > reached for node in scenario.nodes))


@pytest.mark.parametrize("controllers", [False, True])
def test_what_was_not_flushed_does_not_count(controllers: bool) -> None:
    for seed in SEEDS:
        older_records_come_back(seed, controllers=controllers)


def test_a_bug_in_that_is_found() -> None:
    with planted("what_was_committed_counts_beyond_what_was_flushed"), pytest.raises(Violation) as found:
        for seed in SEEDS:
            older_records_come_back(seed, controllers=False)
    assert found.value.invariant == "ConsistentCommittedData"
