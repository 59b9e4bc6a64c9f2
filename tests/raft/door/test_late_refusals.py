"""Votes of a higher epoch whose candidate isn't believed are refused late: Java repeats them at once."""

from __future__ import annotations

import pytest

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.vote_response import PartitionData, VoteResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.election.doubts import MOST_WAITING, RAISE_DOUBT_MS
from kraft_wire.raft.events import RequestAbandoned
from kraft_wire.raft.membership.voters import ReplicaKey
from tests.raft.core_quorum import ONE_WAY_MS, CoreQuorum, QuorumNode
from tests.raft.election.vote_requests import vote
from tests.raft.lone_node import OTHER_DIRECTORY
from tests.raft.membership.reconfiguration import Asked

GONE, OTHER = ReplicaKey(77, OTHER_DIRECTORY), ReplicaKey(78, OTHER_DIRECTORY)


@pytest.fixture(params=[0, 1])
def leader(request: pytest.FixtureRequest) -> QuorumNode:
    quorum = CoreQuorum(3, kraft_version=request.param).start()
    found = quorum.elect()
    quorum.run_until(quorum.agree)
    quorum.run_for(1000)
    return found


def asked(
    node: QuorumNode,
    caller: ReplicaKey,
    *,
    epochs_ahead: int = 1,
    pre_vote: bool = False,
    is_short: bool = False,
) -> Asked:
    """Send a Vote, from a candidate with a very long log or with an empty one."""
    epoch = node.running.epoch + epochs_ahead
    request = vote(
        epoch,
        candidate=caller.id,
        directory=caller.directory_id,
        last=(0, 0) if is_short else (epoch - 1, 2**62),
        voter=-1,
        pre_vote=pre_vote,
    )
    return Asked(node, request)


def answer(asked: Asked) -> PartitionData:
    (response,) = asked.answers
    assert isinstance(response, VoteResponse)
    return response.topics[0].partitions[0]


@pytest.mark.parametrize("pre_vote", [False, True])
@pytest.mark.parametrize("is_leader", [False, True])
def test_a_vote_of_a_higher_epoch_is_refused_late(
    leader: QuorumNode, *, is_leader: bool, pre_vote: bool
) -> None:
    node = leader if is_leader else leader.quorum.followers()[0]
    waiting = asked(node, GONE, pre_vote=pre_vote)
    leader.quorum.run_for(RAISE_DOUBT_MS - 1)
    assert not waiting.is_answered
    leader.quorum.run_for(1)
    assert answer(waiting).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_candidate_that_repeats_its_vote_at_once_is_answered_ten_times_a_second(leader: QuorumNode) -> None:
    repeated = [asked(leader, GONE)]
    for _ in range(1000):
        leader.quorum.run_for(1)
        if repeated[-1].is_answered:
            repeated.append(asked(leader, GONE))
    assert len(repeated) == 1 + 1000 // RAISE_DOUBT_MS


def test_votes_that_the_candidate_learns_from_are_answered_at_once() -> None:
    quorum = CoreQuorum(3).start()
    leader = quorum.elect()
    leader.crash()
    leader.start()
    quorum.elect()
    quorum.run_until(quorum.agree)
    leader = quorum.leader
    fenced, rejected = (asked(leader, GONE, epochs_ahead=ahead, is_short=True) for ahead in (-1, 0))
    assert answer(fenced).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (answer(rejected).error_code, answer(rejected).leader_id) == (ErrorCode.NONE, leader.id)


def test_further_votes_of_a_candidate_are_answered_at_once(leader: QuorumNode) -> None:
    waiting = asked(leader, GONE)
    assert asked(leader, GONE).is_answered
    assert not waiting.is_answered


def test_votes_beyond_the_limit_are_answered_at_once(leader: QuorumNode) -> None:
    votes = [asked(leader, ReplicaKey(100 + number)) for number in range(MOST_WAITING + 1)]
    assert [vote.is_answered for vote in votes] == [False] * MOST_WAITING + [True]


@pytest.mark.parametrize("pre_vote", [False, True])
def test_a_known_voter_gets_the_vote_as_soon_as_the_leader_is_gone(
    leader: QuorumNode, *, pre_vote: bool
) -> None:
    voter, candidate = leader.quorum.followers()
    leader.quorum.isolate(candidate.id)
    waiting = asked(voter, candidate.config.replica_key, pre_vote=pre_vote)
    leader.quorum.run_for(RAISE_DOUBT_MS // 2)
    assert not waiting.is_answered
    leader.crash()
    assert leader.quorum.run_until(lambda: waiting.is_answered) == ONE_WAY_MS
    assert (answer(waiting).error_code, answer(waiting).vote_granted) == (ErrorCode.NONE, True)


def test_a_static_voter_without_a_directory_id_gets_the_vote_as_soon_as_the_leader_is_gone() -> None:
    quorum = CoreQuorum(3, kraft_version=0).start()
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    voter, candidate = quorum.followers()
    quorum.isolate(candidate.id)
    waiting = asked(voter, ReplicaKey(candidate.id, Uuid.ZERO))
    leader.crash()
    assert quorum.run_until(lambda: waiting.is_answered) == ONE_WAY_MS
    assert answer(waiting).vote_granted


def test_a_voter_that_is_ahead_gets_the_leaders_vote_as_soon_as_it_has_told_its_epoch(
    leader: QuorumNode,
) -> None:
    quorum, ahead = leader.quorum, leader.quorum.followers()[0]
    ahead.crash()
    assert ahead.election is not None
    ahead.election = type(ahead.election)(leader_id=-1, leader_epoch=leader.running.epoch + 1)
    ahead.start()
    waiting = asked(leader, ahead.config.replica_key)
    assert quorum.run_until(lambda: waiting.is_answered) <= 2 * ONE_WAY_MS
    assert answer(waiting).vote_granted


@pytest.mark.parametrize("pre_vote", [False, True])
def test_a_vote_of_an_epoch_that_is_reached_is_answered_at_once(
    leader: QuorumNode, *, pre_vote: bool
) -> None:
    """The answer may name the leader of that epoch."""
    quorum, voter = leader.quorum, leader.quorum.followers()[0]
    waiting = asked(voter, GONE, pre_vote=pre_vote)
    epoch = voter.running.epoch + 1
    leader.crash()
    quorum.run_until(lambda: voter.running.epoch == epoch, within_ms=RAISE_DOUBT_MS // 2)
    assert answer(waiting).error_code == ErrorCode.NONE
    assert answer(waiting).leader_epoch == epoch


def test_an_answer_whose_connection_is_gone_is_dropped(leader: QuorumNode) -> None:
    waiting = asked(leader, GONE)
    leader.step(RequestAbandoned(waiting.token))
    leader.quorum.run_for(10 * RAISE_DOUBT_MS)
    assert waiting.answers == []


def test_a_raise_too_many_is_refused_late(leader: QuorumNode) -> None:
    """A stranger can use up the raises that are allowed without a leader."""
    quorum = leader.quorum
    node, other = quorum.followers()
    quorum.isolate(node.id)
    leader.crash()
    quorum.run_for(2 * ONE_WAY_MS)
    raises = node.running._quorum.raises
    while raises.take(quorum.now.monotonic_ms):
        pass
    request = asked(node, other.config.replica_key, epochs_ahead=5)
    quorum.run_for(RAISE_DOUBT_MS - 5)
    assert not request.answers
    quorum.run_for(10)
    assert answer(request).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
