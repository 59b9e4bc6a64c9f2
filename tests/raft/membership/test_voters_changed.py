"""Every node reports the voters that count, and those that count again after a truncation."""

from __future__ import annotations

from kraft_wire.raft.effects import VotersChanged
from tests.raft.core_quorum import QuorumNode
from tests.raft.membership.reconfiguration import Asked, add, add_request, voters_of, with_observers


def _reported(node: QuorumNode) -> list[tuple[int, ...]]:
    return [effect.voters.ids for effect in node.effects if isinstance(effect, VotersChanged)]


def test_a_change_is_reported_once_by_every_node() -> None:
    quorum = with_observers(3, 1)
    for node in quorum.nodes.values():
        node.effects.clear()
    add(quorum, 4)
    quorum.run_until(quorum.agree)
    for node in quorum.nodes.values():
        assert _reported(node) == [(1, 2, 3, 4)]


def test_the_earlier_voters_are_reported_when_a_change_is_truncated() -> None:
    quorum = with_observers(3, 1)
    leader = quorum.leader
    leader.effects.clear()
    quorum.cut(*((leader.id, other) for other in (1, 2, 3) if other != leader.id))
    Asked(leader, add_request(quorum.nodes[4]))
    quorum.run_until(lambda: voters_of(leader) == (1, 2, 3, 4))
    quorum.cut(*((other, leader.id) for other in quorum.nodes if other != leader.id), (leader.id, 4))
    quorum.run_until(lambda: bool(quorum.others_than(leader)))
    quorum.heal()
    quorum.run_until(lambda: leader not in quorum.leaders and voters_of(leader) == (1, 2, 3))
    assert _reported(leader) == [(1, 2, 3, 4), (1, 2, 3)]
