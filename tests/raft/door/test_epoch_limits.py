"""Epochs are 32 bits wide: no peer may use them up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraft_wire.log.files import ElectionState
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import begin_quorum_epoch_request as begin
from kraft_wire.protocol.messages import end_quorum_epoch_request as end
from kraft_wire.protocol.messages import fetch_response, vote_request
from kraft_wire.raft.config import DurableState
from kraft_wire.raft.door.epoch_limits import (
    FEW_EPOCHS,
    LAST_ANSWERED_EPOCH,
    LAST_EPOCH,
    LAST_REQUESTED_EPOCH,
    MAX_EPOCHS_PER_REQUEST,
    highest_answered,
    is_acceptable_answer,
    is_acceptable_epoch,
)
from kraft_wire.raft.effects import EpochsUsedUp, PersistElectionState
from kraft_wire.raft.election.doubts import RAISE_DOUBT_MS
from kraft_wire.raft.events import ResponseReceived, RpcRequest, Start
from kraft_wire.raft.roles import Role
from tests.raft.core_quorum import CoreQuorum
from tests.raft.lone_node import CLUSTER_ID, LISTENER, LoneNode, election

INT32_MAX = 2**31 - 1
TOPIC = "__cluster_metadata"


def vote(epoch: int, *, pre_vote: bool, last_epoch: int = 0) -> Message:
    """Return a Vote of a node that no voter set names."""
    asked = vote_request.PartitionData(
        replica_epoch=epoch, replica_id=77, last_offset_epoch=last_epoch, last_offset=0, pre_vote=pre_vote
    )
    topic = vote_request.TopicData(topic_name=TOPIC, partitions=[asked])
    return vote_request.VoteRequest(cluster_id=CLUSTER_ID, voter_id=-1, topics=[topic])


def begins(epoch: int) -> Message:
    asked = begin.PartitionData(leader_id=3, leader_epoch=epoch)
    return begin.BeginQuorumEpochRequest(
        cluster_id=CLUSTER_ID,
        voter_id=-1,
        topics=[begin.TopicData(topic_name=TOPIC, partitions=[asked])],
        leader_endpoints=[begin.LeaderEndpoint(name=LISTENER, host="node-3", port=9093)],
    )


def ends(epoch: int) -> Message:
    asked = end.PartitionData(leader_id=3, leader_epoch=epoch)
    return end.EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID, topics=[end.TopicData(topic_name=TOPIC, partitions=[asked])]
    )


def error_of(response: Message) -> int:
    return response.topics[0].partitions[0].error_code  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("epoch", [INT32_MAX, LAST_EPOCH + 1, LAST_EPOCH, MAX_EPOCHS_PER_REQUEST + 2])
@pytest.mark.parametrize(
    ("request_of", "version"),
    [
        (lambda epoch: vote(epoch, pre_vote=True), 2),
        (lambda epoch: vote(epoch, pre_vote=False), 2),
        (begins, 1),
        (ends, 1),
    ],
    ids=["pre-vote", "vote", "begin", "end"],
)
def test_no_request_takes_more_than_a_small_share_of_the_epochs(
    leaderless: LoneNode, request_of: Callable[[int], Message], version: int, epoch: int
) -> None:
    leaderless.pass_ms(1000)
    leaderless.ask(request_of(epoch), version)
    if not leaderless.answers:
        leaderless.pass_ms(RAISE_DOUBT_MS)  # Java would repeat a Vote at once
    assert error_of(leaderless.answers.pop("token").response) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert leaderless.core.epoch == 1
    assert error_of(leaderless.answer_to(request_of(MAX_EPOCHS_PER_REQUEST + 1), version)) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("own", "epoch", "is_requested", "answered"),
    [
        (0, MAX_EPOCHS_PER_REQUEST, True, MAX_EPOCHS_PER_REQUEST),
        (0, MAX_EPOCHS_PER_REQUEST + 1, False, MAX_EPOCHS_PER_REQUEST + 1),
        (5, 4, True, 4),
        (LAST_REQUESTED_EPOCH - 100, LAST_REQUESTED_EPOCH, True, LAST_REQUESTED_EPOCH),
        (LAST_REQUESTED_EPOCH - 100, LAST_REQUESTED_EPOCH + 1, False, LAST_REQUESTED_EPOCH + 1),
        (LAST_REQUESTED_EPOCH, LAST_REQUESTED_EPOCH + FEW_EPOCHS, True, LAST_REQUESTED_EPOCH + FEW_EPOCHS),
        (LAST_REQUESTED_EPOCH, LAST_REQUESTED_EPOCH + 17, False, LAST_REQUESTED_EPOCH + 17),
        (0, LAST_ANSWERED_EPOCH, False, LAST_ANSWERED_EPOCH),
        (0, LAST_ANSWERED_EPOCH + 1, False, LAST_ANSWERED_EPOCH),
        (0, LAST_EPOCH, False, LAST_ANSWERED_EPOCH),
        (0, LAST_EPOCH + 1, False, 0),
        (LAST_ANSWERED_EPOCH, LAST_ANSWERED_EPOCH + 16, True, LAST_ANSWERED_EPOCH + FEW_EPOCHS),
        (LAST_ANSWERED_EPOCH, LAST_ANSWERED_EPOCH + 17, False, LAST_ANSWERED_EPOCH + FEW_EPOCHS),
        (LAST_EPOCH - 1, LAST_EPOCH, True, LAST_EPOCH),
        (LAST_EPOCH - 1, LAST_EPOCH + 1, False, LAST_EPOCH - 1),
        (INT32_MAX, INT32_MAX, True, INT32_MAX),
    ],
)
def test_elections_have_room_above_all_that_can_be_claimed(
    own: int, epoch: int, *, is_requested: bool, answered: int
) -> None:
    assert is_acceptable_epoch(epoch, own) is is_requested
    assert (min(epoch, highest_answered(own)) if is_acceptable_answer(epoch, own) else own) == answered


def test_there_is_room_for_a_billion_elections_above_the_ceilings() -> None:
    assert LAST_EPOCH - LAST_ANSWERED_EPOCH > 500_000_000
    assert LAST_ANSWERED_EPOCH - LAST_REQUESTED_EPOCH > 500_000_000


def test_epochs_near_their_end_are_raised_by_one_only() -> None:
    node = LoneNode(durable=DurableState(election=ElectionState(leader_epoch=LAST_EPOCH - 2)))
    assert node.core.epoch == LAST_EPOCH - 1
    node.ask(vote(LAST_EPOCH + 1, pre_vote=True), 2, token="beyond")
    assert node.core.epoch == LAST_EPOCH - 1
    assert node.core.role is Role.LEADER


def test_a_quorum_survives_a_pre_vote_with_the_last_epoch() -> None:
    quorum = CoreQuorum(3).start()
    leader = quorum.elect()
    for node in quorum.nodes.values():
        node.step(RpcRequest("stranger", vote(INT32_MAX, pre_vote=True), 2, LISTENER))
    quorum.run_for(20_000)
    assert quorum.leader is leader
    leader.propose(b"a")
    quorum.run_until(quorum.agree)


def test_an_answer_with_an_epoch_above_the_last_one_is_ignored() -> None:
    quorum = CoreQuorum(3).led()
    follower, epoch = quorum.followers()[0], quorum.leader.running.epoch
    for request_id in range(1_000):
        answer = fetch_response.PartitionData(
            error_code=ErrorCode.FENCED_LEADER_EPOCH,
            current_leader=fetch_response.LeaderIdAndEpoch(leader_id=-1, leader_epoch=LAST_EPOCH + 1),
        )
        topic = fetch_response.FetchableTopicResponse(topic=TOPIC, partitions=[answer])
        follower.step(ResponseReceived(request_id, fetch_response.FetchResponse(responses=[topic])))
    assert follower.running.epoch == epoch
    quorum.run_for(10_000)
    assert quorum.leader.running.epoch == epoch


@pytest.mark.parametrize("ahead", [(1,), (1, 2)])
def test_nodes_that_missed_many_epochs_learn_of_them_by_asking(ahead: tuple[int, ...]) -> None:
    quorum = CoreQuorum(3)
    for id in ahead:
        quorum.nodes[id].election = election(-1, 5 * MAX_EPOCHS_PER_REQUEST)
    quorum.start()
    quorum.elect()
    quorum.run_until(quorum.agree)
    assert all(node.running.epoch > 5 * MAX_EPOCHS_PER_REQUEST for node in quorum.nodes.values())


def test_a_node_that_missed_elections_above_the_ceiling_of_answers_gets_there_step_by_step() -> None:
    """The others have gone on from an epoch that somebody claimed."""
    quorum, epoch = CoreQuorum(3), LAST_ANSWERED_EPOCH + 20 * FEW_EPOCHS
    for id in (1, 2):
        quorum.nodes[id].election = election(-1, epoch)
    quorum.start()
    quorum.elect()
    quorum.run_until(quorum.agree)
    assert all(epoch < node.running.epoch < epoch + FEW_EPOCHS for node in quorum.nodes.values())


@pytest.mark.parametrize(
    ("voters", "ahead", "down"),
    [
        (3, {1: 1000}, (3,)),
        (3, {1: 100, 2: 400}, ()),
        (5, {1: 300, 2: 300, 3: 600}, ()),
    ],
)
def test_voters_above_the_ceiling_of_answers_that_need_others_elect_a_leader(
    voters: int, ahead: dict[int, int], down: tuple[int, ...]
) -> None:
    """They are in different epochs, or too few, so that no answer names a leader."""
    quorum = CoreQuorum(voters).led()
    quorum.run_for(3_000)
    for node in quorum.nodes.values():
        node.crash()
        node.election = election(-1, LAST_ANSWERED_EPOCH + ahead.get(node.id, -(10**9)))
    for node in quorum.nodes.values():
        if node.id not in down:
            node.start()
    quorum.run_until(lambda: bool(quorum.leaders), within_ms=60_000)


@pytest.mark.parametrize("epoch", [LAST_ANSWERED_EPOCH + 1000, LAST_EPOCH, INT32_MAX])
@pytest.mark.parametrize("voters", [3, 5])
def test_one_voter_above_the_ceiling_of_answers_disturbs_nobody(voters: int, epoch: int) -> None:
    """A stranger can take a Java voter there. Its answers would end each leader, and use up the epochs."""
    quorum = CoreQuorum(voters).led()
    quorum.run_for(3_000)
    leader, ahead = quorum.leader, quorum.followers()[0]
    ahead.crash()
    ahead.election = election(-1, epoch)
    ahead.start()
    quorum.run_for(20_000)
    assert quorum.leader is leader
    leader.crash()
    leader.start()
    quorum.run_until(lambda: bool(quorum.leaders))
    assert quorum.leader.running.epoch < FEW_EPOCHS


@pytest.mark.parametrize("epoch", [LAST_EPOCH, INT32_MAX])
def test_a_lone_voter_without_epochs_left_starts_no_election_and_reports_it(epoch: int) -> None:
    node = LoneNode(durable=DurableState(election=ElectionState(leader_epoch=epoch)), start=False)
    effects = node.step(Start())
    assert EpochsUsedUp(epoch) in effects
    for _ in range(20):
        effects += node.pass_ms(1_000)
    assert effects.count(EpochsUsedUp(epoch)) == 1
    assert node.core.epoch == epoch
    assert not any(isinstance(effect, PersistElectionState) for effect in effects)


def test_a_node_that_may_have_voted_in_the_last_epoch_raises_it_no_further() -> None:
    durable = DurableState(no_vote_up_to_epoch=INT32_MAX + 900)
    node = LoneNode(durable=durable)
    node.pass_ms(10_000)
    assert node.core.epoch == 0
    node.answer_to(vote(1, pre_vote=False), 2)
    assert node.core.epoch <= LAST_EPOCH
