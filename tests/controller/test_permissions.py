"""Handlers filter the items of a request by permissions, as Kafka's ControllerApis and KafkaApis do."""

from __future__ import annotations

import pytest

from kraft_wire.controller.cluster import describe_cluster
from kraft_wire.controller.config_apis import describe_configs, incremental_alter_configs
from kraft_wire.controller.decision.context import refused
from kraft_wire.controller.reading import (
    consumer_fetch,
    consumer_list_offsets,
    consumer_metadata,
    refuse_produce,
)
from kraft_wire.controller.reading.consumer_fetch import ConsumerAnswer, LogView
from kraft_wire.controller.topics import create_partitions, create_topics, delete_topics
from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages import fetch_request as fetch
from kraft_wire.protocol.messages import list_offsets_request as list_offsets
from kraft_wire.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kraft_wire.protocol.messages.create_topics_request import CreateTopicsRequest
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_cluster_response import DescribeClusterResponse
from kraft_wire.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.protocol.messages.describe_configs_response import DescribeConfigsResponse
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kraft_wire.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraft_wire.protocol.messages.metadata_response import MetadataResponse
from kraft_wire.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.protocol.messages.produce_response import ProduceResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.security.authorization import CLUSTER, AclOperation, Resource, group_resource, topic_resource
from tests.controller.controller_harness import NODE_ID, uuid
from tests.controller.grants import Grant, Grants
from tests.controller.topic_cluster import TopicCluster, new_topic

OK = ErrorCode.NONE
NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
NO_CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

MAY_CREATE_ALL = AclOperation.CREATE, CLUSTER
MAY_DELETE_ALL = AclOperation.DELETE, CLUSTER


def may(operation: AclOperation, *topics: str) -> list[Grant]:
    return [(operation, topic_resource(name)) for name in topics]


@pytest.fixture
def cluster() -> TopicCluster:
    """One broker, and the topics "visible" and "hidden"."""
    cluster = TopicCluster(0)
    cluster.create_topic("visible", [0])
    cluster.create_topic("hidden", [0])
    return cluster


def test_without_an_authorizer_everything_is_permitted(cluster: TopicCluster) -> None:
    assert cluster.context().may(AclOperation.DELETE, topic_resource("hidden"))
    cluster.context().check_permission(AclOperation.ALTER, CLUSTER)


@pytest.mark.parametrize(
    ("resource", "code", "text"),
    [
        (topic_resource("t"), NO_TOPIC, "ALTER on topic t is not permitted"),
        (group_resource("g"), NO_GROUP, "ALTER on group g is not permitted"),
        (CLUSTER, NO_CLUSTER, "ALTER on the cluster is not permitted"),
    ],
)
def test_a_refusal_has_kafkas_code(
    cluster: TopicCluster, resource: Resource, code: ErrorCode, text: str
) -> None:
    cluster.authorizer = Grants()
    with pytest.raises(ApiError) as error:
        cluster.context().check_permission(AclOperation.ALTER, resource)
    assert (error.value.code, error.value.message) == (code, text)


# CreateTopics


def created(cluster: TopicCluster, *names: str, version: int = 7) -> dict[str, int]:
    results = cluster.create(*(new_topic(name) for name in names), version=version)
    return {result.name: result.error_code for result in results}


def test_a_topic_is_created_with_create_on_the_cluster_or_on_the_topic(cluster: TopicCluster) -> None:
    cluster.authorizer = Grants(*may(AclOperation.CREATE, "a"))
    assert created(cluster, "a", "b") == {"a": OK, "b": NO_TOPIC}
    assert cluster.metadata.topics.by_name("b") is None
    cluster.authorizer = Grants(MAY_CREATE_ALL)
    assert created(cluster, "b") == {"b": OK}


def test_a_client_without_create_does_not_learn_that_a_topic_exists(cluster: TopicCluster) -> None:
    cluster.authorizer = Grants()
    assert created(cluster, "hidden", "absent") == {"hidden": NO_TOPIC, "absent": NO_TOPIC}


def test_repeated_and_internal_names_are_invalid_before_permissions_count(cluster: TopicCluster) -> None:
    cluster.authorizer = Grants()
    invalid = ErrorCode.INVALID_REQUEST
    assert created(cluster, "a", "a", CLUSTER_METADATA) == {"a": invalid, CLUSTER_METADATA: invalid}


def test_only_permitted_topics_count_for_the_limit_of_partitions(cluster: TopicCluster) -> None:
    cluster.authorizer = Grants(*may(AclOperation.CREATE, "small"))
    results = cluster.create(new_topic("small"), new_topic("large", partitions=10_000))
    assert {result.name: result.error_code for result in results} == {"small": OK, "large": NO_TOPIC}


def test_the_configs_of_a_new_topic_need_describe_configs(cluster: TopicCluster) -> None:
    cluster.authorizer = Grants(MAY_CREATE_ALL, *may(AclOperation.DESCRIBE_CONFIGS, "a"))
    first, second = cluster.create(new_topic("a"), new_topic("b"))
    assert (first.topic_config_error_code, first.num_partitions, first.replication_factor) == (OK, 1, 1)
    assert first.configs
    assert (second.topic_config_error_code, second.num_partitions) == (NO_TOPIC, -1)
    assert (second.error_code, second.replication_factor, second.configs) == (OK, -1, [])
    assert second.topic_id
    (old,) = cluster.create(new_topic("c"), version=4)
    assert old.topic_config_error_code == OK


# DeleteTopics


def deleted(
    cluster: TopicCluster, *, names: tuple[str, ...] = (), ids: tuple[Uuid, ...] = ()
) -> set[tuple[str | None, Uuid, int]]:
    topics = [DeleteTopicState(name=name) for name in names]
    topics += [DeleteTopicState(name=None, topic_id=topic_id) for topic_id in ids]
    response = cluster.run(delete_topics, DeleteTopicsRequest(topics=topics), 6, DeleteTopicsResponse)
    return {(result.name, result.topic_id, result.error_code) for result in response.responses}


def id_of(cluster: TopicCluster, name: str) -> Uuid:
    topic = cluster.metadata.topics.by_name(name)
    assert topic is not None
    return topic.id


def test_delete_on_the_cluster_deletes_every_topic(cluster: TopicCluster) -> None:
    topic_id = id_of(cluster, "hidden")
    cluster.authorizer = Grants(MAY_DELETE_ALL)
    assert deleted(cluster, names=("hidden",)) == {("hidden", topic_id, OK)}


def test_without_describe_a_missing_name_looks_like_an_existing_one(cluster: TopicCluster) -> None:
    cluster.authorizer = Grants(*may(AclOperation.DESCRIBE, "visible", "gone"))
    assert deleted(cluster, names=("visible", "gone", "hidden", "absent")) == {
        ("visible", Uuid.ZERO, NO_TOPIC),
        ("gone", Uuid.ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("hidden", Uuid.ZERO, NO_TOPIC),
        ("absent", Uuid.ZERO, NO_TOPIC),
    }
    assert cluster.metadata.topics.by_name("hidden") is not None


def test_a_name_needs_describe_as_well_as_delete(cluster: TopicCluster) -> None:
    visible = id_of(cluster, "visible")
    cluster.authorizer = Grants(
        *may(AclOperation.DELETE, "visible", "hidden"), *may(AclOperation.DESCRIBE, "visible")
    )
    assert deleted(cluster, names=("visible", "hidden")) == {
        ("visible", visible, OK),
        ("hidden", Uuid.ZERO, NO_TOPIC),
    }


def test_without_describe_an_id_does_not_reveal_its_name(cluster: TopicCluster) -> None:
    visible, hidden = id_of(cluster, "visible"), id_of(cluster, "hidden")
    cluster.authorizer = Grants(*may(AclOperation.DESCRIBE, "visible"))
    assert deleted(cluster, ids=(visible, hidden, uuid(99))) == {
        ("visible", visible, NO_TOPIC),
        (None, hidden, NO_TOPIC),
        (None, uuid(99), ErrorCode.UNKNOWN_TOPIC_ID),
    }
    cluster.authorizer = Grants(*may(AclOperation.DELETE, "hidden"))
    assert deleted(cluster, ids=(hidden,)) == {("hidden", hidden, OK)}


def test_without_permission_a_name_and_its_id_are_not_compared(cluster: TopicCluster) -> None:
    hidden = id_of(cluster, "hidden")
    cluster.authorizer = Grants()
    assert deleted(cluster, names=("hidden",), ids=(hidden,)) == {
        ("hidden", Uuid.ZERO, NO_TOPIC),
        (None, hidden, NO_TOPIC),
    }


def test_the_place_in_the_response_does_not_reveal_what_exists(cluster: TopicCluster) -> None:
    cluster.authorizer = Grants()
    names = ("absent", "hidden", "missing", "visible")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names])
    response = cluster.run(delete_topics, request, 6, DeleteTopicsResponse)
    assert [result.name for result in response.responses] == list(names)


# CreatePartitions


def test_partitions_are_added_with_alter_on_the_topic(cluster: TopicCluster) -> None:
    cluster.authorizer = Grants(*may(AclOperation.ALTER, "visible"))
    topics = [CreatePartitionsTopic(name, 2, None) for name in ("visible", "hidden", "absent")]
    topics += [CreatePartitionsTopic("twice", 2, None)] * 2
    request = CreatePartitionsRequest(topics=topics)
    response = cluster.run(create_partitions, request, 3, CreatePartitionsResponse)
    assert [(result.name, result.error_code) for result in response.results] == [
        ("twice", ErrorCode.INVALID_REQUEST),
        ("hidden", NO_TOPIC),
        ("absent", NO_TOPIC),
        ("visible", OK),
    ]
    assert cluster.metadata.partitions.get(id_of(cluster, "hidden"), 1) is None


def test_only_permitted_topics_count_for_the_limit_of_new_partitions(cluster: TopicCluster) -> None:
    cluster.authorizer = Grants(*may(AclOperation.ALTER, "visible"))
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic("visible", 2, None), CreatePartitionsTopic("hidden", 10_002, None)]
    )
    response = cluster.run(create_partitions, request, 3, CreatePartitionsResponse)
    assert {result.name: result.error_code for result in response.results} == {
        "visible": OK,
        "hidden": NO_TOPIC,
    }


# Configurations


TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def described(cluster: TopicCluster, *resources: tuple[int, str]) -> list[tuple[int, str, int]]:
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name) for kind, name in resources])
    response = cluster.run(describe_configs, request, 4, DescribeConfigsResponse)
    return [(r.resource_type, r.resource_name, r.error_code) for r in response.results]


def test_each_type_of_resource_has_its_own_refusal_at_the_end_of_the_response(cluster: TopicCluster) -> None:
    cluster.authorizer = Grants(*may(AclOperation.DESCRIBE_CONFIGS, "visible"))
    me = str(NODE_ID)
    resources = [
        (TOPIC, "hidden"), (TOPIC, "absent"), (BROKER, me), (BROKER_LOGGER, me), (CLIENT_METRICS, "m"),
        (GROUP, "g"), (TOPIC, "visible"),
    ]  # fmt: skip
    assert described(cluster, *resources) == [
        (TOPIC, "visible", OK),
        (TOPIC, "hidden", NO_TOPIC),
        (TOPIC, "absent", NO_TOPIC),
        (BROKER, me, NO_CLUSTER),
        (BROKER_LOGGER, me, NO_CLUSTER),
        (CLIENT_METRICS, "m", NO_CLUSTER),
        (GROUP, "g", NO_GROUP),
    ]


def test_describe_configs_on_the_cluster_is_for_brokers_and_client_metrics(cluster: TopicCluster) -> None:
    cluster.authorizer = Grants(
        (AclOperation.DESCRIBE_CONFIGS, CLUSTER), (AclOperation.DESCRIBE_CONFIGS, group_resource("g"))
    )
    resources = [(BROKER, ""), (CLIENT_METRICS, "m"), (GROUP, "g"), (TOPIC, "visible")]
    assert [code for _, _, code in described(cluster, *resources)] == [OK, OK, OK, NO_TOPIC]


def altered(cluster: TopicCluster, *resources: tuple[int, str, str, str]) -> list[int]:
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(kind, name, [AlterableConfig(name=key, config_operation=0, value=value)])
            for kind, name, key, value in resources
        ]
    )
    response = cluster.run(incremental_alter_configs, request, 1, IncrementalAlterConfigsResponse)
    return [result.error_code for result in response.responses]


CHANGES = (
    (TOPIC, "visible", "retention.ms", "5"),
    (TOPIC, "absent", "retention.ms", "5"),
    (GROUP, "g", "consumer.session.timeout.ms", "50000"),
    (BROKER, "", "log.retention.ms", "5"),
    (CLIENT_METRICS, "m", "interval.ms", "1000"),
    (BROKER_LOGGER, str(NODE_ID), "root", "INFO"),
)


def test_each_type_of_resource_has_its_own_refusal_for_changes(cluster: TopicCluster) -> None:
    cluster.authorizer = Grants()
    assert altered(cluster, *CHANGES) == [NO_TOPIC, NO_TOPIC, NO_GROUP, NO_CLUSTER, NO_CLUSTER, NO_CLUSTER]
    assert cluster.metadata.configs.get(TOPIC, "visible") == {}


def test_changes_need_alter_configs_and_loggers_cluster_action(cluster: TopicCluster) -> None:
    cluster.authorizer = Grants(
        *may(AclOperation.ALTER_CONFIGS, "visible"), (AclOperation.ALTER_CONFIGS, group_resource("g"))
    )
    assert altered(cluster, *CHANGES) == [OK, NO_TOPIC, OK, NO_CLUSTER, NO_CLUSTER, NO_CLUSTER]
    cluster.authorizer = Grants((AclOperation.ALTER_CONFIGS, CLUSTER))
    assert altered(cluster, *CHANGES) == [NO_TOPIC, NO_TOPIC, NO_GROUP, OK, OK, NO_CLUSTER]
    cluster.authorizer = Grants((AclOperation.CLUSTER_ACTION, CLUSTER))
    assert altered(cluster, CHANGES[-1]) == [ErrorCode.INVALID_CONFIG]


def test_repeated_and_unknown_resources_are_invalid_before_permissions_count(cluster: TopicCluster) -> None:
    cluster.authorizer = Grants()
    assert altered(cluster, CHANGES[0], CHANGES[0]) == [ErrorCode.INVALID_REQUEST]
    assert altered(cluster, (3, "x", "a", "b")) == [ErrorCode.UNSUPPORTED_VERSION]


# DescribeCluster


def test_a_client_learns_its_own_operations_on_the_cluster(cluster: TopicCluster) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True, endpoint_type=2)

    def operations() -> int:
        response = cluster.run(describe_cluster, request, 2, DescribeClusterResponse)
        return response.cluster_authorized_operations

    everything = operations()
    assert everything == sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
    cluster.authorizer = Grants((AclOperation.DESCRIBE, CLUSTER), (AclOperation.ALTER, CLUSTER))
    assert operations() == 1 << 7 | 1 << 8
    cluster.authorizer = Grants((AclOperation.ALTER, CLUSTER))
    assert operations() == 0


# Consumers of the metadata log


def topics_of(cluster: TopicCluster, *asked: MetadataRequestTopic) -> list[tuple[str | None, Uuid, int]]:
    request = MetadataRequest(topics=list(asked) or None)
    response = cluster.run(consumer_metadata, request, 12, MetadataResponse)
    return [(topic.name, topic.topic_id, topic.error_code) for topic in response.topics]


def test_metadata_hides_topics_without_describe(cluster: TopicCluster) -> None:
    cluster.authorizer = Grants(*may(AclOperation.DESCRIBE, "seen"))
    log_id = CLUSTER_METADATA_TOPIC_ID
    assert topics_of(cluster) == []
    assert topics_of(
        cluster,
        MetadataRequestTopic(name=CLUSTER_METADATA),
        MetadataRequestTopic(name="seen"),
        MetadataRequestTopic(name="unseen"),
        MetadataRequestTopic(name="not/valid"),
        MetadataRequestTopic(name=None, topic_id=log_id),
        MetadataRequestTopic(name=None, topic_id=uuid(9)),
    ) == [
        (CLUSTER_METADATA, Uuid.ZERO, NO_TOPIC),
        ("seen", Uuid.ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("unseen", Uuid.ZERO, NO_TOPIC),
        ("not/valid", Uuid.ZERO, NO_TOPIC),
        (None, log_id, NO_TOPIC),
        (None, uuid(9), ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_produce_is_refused_with_the_missing_permission_first(cluster: TopicCluster) -> None:
    def codes(version: int, *topics: tuple[str, Uuid]) -> list[int]:
        data = [TopicProduceData(name, topic_id, [PartitionProduceData(0, b"")]) for name, topic_id in topics]
        request = ProduceRequest(acks=1, topic_data=data)
        response = cluster.run(refuse_produce, request, version, ProduceResponse)
        return [topic.partition_responses[0].error_code for topic in response.responses]

    cluster.authorizer = Grants(*may(AclOperation.WRITE, "seen"))
    log, seen, unseen = (CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID), ("seen", uuid(8)), ("unseen", uuid(9))
    assert codes(12, log, seen, unseen) == [NO_TOPIC, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_TOPIC]
    unknown_id = ErrorCode.UNKNOWN_TOPIC_ID
    assert codes(13, log, seen, unseen) == [NO_TOPIC, unknown_id, unknown_id]


VIEW = LogView(NODE_ID, NODE_ID, 5, 10, 100, frozenset({CLUSTER_METADATA, "unseen"}))


@pytest.mark.parametrize("version", [12, 13])
def test_a_refused_fetch_gets_no_records(version: int) -> None:
    partition = fetch.FetchPartition(partition=0, fetch_offset=10, partition_max_bytes=1000)
    topics = [
        fetch.FetchTopic(CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID, [partition]),
        fetch.FetchTopic("seen", uuid(8), [partition]),
        fetch.FetchTopic("unseen", uuid(9), [partition]),
    ]
    request = fetch.FetchRequest(replica_id=-1, max_wait_ms=500, min_bytes=1, topics=topics)
    decision = consumer_fetch.decide(request, version, VIEW)
    assert isinstance(decision, ConsumerAnswer)
    answers = [topic.partitions[0] for topic in decision.response.responses]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if version < 13 else ErrorCode.UNKNOWN_TOPIC_ID
    assert [answer.error_code for answer in answers] == [
        NO_TOPIC,
        unknown,
        NO_TOPIC if version < 13 else unknown,
    ]
    assert {answer.high_watermark for answer in answers} == {-1}


def test_refused_offsets_come_last_and_no_timestamp_is_looked_up() -> None:
    partitions = [list_offsets.ListOffsetsPartition(partition_index=0, timestamp=77)]
    topics = [
        list_offsets.ListOffsetsTopic(name, partitions) for name in ("unseen", CLUSTER_METADATA, "seen")
    ]
    request = list_offsets.ListOffsetsRequest(topics=topics)
    assert consumer_list_offsets.timestamps_wanted(request, VIEW) == []
    response = consumer_list_offsets.respond(request, 7, VIEW)
    assert [(topic.name, topic.partitions[0].error_code) for topic in response.topics] == [
        ("seen", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("unseen", NO_TOPIC),
        (CLUSTER_METADATA, NO_TOPIC),
    ]
    assert {topic.partitions[0].offset for topic in response.topics} == {-1}


def test_a_refusal_does_not_name_what_is_hidden(cluster: TopicCluster) -> None:
    hidden = id_of(cluster, "hidden")
    cluster.authorizer = Grants()
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=hidden)])
    (result,) = cluster.run(delete_topics, request, 6, DeleteTopicsResponse).responses
    assert result.error_message == refused(AclOperation.DELETE, topic_resource(str(hidden))).message
    assert "hidden" not in (result.error_message or "")


def test_create_topics_is_not_asked_about_what_it_rejects_anyway(cluster: TopicCluster) -> None:
    grants = cluster.authorizer = Grants()
    request = CreateTopicsRequest(topics=[new_topic(CLUSTER_METADATA), new_topic("a")])
    result = cluster.decide(create_topics, request, 7)
    assert not result.records
    assert grants.asked == [MAY_CREATE_ALL, (AclOperation.CREATE, topic_resource("a"))]
