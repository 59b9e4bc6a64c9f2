"""Strangers at the door of a quorum: requests of anybody who can connect, under any name."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from kraft_wire.log.files import ElectionState
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.door.epoch_limits import MAX_EPOCHS_PER_REQUEST
from kraft_wire.raft.effects import HigherEpochRefused, SendRequest
from kraft_wire.raft.election.doubts import RAISE_DOUBT_MS
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.leader.leadership import MOST_OBSERVERS, OBSERVER_REPLACED_MS
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.roles import Role
from tests.raft.core_quorum import ONE_WAY_MS, CoreQuorum, QuorumNode
from tests.raft.election.claimed_leaders import announcement
from tests.raft.election.vote_requests import vote
from tests.raft.lone_node import LISTENER, OTHER_DIRECTORY, fetch
from tests.raft.membership.reconfiguration import Asked, add_request

A_WHILE_MS = 10_000
FAR_AHEAD = (2**31 - 1, 2**62)


def settled(**settings: int) -> CoreQuorum:
    """Return a quorum whose leader has led for a while."""
    quorum = CoreQuorum(3, **settings).led()
    quorum.run_for(A_WHILE_MS)
    return quorum


def vote_of(candidate: ReplicaKey, epoch: int, *, pre_vote: bool = False) -> VoteRequest:
    """Return a Vote for any voter, of a candidate with a very long log."""
    return vote(
        epoch,
        candidate=candidate.id,
        directory=candidate.directory_id,
        last=(epoch - 1, 2**62),
        voter=-1,
        pre_vote=pre_vote,
    )


def ask_vote(node: QuorumNode, candidate: ReplicaKey, epoch: int, *, pre_vote: bool = False) -> ErrorCode:
    asked = Asked(node, vote_of(candidate, epoch, pre_vote=pre_vote))
    node.quorum.run_until(lambda: asked.is_answered)
    (answer,) = asked.answers
    assert isinstance(answer, VoteResponse)
    partition = answer.topics[0].partitions[0]
    assert not partition.vote_granted
    return ErrorCode.of(partition.error_code)


STRANGER = ReplicaKey(77, OTHER_DIRECTORY)
IMPOSTOR = ReplicaKey(2, OTHER_DIRECTORY)
"""A voter's id with another directory id."""


@pytest.mark.parametrize("pre_vote", [False, True])
@pytest.mark.parametrize("caller", [STRANGER, IMPOSTOR], ids=["stranger", "impostor"])
def test_votes_of_strangers_change_nothing_under_a_leader(caller: ReplicaKey, *, pre_vote: bool) -> None:
    quorum = settled()
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    for node in quorum.nodes.values():
        assert ask_vote(node, caller, epoch + 1, pre_vote=pre_vote) is ErrorCode.UNKNOWN_LEADER_EPOCH
    quorum.run_for(10_000)
    assert quorum.leader is leader
    assert {node.running.epoch for node in quorum.nodes.values()} == {epoch}


def test_a_refused_epoch_is_reported_at_most_once_a_second() -> None:
    quorum = settled()
    leader = quorum.leader
    for _ in range(100):
        Asked(leader, vote_of(STRANGER, leader.running.epoch + 1))
    reported = [effect for effect in leader.effects if isinstance(effect, HigherEpochRefused)]
    assert reported == [HigherEpochRefused(STRANGER, leader.running.epoch + 1, leader.running.epoch)]


def test_a_vote_in_the_nodes_own_name_is_refused_and_reported() -> None:
    quorum = settled()
    for node in quorum.nodes.values():
        epoch, own = node.running.epoch, node.config.replica_key
        assert ask_vote(node, own, epoch + 1) is ErrorCode.UNKNOWN_LEADER_EPOCH
        reported = [effect for effect in node.effects if isinstance(effect, HigherEpochRefused)]
        assert reported == [HigherEpochRefused(own, epoch + 1, epoch)]


def test_a_vote_in_a_voters_name_ends_no_leader() -> None:
    """Whoever uses a voter's ids doesn't answer at its address."""
    quorum = settled()
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    for number in range(100):
        for voter in quorum.followers():
            caller = voter.config.replica_key
            assert ask_vote(leader, caller, epoch + 1 + number) is ErrorCode.UNKNOWN_LEADER_EPOCH
        quorum.run_for(100)
    assert quorum.leader is leader
    assert {node.running.epoch for node in quorum.nodes.values()} == {epoch}


@pytest.mark.parametrize("pre_vote", [False, True])
def test_a_voter_that_is_ahead_is_asked_at_once_and_ends_the_leader(*, pre_vote: bool) -> None:
    quorum = settled()
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    ahead = quorum.followers()[0]
    ahead.crash()
    ahead.election = ElectionState(leader_id=-1, leader_epoch=epoch + 9)
    ahead.start()
    Asked(leader, vote_of(ahead.config.replica_key, epoch + 9, pre_vote=pre_vote))
    assert quorum.run_until(lambda: not leader.running.is_leader) <= 2 * ONE_WAY_MS
    assert leader.running.epoch == epoch + 9
    quorum.run_until(quorum.agree)


def test_a_pre_vote_of_a_known_voter_ends_no_leader() -> None:
    quorum = settled()
    leader, other = quorum.leader, quorum.followers()[0].config.replica_key
    assert ask_vote(leader, other, leader.running.epoch + 1, pre_vote=True) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert quorum.leader is leader


def test_followers_keep_to_their_leader_whoever_asks() -> None:
    quorum = settled()
    leader, (one, other) = quorum.leader, quorum.followers()
    for _ in range(20):
        assert ask_vote(one, other.config.replica_key, one.running.epoch + 1) is (
            ErrorCode.UNKNOWN_LEADER_EPOCH
        )
    assert quorum.leader is leader


def test_somebody_with_voters_ids_changes_no_leader() -> None:
    quorum = settled()
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    chance = random.Random(1)
    known = [node.config.replica_key for node in quorum.nodes.values()]
    for _ in range(1000):
        node = chance.choice(list(quorum.nodes.values()))
        claimed = node.running.epoch + chance.randint(1, 3)
        Asked(node, vote_of(chance.choice(known), claimed, pre_vote=chance.random() < 0.3))
        quorum.run_for(9)
    assert quorum.leader is leader
    assert {node.running.epoch for node in quorum.nodes.values()} == {epoch}


@pytest.mark.parametrize("kraft_version", [0, 1])
@pytest.mark.parametrize("voters", [2, 3, 5])
@pytest.mark.parametrize("pre_vote", [False, True])
@pytest.mark.parametrize("every_ms", [1, 3])
def test_a_follower_that_restarts_believes_nobody_until_it_hears_the_leader(
    every_ms: int, voters: int, kraft_version: int, *, pre_vote: bool
) -> None:
    quorum = CoreQuorum(voters, kraft_version=kraft_version).led()
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    caller = leader.config.replica_key
    for follower in quorum.followers():
        follower.crash()
        follower.start()
        for _ in range(60):
            Asked(follower, vote_of(caller, epoch + 1, pre_vote=pre_vote))
            quorum.run_for(every_ms)
    quorum.run_for(A_WHILE_MS)
    assert quorum.leader is leader
    assert {node.running.epoch for node in quorum.nodes.values()} == {epoch}


@pytest.mark.parametrize("kraft_version", [0, 1])
@pytest.mark.parametrize("voters", [3, 5])
def test_a_follower_that_restarts_waits_for_the_leader_though_others_are_dead(
    voters: int, kraft_version: int
) -> None:
    """That nobody listens at their addresses is known earlier than the leader's answer."""
    quorum = CoreQuorum(voters, kraft_version=kraft_version).led()
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    follower, *others = quorum.followers()
    for other in others[: (voters - 1) // 2]:
        other.crash()
    follower.crash()
    follower.start()
    for _ in range(60):
        for other in others:
            Asked(follower, vote_of(other.config.replica_key, epoch + 1))
        quorum.run_for(1)
    quorum.run_for(A_WHILE_MS)
    assert quorum.leader is leader
    assert leader.running.epoch == epoch


@pytest.mark.parametrize("is_ahead", [False, True])
def test_a_voter_that_starts_asks_the_candidate_for_its_epoch(*, is_ahead: bool) -> None:
    quorum = CoreQuorum(3).led()
    for node in quorum.nodes.values():
        node.crash()
    voter, candidate = quorum.nodes[1], quorum.nodes[2]
    assert candidate.election is not None
    epoch = candidate.election.leader_epoch + 5
    if is_ahead:
        candidate.election = ElectionState(leader_id=-1, leader_epoch=epoch)
        candidate.start()
        quorum.refuse_pre_votes = True
    voter.start()
    asked = Asked(voter, vote_of(candidate.config.replica_key, epoch))
    quorum.run_for(6 * ONE_WAY_MS if is_ahead else RAISE_DOUBT_MS)
    (answer,) = asked.answers
    assert isinstance(answer, VoteResponse)
    assert answer.topics[0].partitions[0].vote_granted is is_ahead


def test_a_voter_that_follows_a_silent_leader_after_its_start_helps_to_elect_the_next_at_once() -> None:
    quorum = CoreQuorum(3).led()
    leader, (voter, candidate) = quorum.leader, quorum.followers()
    quorum.isolate(leader.id)
    quorum.run_for(candidate.config.fetch_timeout_ms - 200)
    voter.crash()
    voter.start()
    took_ms = quorum.run_until(lambda: candidate.running.is_leader or voter.running.is_leader)
    assert took_ms < 200 + 200


@pytest.mark.parametrize("voters", [3, 5])
def test_strangers_that_announce_leaders_dont_keep_a_voter_that_starts_from_asking_the_candidate(
    voters: int,
) -> None:
    quorum = CoreQuorum(voters).led()
    leader, *followers = quorum.leader, *quorum.followers()
    restarted, others = followers[: voters // 2], followers[voters // 2 :]
    quorum.isolate(leader.id)
    quorum.run_for(others[0].config.fetch_timeout_ms - 200)
    for node in restarted:
        node.crash()
        node.start()
        for id in range(900, 904):
            Asked(node, announcement(id, node.running.epoch + 1000, host=f"node-{leader.id}"))
    assert quorum.run_until(lambda: any(node.running.is_leader for node in others)) < 200 + 200


def test_a_voter_that_starts_and_cannot_reach_the_candidate_votes_after_an_election_timeout() -> None:
    quorum = CoreQuorum(3).led()
    leader, (voter, candidate) = quorum.leader, quorum.followers()
    quorum.isolate(leader.id)
    quorum.run_for(candidate.config.fetch_timeout_ms - 200)
    voter.crash()
    quorum.unroutable.add((voter.id, candidate.id))
    voter.start()
    quorum.run_until(lambda: candidate.running.is_leader)


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_a_voter_that_comes_back_with_a_higher_epoch_gets_in(kraft_version: int) -> None:
    quorum = CoreQuorum(3, kraft_version=kraft_version).led()
    away = quorum.followers()[0]
    away.crash()
    assert away.election is not None
    away.election = type(away.election)(leader_id=-1, leader_epoch=away.election.leader_epoch + 9)
    away.start()
    quorum.run_until(quorum.agree)
    assert quorum.leader.running.epoch > 9


def test_a_fake_leader_is_not_asked_while_a_leader_is_there() -> None:
    quorum = settled()
    for node in quorum.nodes.values():
        begun = len(node.effects)
        request = announcement(77, node.running.epoch + 1, host="evil")
        node.step(RpcRequest("begin", request, 1, LISTENER))
        sent = [effect for effect in node.effects[begun:] if isinstance(effect, SendRequest)]
        assert all(request.peer.host != "evil" for request in sent)


def test_a_known_voter_is_asked_at_its_known_address_only() -> None:
    quorum = settled()
    one, other = quorum.followers()
    begun = len(one.effects)
    one.step(RpcRequest("begin", announcement(other.id, one.running.epoch + 1, host="evil"), 1, LISTENER))
    asked = [effect.peer.host for effect in one.effects[begun:] if isinstance(effect, SendRequest)]
    assert asked == [f"node-{other.id}"]
    quorum.run_for(5000)
    assert quorum.leader.running.epoch == one.running.epoch


def test_the_leader_goes_on_fetching_while_hints_are_followed_up() -> None:
    """A node that is asked because of a hint may not answer for long: that must not hold up the log."""
    quorum = settled()
    leader, (one, other) = quorum.leader, quorum.followers()
    quorum.cut((one.id, other.id), (other.id, one.id))
    for number in range(50):
        one.step(RpcRequest(("begin", number), announcement(other.id, one.running.epoch + 1), 1, LISTENER))
        leader.propose()
        end = leader.end_offset
        quorum.run_until(lambda end=end: one.end_offset == end, within_ms=20)  # type: ignore[misc]


def test_a_lone_controller_leads_on_whatever_is_asked() -> None:
    quorum = CoreQuorum(1).start()
    leader = quorum.elect()
    quorum.run_for(A_WHILE_MS)
    for number in range(3000):
        key = ReplicaKey(number % 5, OTHER_DIRECTORY)
        ask_vote(leader, key, leader.running.epoch + MAX_EPOCHS_PER_REQUEST)
    assert (leader.running.is_leader, leader.running.epoch) == (True, 1)


@pytest.mark.parametrize(
    "forge",
    [
        lambda node, number: vote_of(STRANGER, node.running.epoch + 1 + number),
        lambda node, number: vote_of(IMPOSTOR, node.running.epoch + 1, pre_vote=True),
        lambda node, number: announcement(number % 4, node.running.epoch + number % 7),
    ],
    ids=["votes", "pre-votes", "announcements"],
)
def test_a_failover_works_while_strangers_ask(forge: Callable[[QuorumNode, int], Message]) -> None:
    quorum = settled()
    quorum.leader.crash()
    epoch = max(node.running.epoch for node in quorum.nodes.values() if node.is_up)
    for number in range(200):
        for node in quorum.nodes.values():
            if node.is_up:
                Asked(node, forge(node, number))
        quorum.run_for(1)
        if quorum.leaders:
            break
    assert quorum.leaders, "not within 200 ms"
    assert quorum.leader.running.epoch <= epoch + 3


def test_few_observers_are_remembered() -> None:
    quorum = CoreQuorum(1).start()
    leader = quorum.elect()
    for number in range(MOST_OBSERVERS + 500):
        request = fetch(2, 1, epoch=1, replica=10_000 + number, directory=Uuid(number.to_bytes(16, "big")))
        leader.step(RpcRequest(("fetch", number), request, 18, LISTENER))
    leadership = leader.running._quorum.leadership
    assert leadership is not None
    assert len(leadership.observers) == MOST_OBSERVERS


# While no leader is there.


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_a_stranger_gets_no_vote_from_a_node_that_has_just_started(kraft_version: int) -> None:
    """At its own epoch, too: no epoch has to be raised for it."""
    quorum = settled(kraft_version=kraft_version)
    node = quorum.followers()[0]
    epoch = node.running.epoch + 1
    for each in quorum.nodes.values():
        each.crash()
    node.election = ElectionState(-1, epoch)
    node.start()
    assert ask_vote(node, STRANGER, epoch) is ErrorCode.NONE
    assert node.running.voted is None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kraft_version", [0, 1])
def test_votes_of_strangers_do_not_delay_the_election_for_ever(seed: int, kraft_version: int) -> None:
    """One of three is left, and asked all the while. When the next one is back, they elect."""
    quorum = settled(seed=seed, kraft_version=kraft_version)
    left, back = quorum.followers()
    quorum.leader.crash()
    back.crash()

    def pester(ms: int, until: Callable[[], bool] = lambda: False) -> bool:
        for _ in range(ms // 500):
            for node in (left, back):
                if node.is_up:
                    Asked(node, vote_of(STRANGER, node.running.epoch + 1))
            quorum.run_for(500)
            if until():
                return True
        return False

    pester(7_000)
    back.start()
    assert pester(10_000, lambda: any(node.running.role is Role.LEADER for node in (left, back)))


@pytest.mark.parametrize("ahead", [1, MAX_EPOCHS_PER_REQUEST, MAX_EPOCHS_PER_REQUEST + 1, 10**9])
def test_a_vote_is_refused_after_a_while_however_high_its_epoch(ahead: int) -> None:
    """Java repeats it at once."""
    quorum = settled()
    started_ms, voter = quorum.now.monotonic_ms, quorum.followers()[0]
    ask_vote(quorum.leader, voter.config.replica_key, quorum.leader.running.epoch + ahead, pre_vote=True)
    assert quorum.now.monotonic_ms - started_ms >= RAISE_DOUBT_MS


def test_strangers_that_fetched_are_forgotten_for_a_newcomer() -> None:
    quorum = CoreQuorum(3, 1)
    for id in (1, 2, 3):
        quorum.nodes[id].start()
    leader = quorum.elect()
    quorum.run_for(A_WHILE_MS)
    for number in range(MOST_OBSERVERS):
        request = fetch(0, 0, epoch=leader.running.epoch, replica=50_000 + number, max_wait_ms=0)
        leader.step(RpcRequest(f"stranger {number}", request, 18, LISTENER))
    quorum.run_for(OBSERVER_REPLACED_MS)
    newcomer = quorum.nodes[4]
    newcomer.start()
    quorum.run_for(A_WHILE_MS)
    asked = Asked(leader, add_request(newcomer))
    quorum.run_until(lambda: asked.is_answered)
    assert asked.error is ErrorCode.NONE, asked.text
