"""BeginQuorumEpoch and EndQuorumEpoch: a lone leader follows unknown leaders."""

from __future__ import annotations

import pytest

from kraft_wire.log.files import ElectionState
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import (
    begin_quorum_epoch_request,
    end_quorum_epoch_request,
)
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest, ReplicaInfo
from kraft_wire.protocol.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.effects import (
    CancelRequest,
    LostLeadership,
    PersistElectionState,
)
from kraft_wire.raft.quorum_state import LEADER_RECORD_WAIT_MS
from kraft_wire.raft.roles import Role
from tests.raft.election.vote_requests import answer, vote
from tests.raft.lone_node import (
    DIRECTORY,
    LISTENER,
    OTHER_DIRECTORY,
    LoneNode,
    election,
    fetch,
    of_type,
    only,
)

FETCH_TIMEOUT_MS = 2000


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
    """Return error, leader and epoch of the answer."""
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


def test_a_claim_that_we_lead_is_right_or_refused(node: LoneNode) -> None:
    assert begun(node, begin(1, leader=1)) == (0, 1, 1)
    assert begun(node, begin(5, leader=1)) == (ErrorCode.INVALID_REQUEST, 1, 1)
    assert node.core.is_leader


def test_begin_of_a_lower_epoch_or_without_a_leader(node: LoneNode) -> None:
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
    assert node.election == ElectionState(-1, 5, voted_id=2, voted_directory_id=OTHER_DIRECTORY)
    node.pass_ms(LEADER_RECORD_WAIT_MS)
    assert node.election == ElectionState(2, 5, voted_id=2, voted_directory_id=OTHER_DIRECTORY)


def test_a_follower_that_votes_writes_quorum_state_once(node: LoneNode) -> None:
    """It gives up its Fetch between learning the epoch and voting, which no peer sees."""
    node.ask(begin(5), 1, token=1)
    effects = node.ask(vote(6), 2, token=2)
    assert of_type(effects, CancelRequest)
    written = [effect.state for effect in of_type(effects, PersistElectionState)]
    assert written == [ElectionState(-1, 6, voted_id=2, voted_directory_id=OTHER_DIRECTORY)]


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


def test_end_of_our_own_epoch_by_another_node_is_refused(node: LoneNode) -> None:
    assert ended(node, end(1)) == (ErrorCode.INVALID_REQUEST, 1, 1)
    assert ended(node, end(0)) == (ErrorCode.FENCED_LEADER_EPOCH, 1, 1)
    assert node.core.is_leader


@pytest.mark.parametrize(
    ("request_", "wait_ms"),
    [
        (end(5, candidates=((1, DIRECTORY), (3, Uuid.ZERO))), 0),
        (end(5, candidates=((3, Uuid.ZERO), (1, DIRECTORY))), 50),
        (end(5, candidates=((1, OTHER_DIRECTORY), (3, Uuid.ZERO))), 1000),
        (end(5, successors=(1, 3)), 0),
        (end(5), 1000),
    ],
    ids=["first", "second", "another directory", "by id", "not named"],
)
def test_a_follower_starts_its_election_in_its_turn(
    node: LoneNode, request_: EndQuorumEpochRequest, wait_ms: int
) -> None:
    node.ask(begin(5), 1)
    assert ended(node, request_)[0] == 0
    if wait_ms:
        assert node.core.role is Role.FOLLOWER
        node.pass_ms(wait_ms - 1)
        assert node.core.leader_id == 2
        node.pass_ms(1)
    assert (node.core.leader_id, node.core.epoch) == (1, 6)
