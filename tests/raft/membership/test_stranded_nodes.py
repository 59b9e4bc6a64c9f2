"""Nodes whose voter set is out of date find the quorum, and help it to a leader."""

from __future__ import annotations

from functools import partial

import msgspec

from kraft_wire.protocol.messages.vote_response import VoteResponse
from tests.raft.core_quorum import CoreQuorum, QuorumNode
from tests.raft.election.vote_requests import vote
from tests.raft.membership.reconfiguration import Asked, add, remove, voters_of, with_observers


def _leads_another(quorum: CoreQuorum, voter: int) -> bool:
    return bool(quorum.leaders) and quorum.leader.id != voter


def _replace_all_voters(quorum: CoreQuorum) -> None:
    """Replace the voters 1 to 3 by 4 and 5."""
    for newcomer in (4, 5):
        add(quorum, newcomer)
    for voter in (1, 2, 3):
        is_leader = quorum.leader.id == voter
        remove(quorum, voter)
        if is_leader:
            quorum.run_until(partial(_leads_another, quorum, voter))
            quorum.elect()


def test_a_voter_that_knows_only_replaced_voters_finds_the_leader_at_a_bootstrap_server() -> None:
    quorum = with_observers(3, 2)
    away = next(node for node in quorum.nodes.values() if node.id <= 3 and node is not quorum.leader)
    away.crash()
    _replace_all_voters(quorum)
    for voter in (1, 2, 3):
        if voter != away.id:
            quorum.isolate(voter)
    away.config = msgspec.structs.replace(away.config, bootstrap_servers=(("node-4", 9093), ("node-5", 9093)))
    away.start()
    quorum.run_until(lambda: away.end_offset == quorum.leader.end_offset, within_ms=100)
    assert voters_of(away) == (4, 5)


def test_a_node_that_does_not_know_that_it_is_a_voter_grants_its_vote() -> None:
    quorum = with_observers(1, 1)
    leader, newcomer = quorum.leader, quorum.nodes[2]
    newcomer.disk_is_stuck = True
    add(quorum, 2, ack_when_committed=False)
    quorum.run_until(lambda: voters_of(leader) == (1, 2) and leader.flushed_offset == leader.end_offset)
    newcomer.crash()
    leader.crash()
    newcomer.disk_is_stuck = False
    newcomer.start()
    leader.start()
    assert voters_of(newcomer) == (1,)
    quorum.run_until(lambda: leader.running.is_leader and quorum.agree())


def test_a_follower_that_can_not_stand_grants_pre_votes_when_its_leader_is_silent() -> None:
    quorum = with_observers(1, 1)
    observer = quorum.nodes[2]
    quorum.isolate(observer.id)
    quorum.run_for(observer.config.fetch_timeout_ms // 2)
    assert not _grants_pre_vote(quorum, observer)
    quorum.run_for(observer.config.fetch_timeout_ms)
    assert _grants_pre_vote(quorum, observer)


def _grants_pre_vote(quorum: CoreQuorum, node: QuorumNode) -> bool:
    core = node.running
    asked = Asked(
        node,
        vote(core.epoch, candidate=3, last=(core.epoch, core.log_end_offset), voter=-1, pre_vote=True),
    )
    quorum.run_until(lambda: asked.is_answered)
    (answer,) = asked.answers
    assert isinstance(answer, VoteResponse)
    return answer.topics[0].partitions[0].vote_granted
