"""The leader's knowledge of observers, and DescribeQuorum."""

from __future__ import annotations

import pytest

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kraft_wire.protocol.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
)
from kraft_wire.protocol.messages.describe_quorum_response import PartitionData as Described
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import Now, ShutDown
from kraft_wire.raft.leader.leadership import OBSERVER_KEPT_MS, Leadership
from kraft_wire.raft.membership.voters import ReplicaKey, VoterSet, voter_set
from tests.raft.lone_node import DIRECTORY, LISTENER, OTHER_DIRECTORY, OWN_VOTER, LoneNode, config, fetch
from tests.raft.lone_node import formatted_standalone as formatted

FIVE_MINUTES_MS = 300_000


def request(topic: str = "__cluster_metadata", partition: int = 0) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=[TopicData(topic_name=topic, partitions=[PartitionData(partition_index=partition)])]
    )


def describe(node: LoneNode, version: int = 2) -> Described:
    response = node.answer_to(request(), version)
    assert isinstance(response, DescribeQuorumResponse)
    assert DescribeQuorumResponse.decode(response.encode(version), version) is not None
    (topic,) = response.topics
    (partition,) = topic.partitions
    return partition


@pytest.fixture
def node() -> LoneNode:
    """Return a leader of epoch 1 with offsets 0 to 3 committed, kraft.version 1."""
    node = LoneNode(config(static=VoterSet()), formatted())
    node.propose()
    node.flush()
    return node


def test_the_leader_describes_itself_as_caught_up_now(node: LoneNode) -> None:
    node.propose()
    partition = describe(node)
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 1)
    assert partition.high_watermark == 4
    assert partition.current_voters == [
        ReplicaState(
            replica_id=1,
            replica_directory_id=DIRECTORY,
            log_end_offset=5,
            last_fetch_timestamp=node.now.wall_ms,
            last_caught_up_timestamp=node.now.wall_ms,
        )
    ]
    assert partition.observers == []


def test_before_anything_is_committed() -> None:
    assert describe(LoneNode()).high_watermark == -1


def test_voters_and_where_they_listen(node: LoneNode) -> None:
    response = node.answer_to(request(), 2)
    assert isinstance(response, DescribeQuorumResponse)
    listener = Listener(name=LISTENER, host="controller.example", port=9093)
    assert response.nodes == [Node(node_id=1, listeners=[listener])]


@pytest.mark.parametrize("version", [0, 1])
def test_older_versions_have_no_directories_and_no_nodes(node: LoneNode, version: int) -> None:
    response = node.answer_to(request(), version)
    assert isinstance(response, DescribeQuorumResponse)
    assert response.nodes == []
    assert response.topics[0].partitions[0].current_voters[0].replica_directory_id == Uuid.ZERO
    assert response.encode(version)


def test_static_voters_have_no_directory_id() -> None:
    assert describe(LoneNode()).current_voters[0].replica_directory_id == Uuid.ZERO


def test_an_observer_that_is_caught_up(node: LoneNode) -> None:
    node.ask(fetch(4, 1, epoch=1, replica=7), 18)
    assert describe(node).observers == [
        ReplicaState(
            replica_id=7,
            replica_directory_id=OTHER_DIRECTORY,
            log_end_offset=4,
            last_fetch_timestamp=node.now.wall_ms,
            last_caught_up_timestamp=node.now.wall_ms,
        )
    ]


def test_an_observer_that_is_behind(node: LoneNode) -> None:
    node.ask(fetch(1, 1, epoch=1, replica=7), 18)
    (observer,) = describe(node).observers
    assert (observer.log_end_offset, observer.last_caught_up_timestamp) == (1, -1)


def test_having_what_the_leader_had_at_the_fetch_before_counts_as_caught_up_then(node: LoneNode) -> None:
    node.ask(fetch(1, 1, epoch=1, replica=7), 18, token=1)
    first_fetch_ms = node.now.wall_ms
    node.propose()
    node.pass_ms(40)
    node.ask(fetch(4, 1, epoch=1, replica=7), 18, token=2)
    (observer,) = describe(node).observers
    assert observer.last_caught_up_timestamp == first_fetch_ms
    assert observer.last_fetch_timestamp == node.now.wall_ms


def test_a_fetch_that_diverges_is_no_acknowledgement(node: LoneNode) -> None:
    node.ask(fetch(9, 1, epoch=1, replica=7), 18)
    assert describe(node).observers == []


def test_a_fetch_that_timed_out_is_not_a_second_contact(node: LoneNode) -> None:
    node.ask(fetch(4, 1, epoch=1, replica=7, max_wait_ms=100), 18)
    fetched_ms = node.now.wall_ms
    node.pass_ms(100)
    assert describe(node).observers[0].last_fetch_timestamp == fetched_ms


def test_replicas_are_told_apart_by_directory(node: LoneNode) -> None:
    for directory in (OTHER_DIRECTORY, Uuid.ZERO):
        node.ask(fetch(4, 1, epoch=1, replica=7, directory=directory), 18, token=directory)
    assert len(describe(node).observers) == 2


def test_a_replica_without_an_id_is_not_counted(node: LoneNode) -> None:
    node.ask(fetch(4, 1, epoch=1, replica=-1), 18)
    assert describe(node).observers == []


@pytest.mark.parametrize(("silent_ms", "known"), [(FIVE_MINUTES_MS - 1, 1), (FIVE_MINUTES_MS, 0)])
def test_observers_are_forgotten_after_five_minutes(node: LoneNode, silent_ms: int, known: int) -> None:
    node.ask(fetch(4, 1, epoch=1, replica=7), 18)
    node.now = Now(node.now.monotonic_ms + silent_ms, node.now.wall_ms + silent_ms)
    assert len(describe(node).observers) == known


def test_observers_are_forgotten_without_a_describe_quorum(node: LoneNode) -> None:
    leadership = node.core._quorum.leadership
    assert leadership is not None
    node.ask(fetch(4, 1, epoch=1, replica=7), 18)
    node.pass_ms(OBSERVER_KEPT_MS - 1)
    assert len(leadership.observers) == 1
    node.pass_ms(60_000)
    assert len(leadership.observers) == 0


def test_a_wall_clock_that_jumps_makes_no_observer_silent(node: LoneNode) -> None:
    node.ask(fetch(4, 1, epoch=1, replica=7), 18)
    node.now = Now(node.now.monotonic_ms, node.now.wall_ms + 86_400_000)
    assert len(describe(node).observers) == 1


def test_a_new_leader_starts_without_observers(node: LoneNode) -> None:
    node.ask(fetch(4, 1, epoch=1, replica=7), 18)
    node.restart()
    assert describe(node).observers == []


# Errors.


@pytest.mark.parametrize(("topic", "partition"), [("other", 0), ("__cluster_metadata", 1)])
def test_other_partitions_are_unknown(node: LoneNode, topic: str, partition: int) -> None:
    response = node.answer_to(request(topic, partition), 2)
    assert isinstance(response, DescribeQuorumResponse)
    answer = response.topics[0].partitions[0]
    assert response.topics[0].topic_name == topic
    assert answer.partition_index == partition
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.error_message


def test_only_the_leader_answers(node: LoneNode) -> None:
    node.step(ShutDown())
    answer = describe(node)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.error_message


# Fetches of voters are acknowledgements, also for a leader that isn't a voter.


def test_a_majority_commits() -> None:
    three = voter_set(
        type(OWN_VOTER)(ReplicaKey(node_id, DIRECTORY if node_id == 1 else OTHER_DIRECTORY))
        for node_id in (1, 2, 3)
    )
    leadership = Leadership(OWN_VOTER.key, 10, three, 0)
    now = Now(0, 0)
    assert not leadership.note_flush(13)
    assert not leadership.note_fetch(ReplicaKey(2, Uuid.ZERO), 12, 13, now)  # another directory: an observer
    assert not leadership.note_fetch(ReplicaKey(2, OTHER_DIRECTORY), 10, 13, now)  # no record of this epoch
    assert leadership.note_fetch(ReplicaKey(2, OTHER_DIRECTORY), 12, 13, now)
    assert leadership.high_watermark == 12
    assert not leadership.note_fetch(ReplicaKey(2, OTHER_DIRECTORY), 11, 13, now)
    assert leadership.high_watermark == 12
    assert leadership.note_fetch(ReplicaKey(3, OTHER_DIRECTORY), 13, 13, now)
    assert leadership.high_watermark == 13


def _leadership_of_a_removed_voter() -> Leadership:
    """Return the leadership of node 1, which leads until its successor is found; 2, 3 and 4 vote."""
    others = voter_set(type(OWN_VOTER)(ReplicaKey(node_id, OTHER_DIRECTORY)) for node_id in (2, 3, 4))
    return Leadership(OWN_VOTER.key, 10, others, now_ms=0)


def test_a_leader_that_is_no_voter_does_not_count_for_the_high_watermark() -> None:
    """KAFKA-16530."""
    leadership = _leadership_of_a_removed_voter()
    now = Now(0, 0)
    assert not leadership.note_flush(13)
    assert not leadership.note_fetch(ReplicaKey(2, OTHER_DIRECTORY), 12, 13, now)
    assert leadership.note_fetch(ReplicaKey(3, OTHER_DIRECTORY), 13, 13, now)
    assert leadership.high_watermark == 12
    assert leadership.note_fetch(ReplicaKey(4, OTHER_DIRECTORY), 13, 13, now)
    assert leadership.high_watermark == 13


def test_a_leader_that_is_no_voter_is_not_in_contact_with_itself() -> None:
    """KAFKA-16531: a majority of the voters has to fetch."""
    leadership = _leadership_of_a_removed_voter()
    leadership.note_fetch(ReplicaKey(2, OTHER_DIRECTORY), 10, 13, Now(2_000, 0))
    assert leadership.majority_contact_ms() == 0
    leadership.note_fetch(ReplicaKey(3, OTHER_DIRECTORY), 10, 13, Now(3_000, 0))
    assert leadership.majority_contact_ms() == 2_000


def test_a_fetch_with_the_leaders_own_id_is_no_acknowledgement() -> None:
    leadership = Leadership(OWN_VOTER.key, 0, VoterSet((OWN_VOTER,)), 0)
    with pytest.raises(InvariantViolated, match="own id"):
        leadership.note_fetch(ReplicaKey(1, OTHER_DIRECTORY), 1, 1, Now(0, 0))
