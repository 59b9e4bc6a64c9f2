"""CreateTopics: the scenarios of Kafka's ReplicationControlManagerTest and ControllerApis' checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kraft_wire.controller.decision.context import Result
from kraft_wire.controller.decision.sessions import SessionEnded
from kraft_wire.controller.topics import create_topics
from kraft_wire.controller.topics.placement import ReplicaPlacer
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.partitions.partition import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.uuid import Uuid
from tests.controller.controller_harness import LATEST, directory, failure
from tests.controller.topic_cluster import (
    BEFORE_DIRECTORIES,
    BEFORE_ELR,
    TopicCluster,
    assigned_topic,
    new_topic,
)


def errors(cluster: TopicCluster, *topics: CreatableTopic) -> dict[str, ErrorCode]:
    """Return the error of each topic. There must be no records."""
    result = decide(cluster, *topics)
    assert isinstance(result.response, CreateTopicsResponse)
    assert not result.records
    return {topic.name: ErrorCode(topic.error_code) for topic in result.response.topics}


def decide(cluster: TopicCluster, *topics: CreatableTopic, version: int = 7) -> Result:
    return cluster.decide(create_topics, CreateTopicsRequest(topics=list(topics)), version)


def record_names(result: Result) -> list[str]:
    return [record.NAME for record, _ in result.records]


def test_a_topic_is_created_with_the_defaults_of_the_controller() -> None:
    cluster = TopicCluster(0, 1, 2, num_partitions=2, default_replication_factor=3)
    (result,) = cluster.create(new_topic("foo", partitions=-1, factor=-1))
    assert (result.error_code, result.error_message) == (0, None)
    assert (result.num_partitions, result.replication_factor) == (2, 3)
    topic = cluster.metadata.topics.by_name("foo")
    assert topic is not None
    assert (topic.id, topic.partition_count) == (result.topic_id, 2)
    for index in range(2):
        partition = cluster.partition(topic.id, index)
        assert set(partition.replicas) == {0, 1, 2}
        assert partition.isr == partition.replicas
        assert partition.leader == partition.replicas[0]
        assert partition.directories == tuple(map(directory, partition.replicas))
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
        assert (partition.elr, partition.last_known_elr, partition.leader_recovery_state) == ((), (), 0)


def test_a_topic_that_exists_is_not_created_again() -> None:
    cluster = TopicCluster(0)
    cluster.create(new_topic("foo"))
    assert errors(cluster, new_topic("foo")) == {"foo": ErrorCode.TOPIC_ALREADY_EXISTS}


def test_one_failure_does_not_cost_the_others() -> None:
    cluster = TopicCluster(0)
    results = cluster.create(new_topic("a"), new_topic("b", factor=2), new_topic("c"))
    assert [ErrorCode(result.error_code) for result in results] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.NONE,
    ]
    assert {topic.name for topic in cluster.metadata.topics} == {"a", "c"}


def test_the_decision_is_atomic_and_in_kafkas_order() -> None:
    topic = new_topic("foo", partitions=2)
    topic.configs = [
        CreatableTopicConfig("retention.ms", "1"),
        CreatableTopicConfig("cleanup.policy", "compact"),
    ]
    result = decide(TopicCluster(0), topic, new_topic("bar"))
    assert result.atomic
    assert record_names(result) == [
        "TopicRecord",
        "ConfigRecord",
        "ConfigRecord",
        "PartitionRecord",
        "PartitionRecord",
        "TopicRecord",
        "PartitionRecord",
    ]


@pytest.mark.parametrize(
    ("level", "version"), [(BEFORE_DIRECTORIES, 0), (BEFORE_ELR, 1), (23, 2), (LATEST, 2)]
)
def test_partition_records_have_the_version_of_the_finalized_level(level: int, version: int) -> None:
    result = decide(TopicCluster(0, level=level), new_topic("foo"))
    assert [number for _, number in result.records] == [0, version]


def test_the_leader_is_the_first_active_replica_and_fenced_ones_are_not_in_sync() -> None:
    cluster = TopicCluster(0, 1)
    cluster.register(2)
    (result,) = cluster.create(new_topic("foo", partitions=6, factor=3))
    for partition in cluster.metadata.partitions.of_topic(result.topic_id):
        assert partition.replicas[2] == 2
        assert partition.isr == partition.replicas[:2]
        assert partition.leader == partition.replicas[0]


def test_a_broker_that_has_stopped_gets_replicas_as_a_fenced_one() -> None:
    """In a rolling restart topics can be created, although the registration still says that it shuts down."""
    cluster = TopicCluster(0, 1, 2)
    cluster.begin_shutdown(1)
    cluster.fence(1)
    cluster.state.sessions.apply([SessionEnded(1)])
    assert cluster.metadata.brokers[1].in_controlled_shutdown
    (result,) = cluster.create(new_topic("foo", partitions=6, factor=3))
    assert result.error_code == ErrorCode.NONE
    for partition in cluster.metadata.partitions.of_topic(result.topic_id):
        assert set(partition.replicas) == {0, 1, 2}
        assert set(partition.isr) == {0, 2} and partition.leader != 1


def test_brokers_that_shut_down_get_no_replicas() -> None:
    cluster = TopicCluster(0, 1, 2)
    cluster.begin_shutdown(1)
    (result,) = cluster.create(new_topic("foo", partitions=6, factor=2))
    for partition in cluster.metadata.partitions.of_topic(result.topic_id):
        assert set(partition.replicas) == {0, 2}
    assert errors(cluster, new_topic("bar", factor=3)) == {"bar": ErrorCode.INVALID_REPLICATION_FACTOR}


def test_brokers_with_all_directories_cordoned_get_no_replicas() -> None:
    cluster = TopicCluster(0, 1)
    cluster.cordon(1)
    assert cluster.create(new_topic("foo"))[0].error_code == ErrorCode.NONE
    assert errors(cluster, new_topic("bar", factor=2)) == {"bar": ErrorCode.INVALID_REPLICATION_FACTOR}
    assert errors(cluster, assigned_topic("baz", {0: [0, 1]})) == {
        "baz": ErrorCode.INVALID_REPLICA_ASSIGNMENT
    }


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (new_topic("foo", factor=3), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic("foo", factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic("foo", factor=-2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic("foo", partitions=0), ErrorCode.INVALID_PARTITIONS),
        (new_topic("foo", partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (new_topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_created(topic: CreatableTopic, code: ErrorCode) -> None:
    assert errors(TopicCluster(0, 1), topic) == {topic.name: code}


def test_without_active_brokers_nothing_is_created() -> None:
    cluster = TopicCluster()
    assert errors(cluster, new_topic("foo")) == {"foo": ErrorCode.INVALID_REPLICATION_FACTOR}
    cluster.register(0)
    assert errors(cluster, new_topic("foo")) == {"foo": ErrorCode.INVALID_REPLICATION_FACTOR}
    cluster.add_brokers(1)
    cluster.begin_shutdown(1)
    assert errors(cluster, new_topic("foo")) == {"foo": ErrorCode.INVALID_REPLICATION_FACTOR}
    assert errors(cluster, assigned_topic("foo", {0: [1]})) == {"foo": ErrorCode.INVALID_REPLICA_ASSIGNMENT}


@pytest.mark.parametrize(
    ("old", "new"), [("foo.bar", "foo_bar"), ("foo_bar", "foo.bar"), ("a.b_c.d", "a_b.c.d")]
)
def test_names_that_would_share_a_metric_collide(old: str, new: str) -> None:
    cluster = TopicCluster(0)
    cluster.create(new_topic(old))
    (result,) = cluster.create(new_topic(new))
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert old in (result.error_message or "")
    assert errors(cluster, new_topic(old)) == {old: ErrorCode.TOPIC_ALREADY_EXISTS}


def test_a_topic_that_is_asked_for_twice_is_not_created() -> None:
    cluster = TopicCluster(0)
    results = cluster.create(new_topic("twice"), new_topic("once"), new_topic("twice", partitions=3))
    assert [(result.name, ErrorCode(result.error_code)) for result in results] == [
        ("once", ErrorCode.NONE),
        ("twice", ErrorCode.INVALID_REQUEST),
    ]
    assert [topic.name for topic in cluster.metadata.topics] == ["once"]


# Assignments


def test_a_manual_assignment_is_taken_as_it_is() -> None:
    cluster = TopicCluster(0, 1, 2)
    cluster.fence(2)
    topic_id = cluster.create_topic("foo", [2, 0, 1], [1, 0, 2])
    assert cluster.partition(topic_id, 0).replicas == (2, 0, 1)
    assert cluster.leader_and_isr(topic_id, 0) == (0, (0, 1))
    assert cluster.leader_and_isr(topic_id, 1) == (1, (1, 0))


@pytest.mark.parametrize(
    ("assignments", "problem"),
    [
        ({0: [0, 1], 1: [0]}, "has 1 replicas; other partitions of the topic have 2"),
        ({0: []}, "names no broker"),
        ({0: [0, 7]}, "names broker 7, which is not registered"),
        ({0: [0, 0]}, "more than once"),
        ({0: [0] * 4}, "the assignment [0, 0, 0, 0] of partition 0 names 4 brokers, and 3 are registered"),
        ({0: [0] * 300_000}, "0, 0, ...] of partition 0 names 300000 brokers, and 3 are registered"),
        ({0: [2]}, "fenced or shutting down"),
        ({1: [0]}, "do not have the numbers 0 to"),
        ({0: [0], 2: [0]}, "do not have the numbers 0 to"),
        ({-1: [0], 0: [0]}, "do not have the numbers 0 to"),
    ],
)
def test_bad_assignments_are_told_why(assignments: Mapping[int, Sequence[int]], problem: str) -> None:
    cluster = TopicCluster(0, 1)
    cluster.register(2)
    (result,) = cluster.create(assigned_topic("foo", assignments))
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert problem in (result.error_message or "")
    assert len(cluster.metadata.topics) == 0


def test_a_partition_that_is_assigned_twice_is_refused() -> None:
    topic = assigned_topic("foo", {0: [0]})
    topic.assignments = topic.assignments * 2
    assert errors(TopicCluster(0), topic) == {"foo": ErrorCode.INVALID_REPLICA_ASSIGNMENT}


@pytest.mark.parametrize(("partitions", "factor"), [(1, -1), (-1, 1), (1, 1)])
def test_assignments_exclude_counts(partitions: int, factor: int) -> None:
    topic = assigned_topic("foo", {0: [0]})
    topic.num_partitions, topic.replication_factor = partitions, factor
    assert errors(TopicCluster(0), topic) == {"foo": ErrorCode.INVALID_REQUEST}


# Directories


def test_a_broker_with_several_directories_has_not_chosen_one_yet() -> None:
    cluster = TopicCluster(0)
    cluster.register(1, log_dirs=[directory(1, 0), directory(1, 1)])
    cluster.unfence(1)
    topic_id = cluster.create_topic("foo", [0, 1])
    assert cluster.partition(topic_id).directories == (directory(0), DIRECTORY_UNASSIGNED)


def test_there_are_no_directories_before_their_level() -> None:
    cluster = TopicCluster(0, level=BEFORE_DIRECTORIES)
    topic_id = cluster.create_topic("foo", [0])
    assert cluster.partition(topic_id).directories == (DIRECTORY_MIGRATING,)


# Configs


def topic_with_configs(**configs: str | None) -> CreatableTopic:
    topic = new_topic("foo")
    topic.configs = [CreatableTopicConfig(name.replace("_", "."), value) for name, value in configs.items()]
    return topic


def test_configs_are_written_and_echoed() -> None:
    cluster = TopicCluster(0, static_configs={"log.segment.bytes": "12345678"})
    cluster.set_config(ResourceType.BROKER, "", "log.retention.ms", "777")
    (result,) = cluster.create(topic_with_configs(cleanup_policy="compact"))
    assert cluster.metadata.configs.get(ResourceType.TOPIC, "foo") == {"cleanup.policy": "compact"}
    echo = {config.name: config for config in result.configs or ()}
    assert list(echo) == sorted(echo)
    assert (echo["cleanup.policy"].value, echo["cleanup.policy"].config_source) == ("compact", 1)
    assert (echo["retention.ms"].value, echo["retention.ms"].config_source) == ("777", 3)
    assert (echo["segment.bytes"].value, echo["segment.bytes"].config_source) == ("12345678", 4)
    assert (echo["max.message.bytes"].value, echo["max.message.bytes"].config_source) == ("1048588", 5)
    assert not any(config.read_only or config.is_sensitive for config in echo.values())
    assert result.topic_config_error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    "configs",
    [
        {"cleanup_policy": "nonsense"},
        {"no_such_key": "1"},
        {"retention_ms": None},
        {"min_compaction_lag_ms": "5", "max_compaction_lag_ms": "4"},
    ],
)
def test_bad_configs_cost_the_topic(configs: dict[str, str | None]) -> None:
    assert errors(TopicCluster(0), topic_with_configs(**configs)) == {"foo": ErrorCode.INVALID_CONFIG}


# Whole requests


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version(version: int) -> None:
    cluster = TopicCluster(0)
    topic = new_topic("foo") if version >= 4 else new_topic("foo", partitions=1, factor=1)
    (result,) = cluster.create(topic, version=version)
    created = cluster.metadata.topics.by_name("foo")
    assert created is not None
    assert result.topic_id == (created.id if version >= 7 else Uuid.ZERO)
    assert bool(result.configs) == (version >= 5)
    assert result.num_partitions == (1 if version >= 5 else -1)


@pytest.mark.parametrize(("elr", "expected"), [(True, 1), (False, 0)])
def test_min_isr_of_a_new_topic_clears_eligible_leader_replicas_as_in_java(elr: bool, expected: int) -> None:
    cluster = TopicCluster(0, elr=elr)
    configs = [CreatableTopicConfig("min.insync.replicas", "1"), CreatableTopicConfig("flush.ms", "5")]
    with_minimum = new_topic("foo")
    with_minimum.configs = configs
    without = new_topic("bar")
    without.configs = configs[1:]
    records = [record for record, _ in decide(cluster, without, with_minimum).records]
    kinds = [type(record).__name__ for record in records]
    cleared = ["ClearElrRecord"] * expected
    assert kinds[:3] == ["TopicRecord", "ConfigRecord", "PartitionRecord"]
    assert kinds[3:] == ["TopicRecord", "ConfigRecord", "ConfigRecord", *cleared, "PartitionRecord"]
    assert [r for r in records if isinstance(r, ClearElrRecord)] == [ClearElrRecord("foo")] * expected


def test_validate_only_answers_without_records() -> None:
    cluster = TopicCluster(0)
    results = cluster.create(new_topic("foo", partitions=5), new_topic("bar", factor=9), validate_only=True)
    assert [ErrorCode(result.error_code) for result in results] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REPLICATION_FACTOR,
    ]
    assert results[0].num_partitions == 5
    assert len(cluster.metadata.topics) == 0


@pytest.mark.parametrize(
    "topics",
    [
        [new_topic("foo", partitions=5000), new_topic("bar", partitions=5000), new_topic("baz")],
        [new_topic("foo", partitions=2**31 - 1)],
        [new_topic("foo", partitions=-1), assigned_topic("bar", {0: [0], 1: [0]})],
    ],
)
def test_more_than_ten_thousand_partitions_are_refused_as_a_whole(topics: list[CreatableTopic]) -> None:
    cluster = TopicCluster(0, num_partitions=9999)
    with pytest.raises(ApiError) as refused:
        decide(cluster, *topics)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    response = failure(
        CreateTopicsResponse, CreateTopicsRequest(topics=topics), 7, refused.value.code, refused.value.message
    )
    assert [topic.name for topic in response.topics] == [topic.name for topic in topics]
    assert {topic.error_code for topic in response.topics} == {ErrorCode.POLICY_VIOLATION}


def test_an_empty_request_makes_nothing() -> None:
    assert decide(TopicCluster(0)) == Result(CreateTopicsResponse(), [])


def test_the_same_seed_makes_the_same_topics() -> None:
    topics = [new_topic(name, partitions=7, factor=3) for name in ("a", "b", "c")]
    first, second = (decide(TopicCluster(0, 1, 2, 3), *topics) for _ in range(2))
    assert first.records == second.records


@pytest.mark.parametrize(("partitions", "factor"), [(10_000, 1), (9_000, 50)])
def test_partitions_that_fit_into_no_batch_are_refused_before_they_are_placed(
    partitions: int, factor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch has up to 10,000 records and 8 MiB. Placing hundreds of thousands of replicas takes seconds."""
    monkeypatch.setattr(ReplicaPlacer, "place", never)
    cluster = TopicCluster(*range(50))
    with pytest.raises(ApiError) as refused:
        decide(cluster, new_topic("foo", partitions=partitions, factor=factor))
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert "split the request" in refused.value.message
    (result,) = cluster.create(new_topic("bar", partitions=partitions, factor=51))
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def never(*given: object) -> None:
    raise AssertionError("nothing is placed")
