"""BeginQuorumEpoch is a hint, and EndQuorumEpoch counts once the leader itself says that it resigned."""

from __future__ import annotations

import msgspec
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
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.effects import (
    Effect,
    SendRequest,
)
from kraft_wire.raft.election.hints import KEPT_MS, MOST_HINTS
from kraft_wire.raft.events import ResponseReceived
from kraft_wire.raft.membership.voter_history import VoterSetHistory
from kraft_wire.raft.quorum_state import LEADER_RECORD_WAIT_MS
from kraft_wire.raft.roles import Role
from tests.raft.election.claimed_leaders import fetch_answer, fetches, questions
from tests.raft.election.vote_requests import answer, vote
from tests.raft.lone_node import (
    DIRECTORY,
    LISTENER,
    OTHER_DIRECTORY,
    LoneNode,
    election,
    of_type,
)

LONG_MS = 1000


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


def questioned(effects: list[Effect], leader_id: int = 2) -> list[tuple[str, int]]:
    """Return the addresses at which a node is asked whether it leads."""
    return [(each.peer.host, each.peer.port) for each in questions(effects, leader_id)]


def follow(node: LoneNode, epoch: int = 5, leader_id: int = 2) -> list[Effect]:
    """Let a node hear of a leader, and then from it."""
    (question,) = questions(node.ask(begin(epoch, leader=leader_id), 1, token=("begin", epoch)), leader_id)
    answer = fetch_answer(leader_id, epoch, ErrorCode.FENCED_LEADER_EPOCH, host="other.example")
    effects = node.step(ResponseReceived(question.request_id, answer))
    assert (node.core.role, node.core.leader_id, node.core.epoch) == (Role.FOLLOWER, leader_id, epoch)
    return effects


def test_a_leader_that_announces_itself_is_asked_at_the_address_that_voters_know(
    leaderless: LoneNode,
) -> None:
    request = begin(5)
    request.leader_endpoints[0].host = "evil.example"
    effects = leaderless.ask(request, 1)
    assert questioned(effects) == [("other.example", 9093)]
    assert leaderless.core.epoch == 1


def test_it_is_followed_when_it_says_so_itself(leaderless: LoneNode) -> None:
    follow(leaderless)
    assert leaderless.election == election(2, 5)


def test_the_announcement_is_answered_before_it_is_believed(leaderless: LoneNode) -> None:
    assert begun(leaderless, begin(5)) == (0, 1, 1)


def test_a_node_that_says_nothing_of_the_kind_is_not_followed(leaderless: LoneNode) -> None:
    (question,) = questions(leaderless.ask(begin(5), 1), 2)
    answer = fetch_answer(-1, 1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    leaderless.step(ResponseReceived(question.request_id, answer))
    assert leaderless.core.epoch == 1
    assert leaderless.core.live_leader_id is None


def test_an_unknown_leader_is_not_asked_while_a_leader_is_there(node: LoneNode) -> None:
    effects = node.ask(begin(5), 1)
    assert not of_type(effects, SendRequest)
    assert node.core.is_leader


def test_an_unknown_leader_of_static_voters_is_never_asked_though_it_has_our_vote(
    leaderless: LoneNode,
) -> None:
    leaderless.pass_ms(LONG_MS)
    assert answer(leaderless, vote(5, candidate=7)).vote_granted
    assert questioned(leaderless.ask(begin(5, leader=7), 1), 7) == []


@pytest.fixture
def dynamic(leaderless: LoneNode, monkeypatch: pytest.MonkeyPatch) -> LoneNode:
    """The same node in a quorum whose voters can change."""
    monkeypatch.setattr(VoterSetHistory, "kraft_version", property(lambda history: 1))
    leaderless.pass_ms(LONG_MS)
    assert answer(leaderless, vote(5, candidate=7)).vote_granted
    return leaderless


def test_an_unknown_leader_that_has_our_vote_is_asked_at_the_address_that_it_names(dynamic: LoneNode) -> None:
    effects = dynamic.ask(begin(5, leader=7), 1)
    assert questioned(effects, 7) == [("other.example", 9093)]
    (question,) = questions(effects, 7)
    dynamic.step(ResponseReceived(question.request_id, fetch_answer(7, 5, host="other.example")))
    assert (dynamic.core.role, dynamic.core.leader_id) == (Role.FOLLOWER, 7)


@pytest.mark.parametrize(
    ("servers", "asked"), [((), "other.example"), ((("moved.example", 9093),), "moved.example")]
)
def test_a_voter_that_has_moved_is_asked_at_the_bootstrap_server_that_it_names(
    dynamic: LoneNode, servers: tuple[tuple[str, int], ...], asked: str
) -> None:
    """The log has its former address. Any other address may be somebody else's."""
    quorum = dynamic.core._quorum
    quorum.config = msgspec.structs.replace(quorum.config, bootstrap_servers=servers)
    request = begin(5)
    request.leader_endpoints[0].host = "moved.example"
    assert questioned(dynamic.ask(request, 1)) == [(asked, 9093)]


def test_an_unknown_leader_can_not_raise_the_epoch(dynamic: LoneNode) -> None:
    (question,) = questions(dynamic.ask(begin(5, leader=7), 1), 7)
    absurd = fetch_answer(7, 2_146_435_071, ErrorCode.FENCED_LEADER_EPOCH)
    dynamic.step(ResponseReceived(question.request_id, absurd))
    assert dynamic.core.epoch == 5


def test_an_unknown_leader_without_our_vote_is_never_asked(leaderless: LoneNode) -> None:
    """Whoever is asked may send records."""
    assert questioned(leaderless.ask(begin(5, leader=7), 1, token=1), 7) == []
    assert questioned(leaderless.pass_ms(LONG_MS), 7) == []
    assert questioned(leaderless.ask(begin(5, leader=7), 1, token=2), 7) == []


def test_the_question_acknowledges_only_what_is_flushed(leaderless: LoneNode) -> None:
    log = leaderless.core._quorum.log
    flushed = log.flushed_offset
    log.note_append(1, log.end_offset + 3, 100)
    (question,) = questions(leaderless.ask(begin(5), 1), 2)
    assert isinstance(question.request, FetchRequest)
    asked = question.request.topics[0].partitions[0]
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (flushed, 1)


def test_a_hint_is_forgotten_when_the_leader_is_known(leaderless: LoneNode) -> None:
    follow(leaderless)
    assert len(leaderless.core._quorum.hints) == 0


def test_few_hints_are_kept_and_none_for_long(leaderless: LoneNode) -> None:
    for leader in range(10, 40):
        leaderless.ask(begin(5, leader=leader), 1, token=leader)
    assert len(leaderless.core._quorum.hints) <= MOST_HINTS
    leaderless.pass_ms(KEPT_MS)
    assert len(leaderless.core._quorum.hints) == 0


def test_a_node_is_not_asked_again_at_once(leaderless: LoneNode) -> None:
    effects = leaderless.ask(begin(5), 1, token=1)
    (question,) = questions(effects, 2)
    answer = fetch_answer(-1, 1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    again = leaderless.step(ResponseReceived(question.request_id, answer))
    again += leaderless.ask(begin(5), 1, token=2)
    assert questioned(again) == []


def test_a_second_leader_for_our_epoch_is_refused(node: LoneNode) -> None:
    """Java's process ends here."""
    assert begun(node, begin(1)) == (ErrorCode.INVALID_REQUEST, 1, 1)
    assert node.core.is_leader


def test_a_second_leader_for_the_epoch_that_we_follow_is_refused(leaderless: LoneNode) -> None:
    follow(leaderless)
    assert begun(leaderless, begin(5, leader=3)) == (ErrorCode.INVALID_REQUEST, 2, 5)
    assert leaderless.core.leader_id == 2


def test_handle_begin_quorum_request_more_endpoints(leaderless: LoneNode) -> None:
    """KafkaRaftClientReconfigTest. The leader also listens where this node doesn't need it."""
    follow(leaderless)
    assert begun(leaderless, begin(5, listeners=("ANOTHER_LISTENER", LISTENER))) == (0, 2, 5)
    assert (leaderless.core.role, leaderless.core.leader_id) == (Role.FOLLOWER, 2)


def test_a_claim_that_we_lead_is_right_or_refused(node: LoneNode) -> None:
    assert begun(node, begin(1, leader=1)) == (0, 1, 1)
    assert begun(node, begin(5, leader=1)) == (ErrorCode.INVALID_REQUEST, 1, 1)
    assert node.core.is_leader


def test_begin_of_a_lower_epoch_or_without_a_leader(node: LoneNode) -> None:
    assert begun(node, begin(0)) == (ErrorCode.FENCED_LEADER_EPOCH, 1, 1)
    assert begun(node, begin(5, leader=-1)) == (ErrorCode.INVALID_REQUEST, 1, 1)


def test_begin_for_another_voter_changes_nothing(leaderless: LoneNode) -> None:
    for request in (begin(5, voter=9), begin(6, voter_directory=OTHER_DIRECTORY)):
        assert begun(leaderless, request) == (ErrorCode.INVALID_VOTER_KEY, 1, 1)
    assert len(leaderless.core._quorum.hints) == 0


def test_a_vote_is_kept_when_its_candidate_wins(leaderless: LoneNode) -> None:
    leaderless.ask(vote(5), 2, token=1)
    (question,) = questions(leaderless.ask(begin(5), 1, token=2), 2)
    leaderless.step(ResponseReceived(question.request_id, fetch_answer(2, 5)))
    assert leaderless.core.role is Role.FOLLOWER
    assert leaderless.election == ElectionState(-1, 5, voted_id=2, voted_directory_id=OTHER_DIRECTORY)
    leaderless.pass_ms(LEADER_RECORD_WAIT_MS)
    assert leaderless.election == ElectionState(2, 5, voted_id=2, voted_directory_id=OTHER_DIRECTORY)


def test_a_follower_that_has_not_heard_its_leader_gives_pre_votes_only(leaderless: LoneNode) -> None:
    follow(leaderless)
    assert not answer(leaderless, vote(5)).vote_granted
    assert answer(leaderless, vote(5, pre_vote=True)).vote_granted
    assert leaderless.core.role is Role.FOLLOWER


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


@pytest.mark.parametrize("resigns_first", [True, False])
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
def test_a_follower_starts_its_election_in_its_turn_once_the_leader_says_that_it_resigned(
    leaderless: LoneNode, request_: EndQuorumEpochRequest, wait_ms: int, *, resigns_first: bool
) -> None:
    (fetch,) = [each for each in fetches(follow(leaderless)) if each.peer.id == 2]
    resignation = ResponseReceived(
        fetch.request_id, fetch_answer(2, 5, ErrorCode.NOT_LEADER_OR_FOLLOWER, host="other.example")
    )
    if resigns_first:
        leaderless.step(resignation)
    assert ended(leaderless, request_)[0] == 0
    if not resigns_first:
        assert leaderless.core.live_leader_id == 2
        leaderless.step(resignation)
    if wait_ms:
        leaderless.pass_ms(wait_ms - 1)
        assert leaderless.core.role is Role.FOLLOWER
        leaderless.pass_ms(1)
    expected = Role.PROSPECTIVE if wait_ms else Role.CANDIDATE
    assert leaderless.core.role is expected


def test_a_resignation_in_the_leaders_name_changes_nothing(leaderless: LoneNode) -> None:
    follow(leaderless)
    effects = leaderless.ask(end(5, candidates=((1, DIRECTORY),)), 1)
    assert not of_type(effects, SendRequest)
    assert leaderless.core.live_leader_id == 2
    assert (leaderless.core.role, leaderless.core.epoch) == (Role.FOLLOWER, 5)


def test_the_resigned_leader_of_a_higher_epoch_is_asked(leaderless: LoneNode) -> None:
    assert questioned(leaderless.ask(end(5), 1)) == [("other.example", 9093)]
    assert leaderless.core.epoch == 1
