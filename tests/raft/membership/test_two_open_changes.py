"""Two changes of the voters that only some nodes have."""

from __future__ import annotations

from tests.raft.core_quorum import CoreQuorum, QuorumNode
from tests.raft.membership.reconfiguration import Asked, advertise_more, remove_request, voters_of


def _cut_off(quorum: CoreQuorum, leader: QuorumNode, *others: QuorumNode) -> None:
    quorum.cut(*[pair for each in others for pair in ((leader.id, each.id), (each.id, leader.id))])


def test_a_removed_voter_stands_though_another_change_follows_its_removal() -> None:
    """Only it has both, so nobody else can be elected. The second is the entry of the leader itself, which
    began again with another listener."""
    quorum = CoreQuorum(4).led()
    quorum.run_for(3_000)
    leader = quorum.leader
    first, second, removed = quorum.followers()
    _cut_off(quorum, leader, first, second)
    quorum.run_for(10)
    Asked(leader, remove_request(removed))
    quorum.run_for(60)
    assert voters_of(leader) == voters_of(removed) != voters_of(first)
    leader.crash()
    advertise_more(leader)
    quorum.heal()
    leader.start()
    quorum.cut(
        (first.id, second.id), (second.id, first.id), (removed.id, first.id), (removed.id, second.id)
    )  # so that the same node leads again
    quorum.run_until(lambda: leader.running.is_leader)
    quorum.heal()
    _cut_off(quorum, leader, first, second)
    quorum.run_until(lambda: removed.end_offset == leader.end_offset == removed.flushed_offset)
    leader.crash()
    quorum.heal()
    quorum.run_until(lambda: bool(quorum.leaders))
