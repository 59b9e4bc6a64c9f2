"""Several cores: elections, failover and hand-over."""

from __future__ import annotations

import pytest

from kraft_wire.raft import effects as raft_effects
from kraft_wire.raft.errors import NotLeader
from kraft_wire.raft.roles import Role
from tests.raft.core_quorum import CoreQuorum, QuorumNode, values
from tests.raft.lone_node import LISTENER

FETCH_TIMEOUT_MS = 2000
SEEDS = range(25)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_quorum_that_starts_elects_one_leader_at_once(seed: int) -> None:
    quorum = CoreQuorum(3, seed=seed).start()
    took_ms = quorum.run_until(lambda: bool(quorum.leaders))
    assert took_ms < 200, "no node waited for an election timeout"
    quorum.run_for(10_000)
    assert len(quorum.leaders) == 1
    assert quorum.agree()


def test_a_leader_that_nobody_can_hear_is_not_elected() -> None:
    quorum = CoreQuorum(3)
    quorum.isolate(1)
    quorum.nodes[1].start()
    quorum.run_for(60_000)
    assert quorum.nodes[1].running.epoch == 0, "a pre-vote raises no epoch"
    assert not quorum.leaders


def test_two_of_three_are_enough_and_one_is_not() -> None:
    quorum = CoreQuorum(3)
    quorum.nodes[1].start()
    quorum.run_for(5_000)
    assert not quorum.leaders
    quorum.nodes[2].start()
    quorum.elect().propose(b"a")
    quorum.run_until(quorum.agree)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crashed_leader_is_replaced_without_waiting_for_a_timeout(seed: int) -> None:
    quorum = CoreQuorum(3, seed=seed).start()
    quorum.elect().propose(b"a")
    quorum.run_until(quorum.agree)
    crashed = quorum.leader
    crashed.crash()
    assert quorum.run_until(lambda: bool(quorum.leaders)) < 300
    quorum.elect().propose(b"b")
    crashed.start()
    quorum.run_until(quorum.agree)
    assert values(crashed) == [b"a", b"b"]


def test_a_paused_leader_is_replaced_after_the_fetch_timeout(quorum: CoreQuorum) -> None:
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    quorum.isolate(leader.id)
    quorum.run_for(FETCH_TIMEOUT_MS // 2)
    assert quorum.leaders == [leader]
    quorum.run_until(lambda: bool(quorum.others_than(leader)))


@pytest.mark.parametrize("seed", SEEDS)
def test_followers_that_time_out_one_after_another_still_elect_a_leader(seed: int) -> None:
    """Three of four are needed; a node whose election failed must not refuse its vote to the next."""
    quorum = CoreQuorum(4, seed=seed).start()
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    late = quorum.followers()[0]
    quorum.cut((leader.id, late.id), (late.id, leader.id))
    quorum.run_for(seed * 60)
    quorum.isolate(leader.id)
    assert quorum.run_until(lambda: bool(quorum.others_than(leader))) < 8_000


@pytest.mark.parametrize("seed", SEEDS)
def test_two_candidates_do_not_wait_for_a_leader_that_is_silent(seed: int) -> None:
    """Each has its own vote, and the third vote that both need never comes."""
    quorum = CoreQuorum(3, seed=seed, failover_spread_ms=1).start()
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    quorum.break_connections(leader.id)
    quorum.isolate(leader.id)
    took_ms = quorum.run_until(lambda: bool(quorum.others_than(leader)))
    assert took_ms < quorum.nodes[1].config.election_timeout_ms


def test_a_leader_without_a_majority_resigns(quorum: CoreQuorum) -> None:
    """KAFKA-15489."""
    leader = quorum.elect()
    quorum.isolate(leader.id)
    quorum.run_for(FETCH_TIMEOUT_MS * 3 // 2 + 500)
    assert not leader.running.is_leader
    with pytest.raises(NotLeader):
        leader.propose()


def test_a_node_that_was_away_does_not_depose_the_leader(quorum: CoreQuorum) -> None:
    leader = quorum.elect()
    away = quorum.followers()[0]
    quorum.isolate(away.id)
    quorum.run_for(60_000)
    epoch = leader.running.epoch
    quorum.heal()
    quorum.run_for(10_000)
    assert quorum.leaders == [leader]
    assert leader.running.epoch == epoch
    assert quorum.agree()


def test_a_follower_that_loses_its_connection_to_a_live_leader_comes_back(quorum: CoreQuorum) -> None:
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    epoch = leader.running.epoch
    unlucky = quorum.followers()[0]
    for _ in range(20):
        quorum.break_connections(leader.id, of=unlucky.id)
        quorum.run_for(37)
    leader.propose(b"a")
    quorum.run_until(quorum.agree)
    assert (quorum.leaders, leader.running.epoch) == ([leader], epoch)


def _named_leaders(node: QuorumNode, from_effect: int) -> list[tuple[Role, int | None]]:
    changes = (effect for effect in node.effects[from_effect:])
    return [(each.role, each.leader_id) for each in changes if isinstance(each, raft_effects.RoleChanged)]


def test_the_last_voter_follows_a_leader_that_is_gone_and_names_none(quorum: CoreQuorum) -> None:
    """Between two pre-votes that nobody answers."""
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    other, last = quorum.followers()
    seen = len(last.effects)
    other.crash()
    leader.crash()
    quorum.run_for(20_000)
    named = _named_leaders(last, seen)
    assert {role for role, _ in named} == {Role.PROSPECTIVE, Role.FOLLOWER}
    assert {leader_id for _, leader_id in named} == {None}
    assert (last.running.leader_id, last.running.live_leader_id) == (leader.id, None)


def test_a_follower_names_its_leader_again_when_it_answers(quorum: CoreQuorum) -> None:
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    unlucky = quorum.followers()[0]
    seen = len(unlucky.effects)
    quorum.break_connections(leader.id, of=unlucky.id)
    quorum.run_for(FETCH_TIMEOUT_MS)
    assert _named_leaders(unlucky, seen)[0][1] is None
    assert _named_leaders(unlucky, seen)[-1] == (Role.FOLLOWER, leader.id)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leader_that_stops_hands_over_at_once(seed: int) -> None:
    quorum = CoreQuorum(3, seed=seed).start()
    leader = quorum.elect()
    leader.propose(b"a")
    stopped_ms = quorum.now.monotonic_ms
    quorum.shut_down(leader)
    quorum.run_until(lambda: bool(quorum.leaders))
    assert quorum.now.monotonic_ms - stopped_ms < 100
    quorum.elect()
    quorum.run_until(quorum.agree)
    assert values(quorum.leader) == [b"a"], "what was appended before is committed"


def test_the_last_of_two_hands_over_with_its_vote() -> None:
    quorum = CoreQuorum(2).start()
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    quorum.shut_down(leader)
    assert len(quorum.leaders) == 1, "the one that stopped has voted for it"


def test_a_leader_that_stops_alone_does_not_wait_for_ever() -> None:
    quorum = CoreQuorum(3).start()
    leader = quorum.elect()
    for follower in quorum.followers():
        follower.crash()
    started_ms = quorum.now.monotonic_ms
    quorum.shut_down(leader)
    assert quorum.now.monotonic_ms - started_ms <= 2_000


def test_an_observer_finds_the_leader_and_starts_no_election() -> None:
    quorum = CoreQuorum(3, observers=1).start()
    observer = quorum.nodes[4]
    quorum.elect().propose(b"a")
    quorum.run_until(quorum.agree)
    quorum.leader.crash()
    quorum.elect().propose(b"b")
    quorum.run_until(quorum.agree)
    assert values(observer) == [b"a", b"b"]
    roles = {effect.role for effect in observer.effects if isinstance(effect, raft_effects.RoleChanged)}
    assert roles <= {Role.UNATTACHED, Role.FOLLOWER}


def test_a_voter_without_pre_votes_is_asked_for_a_vote(quorum: CoreQuorum) -> None:
    quorum.elect()
    quorum.run_until(quorum.agree)
    quorum.refuse_pre_votes = True
    quorum.leader.crash()
    quorum.elect()


def without_pre_votes(form: str) -> CoreQuorum:
    """Return a quorum with a leader that has led for a while. Its voters know no pre-votes."""
    listeners = (LISTENER,) if form == "drafted" else ()
    quorum = CoreQuorum(3, drafted_listeners=listeners).start()
    quorum.refuse_pre_votes = form == "before KIP-996"
    quorum.elect()
    quorum.run_until(quorum.agree)
    quorum.run_for(12_000)
    return quorum


FORMS = ["drafted", "before KIP-996"]


@pytest.mark.parametrize("form", FORMS)
def test_without_pre_votes_a_voter_that_restarts_does_not_depose_the_leader(form: str) -> None:
    quorum = without_pre_votes(form)
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    follower = quorum.followers()[0]
    follower.crash()
    quorum.run_for(50)
    follower.start()
    quorum.run_for(5_000)
    assert (quorum.leader, quorum.leader.running.epoch) == (leader, epoch)
    assert follower.running.leader_id == leader.id


@pytest.mark.parametrize("form", FORMS)
def test_without_pre_votes_a_broken_connection_does_not_depose_the_leader(form: str) -> None:
    quorum = without_pre_votes(form)
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    quorum.break_connections(leader.id, of=quorum.followers()[0].id)
    quorum.run_for(5_000)
    assert (quorum.leader, quorum.leader.running.epoch) == (leader, epoch)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", ["crashes", "falls silent"])
def test_without_pre_votes_a_lost_leader_is_replaced_after_the_fetch_timeout(form: str, end: str) -> None:
    quorum = without_pre_votes(form)
    leader, followers = quorum.leader, quorum.followers()
    before = [len(node.effects) for node in followers]
    if end == "crashes":
        leader.crash()
    else:
        quorum.isolate(leader.id)
    took_ms = quorum.run_until(lambda: bool(quorum.others_than(leader)))
    assert took_ms < leader.config.fetch_timeout_ms + leader.config.election_timeout_ms
    for node, seen in zip(followers, before, strict=True):
        sent = [each for each in node.effects[seen:] if isinstance(each, raft_effects.SendRequest)]
        assert len(sent) < 50, "it asks with pauses"


@pytest.mark.parametrize("form", FORMS)
def test_without_pre_votes_a_leader_that_stops_hands_over_at_once(form: str) -> None:
    quorum = without_pre_votes(form)
    leader = quorum.leader
    quorum.shut_down(leader)
    took_ms = quorum.run_until(lambda: bool(quorum.leaders))
    assert took_ms < quorum.nodes[1].config.election_timeout_ms
