"""Vote, BeginQuorumEpoch, EndQuorumEpoch: how a lone leader answers strangers, and leads again."""

from __future__ import annotations

from typing import Any

import pytest
from lone_node import (
    DIRECTORY,
    LISTENER,
    OTHER_DIRECTORY,
    LoneNode,
    config,
    election,
    fetch,
    of_type,
    only,
)

from kraft_wire.log.files import ElectionState, parse_quorum_state, quorum_state_text
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import (
    begin_quorum_epoch_request,
    end_quorum_epoch_request,
    vote_request,
    vote_response,
)
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest, ReplicaInfo
from kraft_wire.protocol.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.config import DurableState
from kraft_wire.raft.effects import (
    AppendBatch,
    BecameLeader,
    HighWatermarkAdvanced,
    LostLeadership,
    PersistElectionState,
    Reply,
    RoleChanged,
)
from kraft_wire.raft.errors import NotLeader
from kraft_wire.raft.roles import Role
from kraft_wire.raft.voters import ReplicaKey, static_voters
from kraft_wire.raft.votes import successor_wait_ms

ELECTION_TIMEOUT_MS = 1000
FETCH_TIMEOUT_MS = 2000


@pytest.fixture
def node() -> LoneNode:
    """A leader of epoch 1 with offsets 0 and 1 committed."""
    node = LoneNode()
    node.propose()
    node.flush()
    return node


def vote(
    epoch: int,
    *,
    last: tuple[int, int] = (1, 2),
    candidate: int = 2,
    directory: Uuid = OTHER_DIRECTORY,
    pre_vote: bool = False,
    voter: int = 1,
    voter_directory: Uuid = DIRECTORY,
    cluster_id: str | None = None,
) -> VoteRequest:
    """A vote request of a candidate whose log ends with ``last``: epoch and end offset."""
    return VoteRequest(
        cluster_id=cluster_id,
        voter_id=voter,
        topics=[
            vote_request.TopicData(
                topic_name="__cluster_metadata",
                partitions=[
                    vote_request.PartitionData(
                        replica_epoch=epoch,
                        replica_id=candidate,
                        replica_directory_id=directory,
                        voter_directory_id=voter_directory,
                        last_offset_epoch=last[0],
                        last_offset=last[1],
                        pre_vote=pre_vote,
                    )
                ],
            )
        ],
    )


def answer(node: LoneNode, request: Message, version: int = 2) -> vote_response.PartitionData:
    response = node.answer_to(request, version)
    assert isinstance(response, VoteResponse)
    assert VoteResponse.decode(response.encode(version), version) == response
    (topic,) = response.topics
    (partition,) = topic.partitions
    return partition


# Vote: what is refused.


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
def test_senseless_requests_raise_no_epoch(node: LoneNode, request_: VoteRequest) -> None:
    partition = answer(node, request_)
    assert (partition.error_code, partition.vote_granted) == (ErrorCode.INVALID_REQUEST, False)
    assert node.core.epoch == 1


def test_a_lower_epoch_is_told_of_the_leader() -> None:
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


def test_a_higher_epoch_ends_the_leadership_and_the_vote_is_remembered_before_it_is_given(
    node: LoneNode,
) -> None:
    effects = node.ask(vote(5), 2)
    persisted = of_type(effects, PersistElectionState)
    voted = ElectionState(-1, 5, voted_id=2, voted_directory_id=OTHER_DIRECTORY)
    assert persisted[-1].state == node.election == voted
    assert of_type(effects, LostLeadership) == [LostLeadership(1, -1)]
    assert effects.index(persisted[-1]) < effects.index(of_type(effects, Reply)[0])
    partition = node.answers["token"].response.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (partition.error_code, partition.vote_granted) == (0, True)
    assert (partition.leader_id, partition.leader_epoch) == (-1, 5)
    assert node.core.role is Role.UNATTACHED


def test_after_a_vote_the_candidate_has_one_election_timeout(node: LoneNode) -> None:
    node.ask(vote(5), 2)
    assert node.core.next_deadline_ms() == node.now.monotonic_ms + ELECTION_TIMEOUT_MS
    with pytest.raises(NotLeader):
        node.propose()
    assert node.pass_ms(ELECTION_TIMEOUT_MS - 1) == []
    effects = node.pass_ms(1)
    assert effects[:2] == [
        PersistElectionState(election(1, 6), 0, (1,)),
        BecameLeader(6, epoch_start_offset=2),
    ]
    assert len(of_type(effects, AppendBatch)) == 1
    assert node.flush() == [HighWatermarkAdvanced(3)]


def test_one_vote_an_epoch(node: LoneNode) -> None:
    assert answer(node, vote(5)).vote_granted
    assert not answer(node, vote(5, candidate=3)).vote_granted
    assert not answer(node, vote(5, directory=DIRECTORY)).vote_granted
    assert answer(node, vote(5)).vote_granted
    assert node.election == ElectionState(-1, 5, voted_id=2, voted_directory_id=OTHER_DIRECTORY)


def test_the_vote_outlives_a_restart(node: LoneNode) -> None:
    """A restarted sole voter doesn't vote again: it stands itself, in a higher epoch."""
    node.ask(vote(5), 2)
    node.restart()
    assert node.core.epoch == 6
    assert not answer(node, vote(5, candidate=3)).vote_granted


def test_a_vote_whose_directory_is_forgotten_goes_to_no_other() -> None:
    """KAFKA-16526: version 0 of quorum-state has no room for the directory that was voted for. The same id
    may be another replica by now, on a disk that knows nothing of this epoch."""
    before = ElectionState(-1, 5, voted_id=2, voted_directory_id=OTHER_DIRECTORY)
    kept = parse_quorum_state(quorum_state_text(before, version=0))
    three = static_voters(LISTENER, {id: (f"controller-{id}.example", 9093) for id in (1, 2, 3)})
    node = LoneNode(config(static=three), DurableState(election=kept))
    assert node.core.epoch == 5
    assert not answer(node, vote(5, last=(0, 0), directory=DIRECTORY)).vote_granted
    assert answer(node, vote(6, last=(0, 0), directory=DIRECTORY)).vote_granted


def test_candidates_one_after_another_cannot_keep_a_sole_voter_waiting(node: LoneNode) -> None:
    node.ask(vote(5), 2, token=5)
    for epoch in range(6, 10):
        node.pass_ms(ELECTION_TIMEOUT_MS // 5)
        assert answer(node, vote(epoch)).vote_granted
    node.pass_ms(ELECTION_TIMEOUT_MS // 5)
    assert (node.core.role, node.core.epoch) == (Role.LEADER, 10)


@pytest.mark.parametrize(
    ("last", "granted"),
    [((1, 2), True), ((1, 3), True), ((2, 1), True), ((1, 1), False), ((0, 99), False)],
)
def test_the_candidate_needs_at_least_our_log(node: LoneNode, last: tuple[int, int], granted: bool) -> None:
    assert answer(node, vote(5, last=last)).vote_granted is granted


def test_without_a_vote_the_sole_voter_leads_again_at_once(node: LoneNode) -> None:
    effects = node.ask(vote(5, last=(0, 0)), 2)
    kinds = [type(effect) for effect in effects]
    assert kinds == [
        PersistElectionState,
        LostLeadership,
        Reply,
        PersistElectionState,
        BecameLeader,
        AppendBatch,
        RoleChanged,
    ]
    first, second = of_type(effects, PersistElectionState)
    assert (first.state, second.state) == (election(-1, 5), election(1, 6))
    assert node.core.is_leader


def test_a_pre_vote_with_a_higher_epoch_counts_as_one(node: LoneNode) -> None:
    assert answer(node, vote(5, pre_vote=True)).vote_granted
    assert (node.core.role, node.core.epoch) == (Role.LEADER, 6)


def test_a_pre_vote_is_not_remembered(node: LoneNode) -> None:
    node.ask(vote(5), 2)
    assert answer(node, vote(5, candidate=3, pre_vote=True)).vote_granted
    assert not answer(node, vote(5, candidate=3, pre_vote=True, last=(0, 0))).vote_granted
    assert node.election is not None
    assert node.election.voted_id == 2


def test_a_request_for_another_voter_raises_the_epoch_all_the_same(node: LoneNode) -> None:
    for addressee in ({"voter": 9}, {"voter_directory": OTHER_DIRECTORY}):
        partition = answer(node, vote(node.core.epoch + 1, **addressee))
        assert (partition.error_code, partition.vote_granted) == (ErrorCode.INVALID_VOTER_KEY, False)
    assert node.core.epoch == 5


@pytest.mark.parametrize(
    "addressee", [{"voter": -1, "voter_directory": OTHER_DIRECTORY}, {"voter_directory": Uuid.ZERO}]
)
def test_a_request_without_a_voter_key_is_for_us(node: LoneNode, addressee: dict[str, Any]) -> None:
    assert answer(node, vote(5, **addressee)).vote_granted


@pytest.mark.parametrize("pre_vote", [False, True])
def test_a_candidate_with_our_own_id_gets_no_vote(node: LoneNode, pre_vote: bool) -> None:
    """Java's process ends here."""
    partition = answer(node, vote(5, candidate=1, pre_vote=pre_vote))
    assert (partition.error_code, partition.vote_granted) == (0, False)
    assert (node.core.role, node.core.epoch) == (Role.LEADER, 6)


def test_unflushed_records_count_for_the_comparison_and_survive(node: LoneNode) -> None:
    node.propose(b"not flushed")
    assert not answer(node, vote(5, last=(1, 2))).vote_granted
    assert node.core.epoch_start_offset == 3
    node.flush()
    assert node.high_watermarks == [2, 4]


def test_waiting_fetches_hear_of_the_new_epoch(node: LoneNode) -> None:
    node.ask(fetch(2, 1, epoch=1), 18, token="waiting")
    node.ask(vote(5, last=(0, 0)), 2)
    response = node.answers["waiting"].response
    assert only(response).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (only(response).current_leader.leader_id, only(response).current_leader.leader_epoch) == (1, 6)
    assert isinstance(response, FetchResponse)
    assert len(response.node_endpoints) == 1


def test_while_nobody_leads_fetches_are_sent_away(node: LoneNode) -> None:
    node.ask(vote(5), 2)
    partition = only(node.answer_to(fetch(2, 1, epoch=5), 18))
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (-1, 5)
    assert node.core.high_watermark == 2


def test_the_high_watermark_never_goes_back_over_elections(node: LoneNode) -> None:
    for epoch in (5, 10, 20):
        node.propose()
        node.flush()
        node.ask(vote(epoch, last=(0, 0)), 2, token=epoch)
        node.flush()
    assert node.high_watermarks == sorted(set(node.high_watermarks))
    assert node.core.high_watermark == node.core.log_end_offset


# BeginQuorumEpoch.


def begin(
    epoch: int,
    *,
    leader: int = 2,
    listeners: tuple[str, ...] = (LISTENER,),
    voter: int = 1,
    voter_directory: Uuid = DIRECTORY,
    cluster_id: str | None = None,
) -> BeginQuorumEpochRequest:
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter,
        topics=[
            begin_quorum_epoch_request.TopicData(
                topic_name="__cluster_metadata",
                partitions=[
                    begin_quorum_epoch_request.PartitionData(
                        voter_directory_id=voter_directory, leader_id=leader, leader_epoch=epoch
                    )
                ],
            )
        ],
        leader_endpoints=[
            begin_quorum_epoch_request.LeaderEndpoint(name=name, host="other.example", port=9093)
            for name in listeners
        ],
    )


def begun(node: LoneNode, request: Message, version: int = 1) -> tuple[int, int, int]:
    """Error, leader and epoch of the answer."""
    response = node.answer_to(request, version)
    assert isinstance(response, BeginQuorumEpochResponse)
    assert response.error_code == 0
    assert BeginQuorumEpochResponse.decode(response.encode(version), version) == response
    partition = response.topics[0].partitions[0]
    return partition.error_code, partition.leader_id, partition.leader_epoch


def test_begin_of_another_cluster_or_partition(node: LoneNode) -> None:
    response = node.answer_to(begin(5, cluster_id="elsewhere"), 1)
    assert response == BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    response = node.answer_to(BeginQuorumEpochRequest(), 1)
    assert response == BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    assert node.core.is_leader


def test_a_leader_of_a_higher_epoch_is_followed(node: LoneNode) -> None:
    assert begun(node, begin(5)) == (0, 2, 5)
    assert (node.core.role, node.core.leader_id) == (Role.FOLLOWER, 2)
    assert node.election == election(2, 5)


def test_the_answer_tells_where_the_new_leader_is(node: LoneNode) -> None:
    response = node.answer_to(begin(5), 1)
    assert isinstance(response, BeginQuorumEpochResponse)
    assert [(end.node_id, end.host) for end in response.node_endpoints] == [(2, "other.example")]


def test_leadership_is_lost_to_it(node: LoneNode) -> None:
    assert of_type(node.ask(begin(5), 1), LostLeadership) == [LostLeadership(1, 2)]


def test_a_sole_voter_follows_for_a_fetch_timeout(node: LoneNode) -> None:
    node.ask(begin(5), 1)
    assert node.pass_ms(FETCH_TIMEOUT_MS - 1) == []
    node.pass_ms(1)
    assert (node.core.role, node.core.epoch) == (Role.LEADER, 6)


def test_a_leader_that_cannot_be_reached_is_only_known(node: LoneNode) -> None:
    """Version 0 has no endpoints. A sole voter has nothing to wait for and leads again."""
    effects = node.ask(begin(5, listeners=()), 0)
    assert of_type(effects, PersistElectionState)[0].state == election(2, 5)
    assert (node.core.role, node.core.epoch) == (Role.LEADER, 6)


def test_a_second_leader_for_our_epoch_is_refused(node: LoneNode) -> None:
    """Java's process ends here."""
    assert begun(node, begin(1)) == (ErrorCode.INVALID_REQUEST, 1, 1)
    assert node.core.is_leader


def test_a_second_leader_for_the_epoch_that_we_follow_is_refused(node: LoneNode) -> None:
    node.ask(begin(5), 1)
    assert begun(node, begin(5, leader=3)) == (ErrorCode.INVALID_REQUEST, 2, 5)
    assert node.core.leader_id == 2


def test_whoever_claims_that_we_lead_is_right_or_refused(node: LoneNode) -> None:
    assert begun(node, begin(1, leader=1)) == (0, 1, 1)
    assert begun(node, begin(5, leader=1)) == (ErrorCode.INVALID_REQUEST, 1, 1)
    assert node.core.is_leader


def test_begin_of_a_lower_epoch_or_of_nobody(node: LoneNode) -> None:
    assert begun(node, begin(0)) == (ErrorCode.FENCED_LEADER_EPOCH, 1, 1)
    assert begun(node, begin(5, leader=-1)) == (ErrorCode.INVALID_REQUEST, 1, 1)


def test_begin_for_another_voter_is_followed_and_refused(node: LoneNode) -> None:
    assert begun(node, begin(5, voter=9)) == (ErrorCode.INVALID_VOTER_KEY, 2, 5)
    assert begun(node, begin(6, voter_directory=OTHER_DIRECTORY)) == (ErrorCode.INVALID_VOTER_KEY, 2, 6)


def test_more_endpoints_of_the_same_leader_are_taken(node: LoneNode) -> None:
    node.ask(begin(5), 1, token=1)
    node.ask(begin(5, listeners=(LISTENER, "EXTERNAL")), 1, token=2)
    response = node.answer_to(fetch(2, 1, epoch=5), 18, listener="EXTERNAL")
    assert isinstance(response, FetchResponse)
    assert only(response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [(end.node_id, end.host) for end in response.node_endpoints] == [(2, "other.example")]
    node.ask(begin(5, listeners=(LISTENER,)), 1, token=3)
    response = node.answer_to(fetch(2, 1, epoch=5), 18, listener="EXTERNAL")
    assert isinstance(response, FetchResponse)
    assert len(response.node_endpoints) == 1


def test_a_vote_is_kept_when_its_candidate_wins(node: LoneNode) -> None:
    node.ask(vote(5), 2, token=1)
    node.ask(begin(5), 1, token=2)
    assert node.core.role is Role.FOLLOWER
    assert node.election == ElectionState(2, 5, voted_id=2, voted_directory_id=OTHER_DIRECTORY)


def test_a_follower_gives_pre_votes_only(node: LoneNode) -> None:
    node.ask(begin(5), 1)
    assert not answer(node, vote(5)).vote_granted
    assert answer(node, vote(5, pre_vote=True)).vote_granted
    assert node.core.role is Role.FOLLOWER


# EndQuorumEpoch.


def end(
    epoch: int,
    *,
    leader: int = 2,
    candidates: tuple[tuple[int, Uuid], ...] = (),
    successors: tuple[int, ...] = (),
    cluster_id: str | None = None,
) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[
            end_quorum_epoch_request.TopicData(
                topic_name="__cluster_metadata",
                partitions=[
                    end_quorum_epoch_request.PartitionData(
                        leader_id=leader,
                        leader_epoch=epoch,
                        preferred_successors=successors,
                        preferred_candidates=[
                            ReplicaInfo(candidate_id=node_id, candidate_directory_id=directory)
                            for node_id, directory in candidates
                        ],
                    )
                ],
            )
        ],
    )


def ended(node: LoneNode, request: Message, version: int = 1) -> tuple[int, int, int]:
    response = node.answer_to(request, version)
    assert isinstance(response, EndQuorumEpochResponse)
    assert response.error_code == 0
    assert EndQuorumEpochResponse.decode(response.encode(version), version) == response
    partition = response.topics[0].partitions[0]
    return partition.error_code, partition.leader_id, partition.leader_epoch


def test_end_of_another_cluster_or_partition(node: LoneNode) -> None:
    response = node.answer_to(end(5, cluster_id="elsewhere"), 1)
    assert response == EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    response = node.answer_to(EndQuorumEpochRequest(), 1)
    assert response == EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)


def test_end_of_our_own_epoch_by_somebody_else_is_refused(node: LoneNode) -> None:
    assert ended(node, end(1)) == (ErrorCode.INVALID_REQUEST, 1, 1)
    assert ended(node, end(0)) == (ErrorCode.FENCED_LEADER_EPOCH, 1, 1)
    assert node.core.is_leader


@pytest.mark.parametrize(
    ("request_", "wait_ms"),
    [
        (end(5, candidates=((1, DIRECTORY), (3, Uuid.ZERO))), 0),
        (end(5, candidates=((3, Uuid.ZERO), (1, DIRECTORY))), 500),
        (end(5, candidates=((1, OTHER_DIRECTORY), (3, Uuid.ZERO))), 1000),
        (end(5, successors=(1, 3)), 0),
        (end(5), 1000),
    ],
    ids=["first", "second", "another directory", "by id", "not named"],
)
def test_a_follower_stands_in_its_turn(node: LoneNode, request_: EndQuorumEpochRequest, wait_ms: int) -> None:
    node.ask(begin(5), 1)
    assert ended(node, request_)[0] == 0
    if wait_ms:
        assert node.core.role is Role.FOLLOWER
        node.pass_ms(wait_ms - 1)
        assert node.core.leader_id == 2
        node.pass_ms(1)
    assert (node.core.leader_id, node.core.epoch) == (1, 6)


def test_the_waits_of_successors_double() -> None:
    keys = [ReplicaKey(node_id) for node_id in range(1, 6)]
    assert [successor_wait_ms(key, keys, 1000) for key in keys] == [0, 62, 124, 248, 496]
    assert successor_wait_ms(ReplicaKey(9), keys, 1000) == 1000
