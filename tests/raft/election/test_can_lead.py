"""A node whose state machine can't apply the log: it votes and replicates, and doesn't lead."""

from __future__ import annotations

import pytest

from kraft_wire.raft.events import CanLead, Start
from kraft_wire.raft.roles import Role
from tests.raft.core_quorum import CoreQuorum, QuorumNode
from tests.raft.election.vote_requests import vote
from tests.raft.lone_node import OTHER_DIRECTORY, LoneNode
from tests.raft.membership.reconfiguration import Asked

A_WHILE_MS = 30_000


def led(voters: int = 3) -> CoreQuorum:
    return CoreQuorum(voters).led()


def test_a_leader_that_is_unable_resigns_and_another_voter_leads() -> None:
    quorum = led()
    unable = quorum.leader
    unable.step(CanLead(False))
    assert not unable.running.is_leader
    quorum.run_until(lambda: bool(quorum.leaders) and quorum.agree())
    assert quorum.leader is not unable
    quorum.run_for(A_WHILE_MS)
    assert unable.running.role is Role.FOLLOWER


def test_a_node_that_is_unable_passes_on_the_records_that_only_it_has() -> None:
    """An able voter with a shorter log can't be elected without them."""
    quorum = led()
    leader, (unable, able) = quorum.leader, quorum.followers()
    quorum.isolate(able.id)
    leader.propose(b"only two have it")
    end_offset = leader.running.log_end_offset
    quorum.run_until(lambda: (leader.running.high_watermark or 0) >= end_offset)
    quorum.run_until(lambda: unable.end_offset >= end_offset)
    unable.step(CanLead(False))
    leader.crash()
    quorum.heal()
    quorum.run_until(lambda: able.running.is_leader)
    assert able.end_offset > end_offset
    quorum.run_for(A_WHILE_MS)
    assert quorum.leader is able


@pytest.mark.parametrize("is_first", [False, True])
def test_a_node_that_is_unable_does_not_lead_because_another_voter_was_away_once(*, is_first: bool) -> None:
    """A voter that starts with a short log asks for a pre-vote, and catches up."""
    quorum = led()
    leader = quorum.leader
    unable, able = quorum.followers()[:: 1 if is_first else -1]
    unable.step(CanLead(False))
    able.crash()
    leader.propose(b"while it is away")
    quorum.run_for(1000)
    able.start()
    quorum.run_for(A_WHILE_MS)
    assert able.end_offset == unable.end_offset
    _assert_only_the_able_one_leads(quorum, able)


@pytest.mark.parametrize("is_first", [False, True])
def test_a_node_that_is_unable_does_not_lead_because_a_stranger_asked(*, is_first: bool) -> None:
    quorum = led()
    unable, able = quorum.followers()[:: 1 if is_first else -1]
    unable.step(CanLead(False))
    request = vote(
        unable.running.epoch,
        candidate=able.id,
        directory=OTHER_DIRECTORY,
        last=(0, 0),
        voter=-1,
        pre_vote=True,
    )
    Asked(unable, request)
    quorum.run_for(A_WHILE_MS)
    _assert_only_the_able_one_leads(quorum, able)


def _assert_only_the_able_one_leads(quorum: CoreQuorum, able: QuorumNode) -> None:
    epoch = quorum.leader.running.epoch
    quorum.leader.crash()
    quorum.run_until(lambda: able.running.is_leader)
    assert able.running.epoch == epoch + 1, "another node led first"


def test_a_node_that_is_unable_votes_and_acknowledges() -> None:
    quorum = led()
    leader, (unable, other) = quorum.leader, quorum.followers()
    unable.step(CanLead(False))
    leader.crash()
    quorum.run_until(lambda: other.running.is_leader)
    other.propose(b"after")
    end_offset = other.running.log_end_offset
    quorum.run_until(lambda: (other.running.high_watermark or 0) >= end_offset)


def test_nobody_leads_while_all_are_unable_and_one_does_that_is_able_again() -> None:
    quorum = led()
    epoch = quorum.leader.running.epoch
    for node in quorum.nodes.values():
        node.step(CanLead(False))
    quorum.run_for(A_WHILE_MS)
    assert [node.running.is_leader for node in quorum.nodes.values()] == [False] * 3
    assert {node.running.epoch for node in quorum.nodes.values()} == {epoch}, "nobody stood"
    able = quorum.nodes[2]
    able.step(CanLead(True))
    quorum.run_until(lambda: able.running.is_leader)


@pytest.mark.parametrize("can_lead", [False, True])
def test_a_lone_voter_that_is_unable_at_its_start_writes_nothing(*, can_lead: bool) -> None:
    node = LoneNode(start=False)
    node.step(Start(can_lead))
    node.pass_ms(A_WHILE_MS)
    assert node.core.is_leader is can_lead
    assert bool(node.batches) is can_lead


def test_a_candidate_that_is_unable_resigns_once_its_log_is_no_longer_than_the_others() -> None:
    """The two that are left need each other's votes."""
    quorum = led()
    old, (candidate, other) = quorum.leader, quorum.followers()
    old.crash()
    quorum.run_until(lambda: candidate.running.role is Role.CANDIDATE or other.running.role is Role.CANDIDATE)
    stands = candidate if candidate.running.role is Role.CANDIDATE else other
    able = other if stands is candidate else candidate
    stands.step(CanLead(False))
    quorum.run_until(lambda: able.running.is_leader)
    quorum.run_for(A_WHILE_MS)
    assert quorum.leader is able
