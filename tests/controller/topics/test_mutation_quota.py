"""CreateTopics, CreatePartitions and DeleteTopics spend a client's quota of changed partitions (KIP-599)."""

from __future__ import annotations

import pytest

from kraft_wire.controller.decision.context import Result
from kraft_wire.controller.topics import create_partitions, create_topics, delete_topics
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraft_wire.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest
from kraft_wire.protocol.messages.delete_topics_response import DeleteTopicsResponse
from tests.controller.topic_cluster import TopicCluster, new_topic

THROTTLED, NONE, EXISTS = (
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ErrorCode.NONE,
    ErrorCode.TOPIC_ALREADY_EXISTS,
)
WINDOW = 11


@pytest.fixture
def cluster() -> TopicCluster:
    """Everybody may change one partition a second, and eleven at first."""
    made = TopicCluster(0, 1)
    record = ClientQuotaRecord([EntityData("user", None)], "controller_mutation_rate", 1.0)
    made.replay([(record, 0)])
    return made


def create(
    cluster: TopicCluster, *topics: CreatableTopic, version: int = 7, validate_only: bool = False
) -> tuple[list[int], int]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    response = cluster.run(create_topics, request, version, CreateTopicsResponse)
    return [topic.error_code for topic in response.topics], response.throttle_time_ms


def grow(cluster: TopicCluster, *topics: CreatePartitionsTopic, version: int = 3) -> tuple[list[int], int]:
    response = cluster.run(
        create_partitions, CreatePartitionsRequest(topics=list(topics)), version, CreatePartitionsResponse
    )
    return [topic.error_code for topic in response.results], response.throttle_time_ms


def delete(cluster: TopicCluster, *names: str, version: int = 5) -> tuple[list[int], int]:
    response = cluster.run(
        delete_topics, DeleteTopicsRequest(topic_names=names), version, DeleteTopicsResponse
    )
    return [topic.error_code for topic in response.responses], response.throttle_time_ms


def spend(cluster: TopicCluster, partitions: int) -> None:
    assert create(cluster, new_topic("spent", partitions=partitions)) == ([NONE], 0)


def test_created_partitions_are_spent_topic_by_topic(cluster: TopicCluster) -> None:
    topics = [new_topic(name, partitions=6) for name in "abc"]
    assert create(cluster, *topics) == ([NONE, NONE, THROTTLED], 1_000)
    assert [topic.name for topic in cluster.metadata.topics] == ["a", "b"]
    cluster.now_ms += 1_000
    assert create(cluster, new_topic("c", partitions=50)) == ([NONE], 0)


def test_topics_that_fail_otherwise_spend_nothing(cluster: TopicCluster) -> None:
    cluster.create(new_topic("a"))
    for _ in range(5):
        assert create(cluster, new_topic("a", partitions=10), new_topic("bad/name"))[0] == [
            EXISTS,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        ]
    spend(cluster, 10)


def test_what_is_only_validated_is_spent_too(cluster: TopicCluster) -> None:
    assert create(cluster, new_topic("a", partitions=20), validate_only=True) == ([NONE], 0)
    assert create(cluster, new_topic("a"), validate_only=True) == ([THROTTLED], 9_000)
    assert not list(cluster.metadata.topics)


def test_added_partitions_are_spent(cluster: TopicCluster) -> None:
    cluster.create(new_topic("a"), new_topic("b"))
    more = [CreatePartitionsTopic(name, 21, None) for name in "ab"]
    assert grow(cluster, *more) == ([NONE, THROTTLED], 11_000)
    assert grow(cluster, CreatePartitionsTopic("a", 21, None)) == ([ErrorCode.INVALID_PARTITIONS], 0)


def test_the_partitions_of_deleted_topics_are_spent(cluster: TopicCluster) -> None:
    cluster.create(new_topic("a", partitions=5), new_topic("b", partitions=5))
    cluster.now_ms += 60_000
    spend(cluster, 10)
    assert delete(cluster, "a", "b") == ([NONE, THROTTLED], 4_000)
    assert delete(cluster, "never there") == ([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], 0)
    assert cluster.metadata.topics.by_name("b") is not None


@pytest.mark.parametrize("version", range(2, 8))
def test_old_versions_of_create_topics_are_told_to_wait(cluster: TopicCluster, version: int) -> None:
    codes, throttle_ms = create(cluster, *[new_topic(name, partitions=6) for name in "abc"], version=version)
    if version >= 6:
        assert (codes, throttle_ms) == ([NONE, NONE, THROTTLED], 1_000)
    else:
        assert (codes, throttle_ms) == ([NONE] * 3, 7_000)


@pytest.mark.parametrize("version", range(4))
def test_old_versions_of_create_partitions_are_told_to_wait(cluster: TopicCluster, version: int) -> None:
    cluster.create(new_topic("a"))
    spend(cluster, 10)
    result = grow(cluster, CreatePartitionsTopic("a", 3, None), version=version)
    assert result == (([NONE], 0) if version == 3 else ([NONE], 2_000))
    again = grow(cluster, CreatePartitionsTopic("a", 4, None), version=version)
    assert again == (([THROTTLED], 2_000) if version == 3 else ([NONE], 3_000))


@pytest.mark.parametrize("version", range(1, 6))
def test_old_versions_of_delete_topics_are_told_to_wait(cluster: TopicCluster, version: int) -> None:
    cluster.create(new_topic("a", partitions=4), new_topic("b", partitions=4))
    cluster.now_ms += 60_000
    spend(cluster, 12)
    codes, throttle_ms = delete(cluster, "a", "b", version=version)
    if version >= 5:
        assert (codes, throttle_ms) == ([THROTTLED] * 2, 1_000)
    else:
        assert (codes, throttle_ms) == ([NONE] * 2, 9_000)


def response_of_all_pieces(cluster: TopicCluster, result: Result) -> Message:
    (work,) = result.works
    while True:
        piece = work.decide(cluster.state, cluster.context())
        if not piece.is_trial:
            cluster.replay(piece.records)
        if piece.response is not None:
            return piece.response


def test_a_request_in_pieces_spends_once_though_a_trial_comes_first(
    cluster: TopicCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(create_topics, "TOPICS_PER_PIECE", 2)
    topics = [new_topic(f"t{number}", partitions=4) for number in range(5)]
    result = cluster.decide(create_topics, CreateTopicsRequest(topics=topics), 7)
    response = response_of_all_pieces(cluster, result)
    assert isinstance(response, CreateTopicsResponse)
    assert [topic.error_code for topic in response.topics] == [NONE, NONE, NONE, THROTTLED, THROTTLED]
    assert response.throttle_time_ms == 1_000
    assert len(list(cluster.metadata.topics)) == 3
