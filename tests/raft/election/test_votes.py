"""Vote: what makes it valid, and who gets it."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.log.files import ElectionState, parse_quorum_state, quorum_state_text
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.config import DurableState
from kraft_wire.raft.effects import (
    PersistElectionState,
    Reply,
)
from kraft_wire.raft.election.doubts import RAISE_DOUBT_MS
from kraft_wire.raft.errors import NotLeader
from kraft_wire.raft.membership.voters import static_voters
from kraft_wire.raft.roles import Role
from tests.raft.election.vote_requests import answer, vote
from tests.raft.lone_node import (
    DIRECTORY,
    LISTENER,
    OTHER_DIRECTORY,
    LoneNode,
    config,
    fetch,
    of_type,
    only,
)

ELECTION_TIMEOUT_MS = 1000


def role_of(node: LoneNode) -> Role:
    return node.core.role


# Vote: refusals.


def test_another_cluster(node: LoneNode) -> None:
    response = node.answer_to(vote(2, cluster_id="elsewhere"), 2)
    assert response == VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    assert node.core.epoch == 1


def test_another_partition(node: LoneNode) -> None:
    other_topic, other_partition = vote(2), vote(2)
    other_topic.topics[0].topic_name = "other"
    other_partition.topics[0].partitions[0].partition_index = 1
    for request in (other_topic, other_partition, VoteRequest()):
        assert node.answer_to(request, 2) == VoteResponse(error_code=ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize(
    "request_",
    [
        vote(5, last=(5, 2)),
        vote(5, last=(6, 2), pre_vote=True),
        vote(5, last=(-1, 2)),
        vote(5, last=(1, -1)),
        vote(5, candidate=-1),
    ],
    ids=["log of the epoch", "log of a later epoch", "no epoch", "no offset", "no candidate"],
)
def test_invalid_requests_raise_no_epoch(node: LoneNode, request_: VoteRequest) -> None:
    partition = answer(node, request_)
    assert (partition.error_code, partition.vote_granted) == (ErrorCode.INVALID_REQUEST, False)
    assert node.core.epoch == 1


def test_a_request_of_a_lower_epoch_learns_the_leader() -> None:
    node = LoneNode()
    node.flush()
    node.restart()
    response = node.answer_to(vote(1, last=(0, 0)), 2)
    assert isinstance(response, VoteResponse)
    partition = response.topics[0].partitions[0]
    assert partition.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (partition.leader_id, partition.leader_epoch) == (1, 2)
    assert [(end.node_id, end.host, end.port) for end in response.node_endpoints] == [
        (1, "controller.example", 9093)
    ]


def test_version_0_has_no_endpoints(node: LoneNode) -> None:
    response = node.answer_to(vote(1, last=(0, 0)), 0)
    assert isinstance(response, VoteResponse)
    assert response.node_endpoints == []


@pytest.mark.parametrize("pre_vote", [False, True])
def test_a_leader_votes_for_nobody_in_its_epoch(node: LoneNode, pre_vote: bool) -> None:
    partition = answer(node, vote(1, last=(0, 99), pre_vote=pre_vote))
    assert (partition.error_code, partition.vote_granted, partition.leader_id) == (0, False, 1)
    assert node.core.is_leader


# Vote: a higher epoch.


def test_a_vote_is_remembered_before_it_is_given(leaderless: LoneNode) -> None:
    effects = leaderless.ask(vote(5), 2)
    persisted = of_type(effects, PersistElectionState)
    voted = ElectionState(-1, 5, voted_id=2, voted_directory_id=OTHER_DIRECTORY)
    assert persisted[-1].state == leaderless.election == voted
    assert effects.index(persisted[-1]) < effects.index(of_type(effects, Reply)[0])
    partition = leaderless.answers["token"].response.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (partition.error_code, partition.vote_granted) == (0, True)
    assert (partition.leader_id, partition.leader_epoch) == (-1, 5)
    assert leaderless.core.role is Role.UNATTACHED


def test_after_a_vote_the_candidate_has_one_election_timeout(leaderless: LoneNode) -> None:
    leaderless.ask(vote(5), 2)
    with pytest.raises(NotLeader):
        leaderless.propose()
    leaderless.pass_ms(ELECTION_TIMEOUT_MS - 1)
    assert role_of(leaderless) is Role.UNATTACHED
    leaderless.pass_ms(1)
    assert role_of(leaderless) is Role.PROSPECTIVE


def test_one_vote_an_epoch(leaderless: LoneNode) -> None:
    assert answer(leaderless, vote(5)).vote_granted
    assert not answer(leaderless, vote(5, candidate=3)).vote_granted
    assert not answer(leaderless, vote(5, directory=DIRECTORY)).vote_granted
    assert answer(leaderless, vote(5)).vote_granted
    assert leaderless.election == ElectionState(-1, 5, voted_id=2, voted_directory_id=OTHER_DIRECTORY)


def test_the_vote_outlives_a_restart(leaderless: LoneNode) -> None:
    leaderless.ask(vote(5), 2)
    leaderless.restart()
    assert leaderless.core.epoch == 5
    assert not answer(leaderless, vote(5, candidate=3)).vote_granted
    assert answer(leaderless, vote(5)).vote_granted


def test_a_vote_whose_directory_is_forgotten_goes_to_no_other() -> None:
    """KAFKA-16526: version 0 of quorum-state has no field for the directory that got the vote. The same id
    may be another replica by now, on a disk that knows nothing of this epoch."""
    before = ElectionState(-1, 5, voted_id=2, voted_directory_id=OTHER_DIRECTORY)
    kept = parse_quorum_state(quorum_state_text(before, version=0))
    three = static_voters(LISTENER, {id: (f"controller-{id}.example", 9093) for id in (1, 2, 3)})
    node = LoneNode(config(static=three), DurableState(election=kept))
    node.has_lost_leader()
    assert node.core.epoch == 5
    assert not answer(node, vote(5, last=(0, 0), directory=DIRECTORY)).vote_granted
    assert answer(node, vote(6, last=(0, 0), directory=DIRECTORY)).vote_granted


@pytest.mark.parametrize(
    ("last", "granted"),
    [((1, 2), True), ((1, 3), True), ((2, 1), True), ((1, 1), False), ((0, 99), False)],
)
def test_the_candidate_needs_at_least_our_log(
    leaderless: LoneNode, last: tuple[int, int], granted: bool
) -> None:
    assert answer(leaderless, vote(5, last=last)).vote_granted is granted


def test_a_pre_vote_with_a_higher_epoch_counts_as_one(leaderless: LoneNode) -> None:
    assert answer(leaderless, vote(5, pre_vote=True)).vote_granted
    assert leaderless.core.epoch == 5


def test_a_pre_vote_is_not_remembered(leaderless: LoneNode) -> None:
    leaderless.ask(vote(5), 2)
    assert answer(leaderless, vote(5, candidate=3, pre_vote=True)).vote_granted
    assert not answer(leaderless, vote(5, candidate=3, pre_vote=True, last=(0, 0))).vote_granted
    assert leaderless.election is not None
    assert leaderless.election.voted_id == 2


def test_a_request_for_another_voter_changes_nothing(leaderless: LoneNode) -> None:
    for addressee in ({"voter": 9}, {"voter_directory": OTHER_DIRECTORY}):
        partition = answer(leaderless, vote(5, **addressee))
        assert (partition.error_code, partition.vote_granted) == (ErrorCode.INVALID_VOTER_KEY, False)
    assert leaderless.core.epoch == 1


@pytest.mark.parametrize(
    "addressee", [{"voter": -1, "voter_directory": OTHER_DIRECTORY}, {"voter_directory": Uuid.ZERO}]
)
def test_a_request_without_a_voter_key_is_for_us(leaderless: LoneNode, addressee: dict[str, Any]) -> None:
    assert answer(leaderless, vote(5, **addressee)).vote_granted


@pytest.mark.parametrize("pre_vote", [False, True])
def test_a_candidate_with_our_own_id_gets_no_vote(leaderless: LoneNode, pre_vote: bool) -> None:
    """Java's process ends here."""
    leaderless.ask(vote(5, candidate=1, pre_vote=pre_vote), 2)
    leaderless.pass_ms(RAISE_DOUBT_MS)
    response = leaderless.answers["token"].response
    assert isinstance(response, VoteResponse)
    assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert leaderless.core.epoch == 1
    assert not answer(leaderless, vote(1, last=(0, 99), candidate=1, pre_vote=pre_vote)).vote_granted


def test_while_nobody_leads_fetches_are_sent_away(leaderless: LoneNode) -> None:
    leaderless.ask(vote(5), 2)
    partition = only(leaderless.answer_to(fetch(2, 1, epoch=5), 18))
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (-1, 5)
