"""Three of our controllers on hosts and disks of their own lose nothing that was acknowledged, whatever
happens to them, and keep no half of what wasn't. Needs root.

The tests share a cluster, in this order; each leaves everything healed and checked (``Arena.workload``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.conftest import make_workspace
from compat.harness.arena import Arena, scratch_in_memory
from compat.harness.controllers import Controller, connect
from compat.harness.faults import FAULTS, bridged, without_power
from compat.harness.tool_server import ToolServer
from compat.harness.waiting import wait_until
from compat.harness.wire import describe_quorum

FETCH_TIMEOUT_MS = 2000
PROGRESS = 10
"""So many changes are to be acknowledged while something is wrong, and after it."""


@pytest.fixture(scope="module")
def arena(tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    folder = tmp_path_factory.mktemp("chaos")
    with tempfile.TemporaryDirectory(dir=scratch_in_memory(folder)) as scratch:
        for workspace in make_workspace(folder):
            with Arena(workspace, tool_server, Path(scratch)) as arena:
                yield arena


def _wait_for_another_leader(arena: Arena, former: Controller) -> None:
    others = [controller for controller in arena.quorum.running if controller is not former]
    wait_until(lambda: arena.quorum.leader_among(others), "another leader")


@pytest.mark.parametrize("fault", FAULTS)
def test_the_leader_is(arena: Arena, fault: str) -> None:
    with arena.workload():
        leader = arena.quorum.leader()
        with FAULTS[fault](arena, leader):
            _wait_for_another_leader(arena, leader)
            arena.ledger.wait_for_acknowledged(PROGRESS)


def test_a_follower_that_the_leader_does_not_reach_deposes_nobody(arena: Arena) -> None:
    with arena.workload():
        leader = arena.quorum.leader()
        follower, _ = arena.quorum.followers()
        with bridged(arena, leader, follower):
            wait_until(
                lambda: _silence_ms(leader, follower) > 2 * FETCH_TIMEOUT_MS, "the follower to stand in vain"
            )
            arena.ledger.wait_for_acknowledged(PROGRESS)
        arena.ledger.wait_for_acknowledged(PROGRESS)
        assert arena.quorum.leader() is leader


def _silence_ms(leader: Controller, follower: Controller) -> int:
    """For how long the leader hasn't heard of the follower."""
    with connect(leader) as client:
        voters = describe_quorum(client).topics[0].partitions[0].current_voters
    heard_ms = {voter.replica_id: voter.last_fetch_timestamp for voter in voters}
    return heard_ms[leader.node_id] - heard_ms[follower.node_id]


def test_all_lose_their_power_at_once(arena: Arena) -> None:
    with arena.workload(), without_power(arena, *arena.quorum.controllers.values()):
        pass
