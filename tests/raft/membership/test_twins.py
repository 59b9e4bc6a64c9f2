"""Two controllers with one node.id, which both join by themselves."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.config import DurableState
from kraft_wire.raft.membership.voters import endpoints_of
from tests.raft.core_quorum import PORT, CoreQuorum, QuorumNode
from tests.raft.follower.test_install_snapshot import trim
from tests.raft.lone_node import LISTENER
from tests.raft.membership.reconfiguration import with_new_disk

TWIN = 13
"""Where the twin is in the network; its node.id is that of the other one."""


class Twin(QuorumNode):
    @property
    def id(self) -> int:
        return TWIN


def with_twin(quorum: CoreQuorum, of: QuorumNode) -> QuorumNode:
    """Start a controller with another directory and the same node.id."""
    config = msgspec.structs.replace(
        of.config,
        directory_id=Uuid(bytes([77] * 16)),
        endpoints=endpoints_of([(LISTENER, f"node-{TWIN}", PORT)]),
    )
    twin = Twin(quorum, config, DurableState())
    quorum.nodes[TWIN] = twin
    twin.start()
    return twin


def votes(quorum: CoreQuorum, node: QuorumNode) -> bool:
    return quorum.leader.running.voters.is_voter(node.config.replica_key)


def test_a_voter_that_loads_a_snapshot_is_at_work() -> None:
    """It doesn't fetch meanwhile, but it asks for pieces."""
    quorum = CoreQuorum(3, auto_join=True)
    quorum.start()
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    first = quorum.followers()[0]
    twin = with_twin(quorum, first)
    quorum.run_for(20_000)
    assert (votes(quorum, first), votes(quorum, twin)) == (True, False)
    first.crash()
    trim(quorum, leader)
    first.verify_ms = 8_000
    first.start()
    quorum.run_for(7_000)
    assert (votes(quorum, first), votes(quorum, twin)) == (True, False)


@pytest.mark.parametrize("shift_ms", [-3_600_000, -30_000, 5_000])
def test_a_clock_that_is_set_gives_nobody_the_place_of_a_voter_at_work(shift_ms: int) -> None:
    for seed in range(1, 11):
        quorum = CoreQuorum(3, auto_join=True, seed=seed).led()
        quorum.run_for(3_000)
        first = quorum.followers()[0]
        twin = with_twin(quorum, first)
        quorum.run_for(9_000 + seed * 97)
        quorum.set_clocks(shift_ms)
        quorum.run_for(20_000)
        assert (votes(quorum, first), votes(quorum, twin)) == (True, False), seed


@pytest.mark.parametrize("shift_ms", [0, -3_600_000])
def test_a_new_disk_gets_its_place_whatever_the_clock_says(shift_ms: int) -> None:
    quorum = CoreQuorum(3, auto_join=True).led()
    quorum.run_for(10_000)
    voter = quorum.followers()[0]
    quorum.set_clocks(shift_ms)
    fresh = with_new_disk(quorum, voter)
    quorum.run_until(lambda: bool(quorum.leaders) and votes(quorum, fresh))
