"""The rules of KIP-853's draft. Each test's name begins with the section of the page that has the rule."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.log.files import CLUSTER_METADATA, ElectionState
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import (
    begin_quorum_epoch_request,
    describe_quorum_request,
    fetch_snapshot_request,
)
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kraft_wire.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kraft_wire.protocol.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kraft_wire.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.fetch_snapshot_request import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    TopicSnapshot,
)
from kraft_wire.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraft_wire.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.drafted.dialect import DRAFTED as DIALECT
from kraft_wire.raft.effects import ReplySnapshotBytes, SendRequest
from kraft_wire.raft.events import ResponseReceived
from kraft_wire.raft.membership.voters import ReplicaKey, Voter, endpoints_of, static_voters
from kraft_wire.sim.network.wire import Wire
from tests.raft.core_quorum import CoreQuorum
from tests.raft.election.vote_requests import answer, vote
from tests.raft.lone_node import (
    DIRECTORY,
    LISTENER,
    OTHER_DIRECTORY,
    LoneNode,
    config,
    fetch,
    formatted_standalone,
    of_type,
)
from tests.raft.membership.reconfiguration import (
    Asked,
    add,
    add_request,
    all_know,
    believing,
    remove_request,
    update_request,
    voters_of,
    with_new_disk,
    with_observers,
)

DRAFTED: dict[str, Any] = {"drafted_listeners": (LISTENER,)}
NEW_DIRECTORY = Uuid(bytes([9] * 16))
ON_THE_WIRE = Wire(is_encoded=True, dialect=DIALECT)
VOTE_VERSION = 1
FETCH_VERSION = 17


def drafted_quorum(voters: int = 3, observers: int = 0, *, kraft_version: int = 1) -> CoreQuorum:
    return with_observers(voters, observers, kraft_version=kraft_version, **DRAFTED)


@pytest.fixture
def in_force() -> LoneNode:
    """Return a leader of epoch 1 that speaks the draft, with kraft.version 1."""
    node = LoneNode(config(**DRAFTED), formatted_standalone())
    node.propose()
    node.flush()
    return node


@pytest.fixture
def leaderless(node: LoneNode) -> LoneNode:
    """Return a voter of kraft.version 0 in epoch 1 that has lost its leader, and speaks the draft."""
    addresses = {1: ("controller.example", 9093), 2: ("other.example", 9093), 3: ("third.example", 9093)}
    node.restart(config(static=static_voters(LISTENER, addresses), **DRAFTED))
    node.has_lost_leader()
    return node


def _voter_of_three() -> LoneNode:
    """Return a voter with an empty log and kraft.version 1. It has heard of no leader for a while."""
    keys = {1: DIRECTORY, 2: OTHER_DIRECTORY, 3: NEW_DIRECTORY}
    voters = [
        Voter(ReplicaKey(id, directory), endpoints_of([(LISTENER, f"node-{id}", 9093)]))
        for id, directory in keys.items()
    ]
    node = LoneNode(config(**DRAFTED), formatted_standalone(*voters))
    node.has_lost_leader()
    return node


def _observers(node: LoneNode) -> set[tuple[int, Uuid]]:
    topic = describe_quorum_request.TopicData(
        topic_name=CLUSTER_METADATA, partitions=[describe_quorum_request.PartitionData(partition_index=0)]
    )
    response = node.answer_to(DescribeQuorumRequest(topics=[topic]), 2)
    assert isinstance(response, DescribeQuorumResponse)
    observers = response.topics[0].partitions[0].observers
    return {(observer.replica_id, observer.replica_directory_id) for observer in observers}


def _snapshot_request(
    epoch: int, snapshot_id: SnapshotId, directory: Uuid = OTHER_DIRECTORY
) -> FetchSnapshotRequest:
    asked = PartitionSnapshot(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=fetch_snapshot_request.SnapshotId(*snapshot_id),
        replica_directory_id=directory,
    )
    return FetchSnapshotRequest(
        replica_id=7, topics=[TopicSnapshot(name=CLUSTER_METADATA, partitions=[asked])]
    )


# A voter that loses its disk.


def test_a_voter_that_loses_its_disk_comes_back_with_a_new_uuid_and_is_not_the_voter() -> None:
    quorum = drafted_quorum()
    fresh = with_new_disk(quorum, quorum.followers()[0])
    quorum.run_until(lambda: fresh.end_offset == quorum.leader.end_offset)
    assert not fresh.running.is_voter
    (other,) = quorum.followers()
    other.crash()
    quorum.leader.propose()
    end = quorum.leader.end_offset
    quorum.run_for(1000)
    assert quorum.leader.high_watermark < end, "the empty disk counted as the voter's"


def test_a_voter_that_loses_its_disk_can_not_vote_twice() -> None:
    quorum = drafted_quorum()
    leader = quorum.leader
    lost, other = quorum.followers()
    fresh = with_new_disk(quorum, lost)
    quorum.run_until(lambda: fresh.end_offset == leader.end_offset)
    leader.crash()
    quorum.run_for(5_000)
    assert not quorum.leaders, "one vote of the three voters is left"
    asked = [
        effect.request
        for effect in other.effects
        if isinstance(effect, SendRequest) and isinstance(effect.request, VoteRequest)
    ]
    assert any(request.voter_id == lost.id for request in asked)
    assert fresh.election is None or not fresh.election.has_voted


def test_a_voter_that_loses_its_disk_rejoins_when_the_old_uuid_is_removed_and_the_new_one_added() -> None:
    quorum = drafted_quorum()
    lost = quorum.followers()[0]
    fresh = with_new_disk(quorum, lost)
    quorum.run_until(lambda: fresh.end_offset == quorum.leader.end_offset)
    assert Asked(quorum.leader, add_request(fresh)).error is ErrorCode.DUPLICATE_VOTER
    asked = Asked(quorum.leader, remove_request(lost))
    quorum.run_until(lambda: asked.is_answered)
    assert add(quorum, fresh.id).error is ErrorCode.NONE
    quorum.run_until(lambda: all_know(quorum, 1, 2, 3))
    assert fresh.running.is_voter


# Vote, Handling.


def test_vote_handling_a_voter_elects_one_that_its_voter_set_lacks() -> None:
    quorum = drafted_quorum(2, 1)
    leader, newcomer = quorum.leader, quorum.nodes[3]
    (voter,) = quorum.followers()
    quorum.cut((leader.id, voter.id))
    assert add(quorum, newcomer.id).error is ErrorCode.NONE
    leader.crash()
    quorum.heal()
    assert voters_of(voter) == (1, 2)
    quorum.run_until(lambda: newcomer.running.is_leader)
    quorum.run_until(lambda: voters_of(voter) == (1, 2, 3))


def test_vote_handling_an_unknown_candidate_is_answered_and_can_get_the_vote(leaderless: LoneNode) -> None:
    leaderless.pass_ms(1000)
    partition = answer(leaderless, vote(5, candidate=8, directory=Uuid.ZERO), VOTE_VERSION)
    assert (partition.error_code, partition.vote_granted) == (ErrorCode.NONE, True)


def test_vote_handling_the_voter_persists_the_candidates_id_and_uuid() -> None:
    quorum = drafted_quorum()
    quorum.leader.crash()
    quorum.elect()
    leader = quorum.leader
    (voter,) = [node for node in quorum.nodes.values() if node.is_up and node is not leader]
    key = leader.config.replica_key
    assert voter.election is not None
    assert (voter.election.voted_id, voter.election.voted_directory_id) == (key.id, key.directory_id)


def test_vote_handling_a_voter_votes_for_one_id_and_uuid_in_an_epoch() -> None:
    node = _voter_of_three()
    assert answer(node, vote(5), VOTE_VERSION).vote_granted
    assert node.election == ElectionState(-1, 5, voted_id=2, voted_directory_id=OTHER_DIRECTORY)
    assert not answer(node, vote(5, directory=NEW_DIRECTORY), VOTE_VERSION).vote_granted
    assert not answer(node, vote(5, candidate=3), VOTE_VERSION).vote_granted
    node.restart()
    assert not answer(node, vote(5, directory=NEW_DIRECTORY), VOTE_VERSION).vote_granted
    assert answer(node, vote(5), VOTE_VERSION).vote_granted


def test_vote_handling_another_voters_id_or_uuid_is_an_invalid_request() -> None:
    node = _voter_of_three()
    for request in (vote(5, voter=3), vote(5, voter_directory=NEW_DIRECTORY)):
        partition = answer(node, request, VOTE_VERSION)
        assert (partition.error_code, partition.vote_granted) == (ErrorCode.INVALID_REQUEST, False)
    assert node.core.epoch == 0, "checks come before effects"


def test_vote_handling_an_unknown_voter_uuid_is_for_any_disk() -> None:
    assert answer(_voter_of_three(), vote(5, voter_directory=Uuid.ZERO), VOTE_VERSION).vote_granted


def test_vote_handling_a_candidates_uuid_is_unsupported_without_kraft_version_1(leaderless: LoneNode) -> None:
    partition = answer(leaderless, vote(5, directory=OTHER_DIRECTORY), VOTE_VERSION)
    assert (partition.error_code, partition.vote_granted) == (ErrorCode.UNSUPPORTED_VERSION, False)
    assert leaderless.core.epoch == 1, "checks come before effects"
    assert answer(leaderless, vote(5, directory=Uuid.ZERO), VOTE_VERSION).vote_granted


def test_vote_handling_the_wrong_voter_comes_before_the_candidates_uuid(leaderless: LoneNode) -> None:
    partition = answer(leaderless, vote(5, voter=3), VOTE_VERSION)
    assert partition.error_code == ErrorCode.INVALID_REQUEST


def test_vote_handling_a_refused_uuid_is_left_out_and_a_leader_is_elected() -> None:
    """The draft doesn't say what the candidate does. Otherwise no quorum of kraft.version 0 had a leader."""
    quorum = drafted_quorum(kraft_version=0)
    votes = [
        effect.request.topics[0].partitions[0].replica_directory_id
        for effect in quorum.leader.effects
        if isinstance(effect, SendRequest) and isinstance(effect.request, VoteRequest)
    ]
    assert votes[0] == quorum.leader.config.directory_id
    assert votes[-1] == Uuid.ZERO


def test_a_listener_without_the_draft_has_the_released_rules(leaderless: LoneNode) -> None:
    leaderless.restart(config(static=leaderless.config.static_voters))
    leaderless.has_lost_leader()
    assert answer(leaderless, vote(5, voter=3)).error_code == ErrorCode.INVALID_VOTER_KEY
    assert answer(leaderless, vote(5, directory=OTHER_DIRECTORY)).vote_granted


# Vote, Response.


def test_vote_response_names_the_current_leaders_endpoint(in_force: LoneNode) -> None:
    response = in_force.answer_to(vote(1, last=(0, 0)), VOTE_VERSION)
    assert isinstance(response, VoteResponse)
    read = ON_THE_WIRE.response(response)
    assert isinstance(read, VoteResponse)
    assert [(node.node_id, node.host, node.port) for node in read.node_endpoints] == [
        (1, "controller.example", 9093)
    ]


# UpdateVoter.


def test_update_voter_response_has_the_error_and_the_current_leader_with_its_endpoint() -> None:
    quorum = drafted_quorum()
    leader, follower = quorum.leader, quorum.followers()[0]
    asked = Asked(follower, update_request(follower, leader.running.epoch))
    (response,) = asked.answers
    read = ON_THE_WIRE.response(response)
    assert isinstance(read, UpdateRaftVoterResponse)
    assert read.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    current = read.current_leader
    assert (current.leader_id, current.leader_epoch) == (leader.id, leader.running.epoch)
    assert (current.host, current.port) == (f"node-{leader.id}", 9093)


def test_update_voter_changes_the_voters_entry() -> None:
    quorum = drafted_quorum()
    voter = quorum.followers()[0]
    with believing():
        asked = Asked(quorum.leader, update_request(voter, quorum.leader.running.epoch, port=9999))
    quorum.run_until(lambda: asked.is_answered)
    assert asked.error is ErrorCode.NONE
    quorum.run_until(quorum.agree)
    (endpoint,) = quorum.leader.running.voters.endpoints_of(voter.id)
    assert endpoint.port == 9999


# Fetch, Request and Handling.


def test_fetch_request_a_replica_that_gives_id_and_uuid_can_become_a_voter() -> None:
    quorum = drafted_quorum(3, 1)
    assert add(quorum, 4).error is ErrorCode.NONE


def test_fetch_request_a_replica_that_gives_no_uuid_can_not_become_a_voter(in_force: LoneNode) -> None:
    leader = in_force
    leader.ask(fetch(3, 1, epoch=1, replica=7, directory=Uuid.ZERO), FETCH_VERSION)
    assert _observers(leader) == {(7, Uuid.ZERO)}
    listeners = [Listener(name=LISTENER, host="node-7", port=9093)]
    request = AddRaftVoterRequest(
        cluster_id=None, voter_id=7, voter_directory_id=OTHER_DIRECTORY, timeout_ms=1000, listeners=listeners
    )
    (question,) = of_type(leader.ask(request, 1, "add"), SendRequest)
    versions = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=VoteRequest.API_KEY)],
        supported_features=[SupportedFeatureKey("kraft.version", 0, 1)],
    )
    leader.step(ResponseReceived(question.request_id, versions))
    while "add" not in leader.answers:
        leader.pass_ms(100)
    response = leader.answers["add"].response
    assert isinstance(response, AddRaftVoterResponse)
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "not caught up" in (response.error_message or "")


def test_fetch_handling_the_leader_tracks_replicas_by_id_and_uuid(in_force: LoneNode) -> None:
    for directory in (OTHER_DIRECTORY, NEW_DIRECTORY):
        in_force.ask(fetch(3, 1, epoch=1, replica=7, directory=directory), FETCH_VERSION, directory)
    assert _observers(in_force) == {(7, OTHER_DIRECTORY), (7, NEW_DIRECTORY)}


@pytest.mark.parametrize("is_voter", [True, False], ids=["voters", "observers"])
def test_fetch_handling_a_removed_leader_is_fetched_from_until_its_removal_is_committed(
    *, is_voter: bool
) -> None:
    quorum = drafted_quorum(3, 1)
    leader = quorum.leader
    followers = quorum.followers()
    for node in followers:
        node.disk_is_stuck = True
    asked = Asked(leader, remove_request(leader))
    quorum.run_until(lambda: not leader.running.is_voter)
    reader = followers[0] if is_voter else quorum.nodes[4]
    if is_voter:
        reader.free_disk()
    else:
        quorum.run_for(600)  # an observer gets what isn't committed when its Fetch has waited long enough
    leader.propose()
    quorum.run_until(lambda: reader.end_offset == leader.end_offset)
    assert leader.running.is_leader
    assert not asked.is_answered
    for node in followers:
        node.free_disk()
    quorum.run_until(lambda: asked.is_answered)
    assert asked.error is ErrorCode.NONE
    quorum.run_until(lambda: bool(quorum.others_than(leader)))
    quorum.run_until(quorum.agree)


def test_fetch_handling_a_leader_that_is_no_voter_does_not_count_itself() -> None:
    quorum = drafted_quorum(3)
    leader = quorum.leader
    one, _ = quorum.followers()
    one.disk_is_stuck = True
    asked = Asked(leader, remove_request(leader))
    quorum.run_for(500)
    assert not asked.is_answered, "the leader and one of the two voters aren't a majority of the two"
    assert leader.high_watermark < leader.end_offset


def test_fetch_response_names_the_leaders_endpoint_with_it() -> None:
    quorum = drafted_quorum()
    leader, follower = quorum.leader, quorum.followers()[0]
    node = Asked(follower, fetch(0, 0, epoch=leader.running.epoch, replica=9, max_wait_ms=0), FETCH_VERSION)
    (response,) = node.answers
    read = ON_THE_WIRE.response(response)
    assert isinstance(read, FetchResponse)
    current = read.responses[0].partitions[0].current_leader
    assert (current.leader_id, current.leader_epoch) == (leader.id, leader.running.epoch)
    assert [(each.node_id, each.host) for each in read.node_endpoints] == [(leader.id, f"node-{leader.id}")]


# FetchSnapshot, Handling and Response.


def test_fetch_snapshot_handling_a_removed_leader_serves_its_snapshot() -> None:
    quorum = drafted_quorum(3, 1)
    leader = quorum.leader
    snapshot_id = leader.write_snapshot()
    for node in quorum.followers():
        node.disk_is_stuck = True
    Asked(leader, remove_request(leader))
    quorum.run_until(lambda: not leader.running.is_voter)
    Asked(leader, _snapshot_request(leader.running.epoch, snapshot_id), 1)
    (answer_,) = [effect for effect in leader.effects if isinstance(effect, ReplySnapshotBytes)]
    assert answer_.snapshot_id == snapshot_id


def test_fetch_snapshot_handling_the_leader_tracks_replicas_by_id_and_uuid(in_force: LoneNode) -> None:
    for directory in (OTHER_DIRECTORY, NEW_DIRECTORY):
        in_force.ask(fetch(3, 1, epoch=1, replica=7, directory=directory), FETCH_VERSION, directory)
        in_force.ask(_snapshot_request(1, SnapshotId(1, 1), directory), 1, f"snapshot {directory}")
    assert _observers(in_force) == {(7, OTHER_DIRECTORY), (7, NEW_DIRECTORY)}


def test_fetch_snapshot_response_names_the_leaders_endpoint_with_it(in_force: LoneNode) -> None:
    response = in_force.answer_to(_snapshot_request(1, SnapshotId(1, 1)), 1)
    read = ON_THE_WIRE.response(response)
    assert isinstance(read, FetchSnapshotResponse)
    assert read.topics[0].partitions[0].error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    assert read.topics[0].partitions[0].current_leader.leader_id == 1
    assert [(each.node_id, each.host) for each in read.node_endpoints] == [(1, "controller.example")]


# BeginQuorumEpoch.


def test_begin_quorum_epoch_answers_with_the_same_fields_in_both_versions(in_force: LoneNode) -> None:
    asked = begin_quorum_epoch_request.PartitionData(leader_id=2, leader_epoch=1)
    topic = begin_quorum_epoch_request.TopicData(topic_name=CLUSTER_METADATA, partitions=[asked])
    request = BeginQuorumEpochRequest(topics=[topic])
    answers = [in_force.answer_to(request, version) for version in (0, 1)]
    first, second = (
        BeginQuorumEpochResponse.decode(response.encode(version), version)
        for version, response in enumerate(answers)
    )
    assert first.topics == second.topics
    assert first.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
