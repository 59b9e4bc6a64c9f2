"""An ElectLeaders for all partitions answers as one that names them, and in pieces."""

from __future__ import annotations

from random import Random

import pytest

from kraft_wire.controller.decision.work import Piece, SliceLimits
from kraft_wire.controller.partitions import elect_all, elect_leaders
from kraft_wire.controller.partitions.elect_all import ElectAll
from kraft_wire.controller.partitions.partition_change import Election
from kraft_wire.controller.topics import create_partitions
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraft_wire.protocol.messages.elect_leaders_response import ElectLeadersResponse, ReplicaElectionResult
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from tests.controller.partitions.random_cluster import RandomCluster
from tests.controller.topic_cluster import TopicCluster

KINDS = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def named(cluster: TopicCluster, kind: int) -> list[ReplicaElectionResult]:
    """Return the results of a request that names all partitions, without those that need no election."""
    topics = [
        TopicPartitions(
            topic.name, tuple(index for index, _ in cluster.metadata.partitions.indexed(topic.id))
        )
        for topic in cluster.metadata.topics
    ]
    response = cluster.decide(elect_leaders, ElectLeadersRequest(kind, topics), 2).response
    assert isinstance(response, ElectLeadersResponse)
    for topic in response.replica_election_results:
        topic.partition_result = [
            each for each in topic.partition_result if each.error_code != ErrorCode.ELECTION_NOT_NEEDED
        ]
    return response.replica_election_results


def pieces(cluster: TopicCluster, work: ElectAll) -> list[Piece]:
    """Do all of a work."""
    done: list[Piece] = []
    while not done or not done[-1].is_last:
        done.append(work.decide(cluster.state, cluster.context()))
        cluster.replay(done[-1].records)
    return done


def results(done: list[Piece]) -> list[ReplicaElectionResult]:
    assert all(piece.response is None for piece in done[:-1])
    response = done[-1].response
    assert isinstance(response, ElectLeadersResponse)
    return response.replica_election_results


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limits", [SliceLimits(), SliceLimits(window_rows=3, few_changes=1, most_unusual=2)])
def test_all_partitions_have_the_results_of_named_ones(kind: int, limits: SliceLimits) -> None:
    for seed in range(200):
        cluster = RandomCluster(Random(seed))
        cluster.state.slice_limits = limits
        expected = named(cluster, kind)
        found = results(pieces(cluster, ElectAll(KINDS[kind])))
        for topic in found:
            topic.partition_result.sort(key=lambda each: each.partition_id)
        assert found == expected, seed


def test_the_response_lists_some_results_in_each_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elect_all, "RESULTS_PER_PIECE", 7)
    cluster = TopicCluster(0, 1)
    for number in range(7):
        cluster.create_topic(f"topic-{number}", *[(0, 1)] * 3)
    cluster.fence(0)
    work = ElectAll(Election.PREFERRED)
    first = work.decide(cluster.state, cluster.context())
    assert not first.is_last
    gone = cluster.metadata.topics.by_name("topic-3")
    assert gone is not None
    cluster.replay([*first.records, (RemoveTopicRecord(gone.id), 0)])
    done = pieces(cluster, work)
    assert len(done) == 2, "a topic and its three partitions are four results"
    listed = results(done)
    assert [topic.topic for topic in listed] == [f"topic-{number}" for number in range(7) if number != 3]
    assert all(len(topic.partition_result) == 3 for topic in listed)


def test_a_partition_that_moves_meanwhile_is_listed_once() -> None:
    cluster = TopicCluster(0, 1)
    cluster.state.slice_limits = SliceLimits(window_rows=1, few_changes=0, most_considered=1)
    for name in ("moves", "stays"):
        cluster.create_topic(name, (0, 1), (0, 1))
    cluster.fence(0)
    work = ElectAll(Election.PREFERRED)
    for _ in range(2):
        cluster.replay(work.decide(cluster.state, cluster.context()).records)
    topic = CreatePartitionsTopic("moves", 3, [CreatePartitionsAssignment((1, 0))])
    cluster.run(create_partitions, CreatePartitionsRequest(topics=[topic]), 3, CreatePartitionsResponse)
    moved, _ = results(pieces(cluster, work))
    assert [each.partition_id for each in moved.partition_result[:2]] == [0, 1]
    assert len({each.partition_id for each in moved.partition_result}) == len(moved.partition_result)


def test_without_partitions_the_response_is_empty() -> None:
    assert results(pieces(TopicCluster(0), ElectAll(Election.UNCLEAN))) == []
