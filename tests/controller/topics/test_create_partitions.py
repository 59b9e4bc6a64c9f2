"""CreatePartitions: the scenarios of Kafka's ReplicationControlManagerTest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kraft_wire.controller.decision.context import Result
from kraft_wire.controller.topics import create_partitions
from kraft_wire.controller.topics.placement import ReplicaPlacer
from kraft_wire.metadata.partitions.partition import DIRECTORY_UNASSIGNED
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.protocol.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from tests.controller.controller_harness import directory, failure
from tests.controller.topic_cluster import TopicCluster, new_topic


def grow(name: str, count: int, *assignments: Sequence[int]) -> CreatePartitionsTopic:
    return CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=[CreatePartitionsAssignment(tuple(ids)) for ids in assignments] or None,
    )


def create(
    cluster: TopicCluster, *topics: CreatePartitionsTopic, version: int = 3, validate_only: bool = False
) -> list[CreatePartitionsTopicResult]:
    request = CreatePartitionsRequest(topics=list(topics), validate_only=validate_only)
    return cluster.run(create_partitions, request, version, CreatePartitionsResponse).results


def codes(results: Sequence[CreatePartitionsTopicResult]) -> dict[str, ErrorCode]:
    return {result.name: ErrorCode(result.error_code) for result in results}


@pytest.mark.parametrize("version", range(4))
def test_topics_grow_where_the_count_is_an_increase(version: int) -> None:
    cluster = TopicCluster(0, 1, 3)
    cluster.create(
        new_topic("foo", partitions=3, factor=2),
        new_topic("bar", partitions=4),
        new_topic("quux", partitions=2),
    )
    results = create(
        cluster,
        grow("foo", 5),
        grow("bar", 3),
        grow("baz", 3),
        grow("quux", 2),
        grow("bar2", -1),
        version=version,
    )
    assert codes(results) == {
        "foo": ErrorCode.NONE,
        "bar": ErrorCode.INVALID_PARTITIONS,
        "baz": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "quux": ErrorCode.INVALID_PARTITIONS,
        "bar2": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert results[0].error_message is None
    foo = cluster.metadata.topics.by_name("foo")
    assert foo is not None
    assert foo.partition_count == 5
    for partition in cluster.metadata.partitions.of_topic(foo.id):
        assert len(partition.replicas) == 2
        assert partition.isr == partition.replicas


def test_new_partitions_may_be_assigned() -> None:
    cluster = TopicCluster(0, 3)
    cluster.register(1, log_dirs=[directory(1, 0), directory(1, 1)])
    cluster.unfence(1)
    topic_id = cluster.create_topic("foo", [0, 1])
    assert codes(create(cluster, grow("foo", 3, [1, 3], [3, 0]))) == {"foo": ErrorCode.NONE}
    assert cluster.leader_and_isr(topic_id, 1) == (1, (1, 3))
    assert cluster.partition(topic_id, 1).directories == (DIRECTORY_UNASSIGNED, directory(3))
    assert cluster.leader_and_isr(topic_id, 2) == (3, (3, 0))


@pytest.mark.parametrize(
    ("count", "assignments", "problem"),
    [
        (2, [[1]], "has 1 replicas; other partitions of the topic have 2"),
        (3, [[1, 0]], "the request adds 2 partitions, but has 1 assignments"),
        (2, [[1, 0], [0, 1]], "the request adds 1 partitions, but has 2 assignments"),
        (2, [[2, 0]], "broker 2, which is not registered"),
        (2, [[0, 0]], "more than once"),
        (2, [[3, 4]], "fenced or shutting down"),
    ],
)
def test_bad_assignments_are_told_why(count: int, assignments: list[list[int]], problem: str) -> None:
    cluster = TopicCluster(0, 1, 4)
    cluster.register(3)
    cluster.create_topic("foo", [0, 1])
    cluster.begin_shutdown(4)
    (result,) = create(cluster, grow("foo", count, *assignments))
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert problem in (result.error_message or "")


def test_an_empty_list_of_assignments_is_not_none() -> None:
    cluster = TopicCluster(0)
    cluster.create_topic("foo", [0])
    topic = CreatePartitionsTopic(name="foo", count=2, assignments=[])
    assert codes(create(cluster, topic)) == {"foo": ErrorCode.INVALID_REPLICA_ASSIGNMENT}


def test_without_active_brokers_nothing_is_created() -> None:
    cluster = TopicCluster(0, 1)
    cluster.create_topic("foo", [0, 1])
    cluster.fence(1)
    cluster.begin_shutdown(0)
    assert codes(create(cluster, grow("foo", 2))) == {"foo": ErrorCode.INVALID_REPLICATION_FACTOR}


def test_fenced_brokers_are_not_in_sync() -> None:
    cluster = TopicCluster(0, 1, 2)
    topic_id = cluster.create_topic("foo", [0, 1, 2])
    cluster.fence(2)
    create(cluster, grow("foo", 2))
    partition = cluster.partition(topic_id, 1)
    assert partition.replicas[2] == 2
    assert partition.isr == partition.replicas[:2]


def test_a_topic_that_is_named_twice_does_not_grow() -> None:
    cluster = TopicCluster(0)
    cluster.create(new_topic("foo"), new_topic("bar"))
    results = create(cluster, grow("foo", 2), grow("bar", 2), grow("foo", 3))
    assert codes(results) == {"foo": ErrorCode.INVALID_REQUEST, "bar": ErrorCode.NONE}
    assert len(results) == 2


def test_validate_only_answers_without_records() -> None:
    cluster = TopicCluster(0)
    topic_id = cluster.create_topic("foo", [0])
    assert codes(create(cluster, grow("foo", 2), validate_only=True)) == {"foo": ErrorCode.NONE}
    assert cluster.metadata.partitions.get(topic_id, 1) is None


def decide(cluster: TopicCluster, *topics: CreatePartitionsTopic) -> Result:
    return cluster.decide(create_partitions, CreatePartitionsRequest(topics=list(topics)), 3)


def test_more_than_ten_thousand_additional_partitions_are_refused_as_a_whole() -> None:
    cluster = TopicCluster(0)
    cluster.create(new_topic("foo", partitions=10), new_topic("bar"))
    assert len(decide(cluster, grow("foo", 10_009), grow("bar", 2), grow("baz", 99_999)).records) == 10_000
    with pytest.raises(ApiError) as refused:
        decide(cluster, grow("foo", 10_009), grow("bar", 3))
    assert refused.value.code is ErrorCode.POLICY_VIOLATION


def test_the_decision_is_atomic() -> None:
    cluster = TopicCluster(0)
    cluster.create_topic("foo", [0])
    assert decide(cluster, grow("foo", 2)).atomic


def test_an_error_of_the_whole_request_is_told_for_each_topic() -> None:
    request = CreatePartitionsRequest(topics=[grow("a", 1), grow("b", 1)])
    response = failure(CreatePartitionsResponse, request, 3, ErrorCode.NOT_CONTROLLER, "not here")
    assert codes(response.results) == {"a": ErrorCode.NOT_CONTROLLER, "b": ErrorCode.NOT_CONTROLLER}


def test_partitions_that_fit_into_no_batch_are_refused_before_they_are_placed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = TopicCluster(*range(50))
    cluster.create(new_topic("foo", factor=50))

    def never(*given: object) -> None:
        raise AssertionError("nothing is placed")

    monkeypatch.setattr(ReplicaPlacer, "place", never)
    with pytest.raises(ApiError) as refused:
        decide(cluster, grow("foo", 9_000))
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
