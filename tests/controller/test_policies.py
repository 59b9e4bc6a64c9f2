"""Policies forbid topics and changes of configurations: what they are asked, and what clients are told."""

from __future__ import annotations

import pytest

from kraft_wire.controller.config_apis import alter_configs, incremental_alter_configs
from kraft_wire.controller.config_apis.operation import Operation
from kraft_wire.controller.policies import ConfigChange, NewTopic, Policies, PolicyViolation
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.alter_configs_request import AlterableConfig as LegacyConfig
from kraft_wire.protocol.messages.alter_configs_request import AlterConfigsRequest
from kraft_wire.protocol.messages.alter_configs_request import AlterConfigsResource as LegacyResource
from kraft_wire.protocol.messages.alter_configs_response import AlterConfigsResponse
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.controller.topic_cluster import TopicCluster, assigned_topic, new_topic

TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER


class Topics:
    """Forbids topics with fewer than two replicas."""

    def __init__(self) -> None:
        self.asked: list[NewTopic] = []

    def validate(self, asked: NewTopic, /) -> None:
        self.asked.append(asked)
        if asked.replication_factor == 1:
            raise PolicyViolation(f"{asked.topic} needs two replicas")


class Configs:
    """Forbids short retention."""

    def __init__(self) -> None:
        self.asked: list[ConfigChange] = []

    def validate(self, asked: ConfigChange, /) -> None:
        self.asked.append(asked)
        if asked.configs.get("retention.ms") == "1":
            raise PolicyViolation("keep it longer")


@pytest.fixture
def topics() -> Topics:
    return Topics()


@pytest.fixture
def configs() -> Configs:
    return Configs()


@pytest.fixture
def cluster(topics: Topics, configs: Configs) -> TopicCluster:
    """A cluster with a topic t, for which nobody was asked."""
    made = TopicCluster(0, 1)
    made.create(new_topic("t"))
    made.state.policies = Policies(topics, configs)
    return made


def configured(name: str, **values: str) -> CreatableTopic:
    topic = new_topic(name, factor=2)
    topic.configs = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in values.items()]
    return topic


def alter(cluster: TopicCluster, *resources: AlterConfigsResource) -> list[tuple[int, str | None]]:
    response = cluster.run(
        incremental_alter_configs,
        IncrementalAlterConfigsRequest(list(resources)),
        1,
        IncrementalAlterConfigsResponse,
    )
    return [(each.error_code, each.error_message) for each in response.responses]


def test_a_forbidden_topic_gets_the_policys_text(cluster: TopicCluster, topics: Topics) -> None:
    one, two = cluster.create(new_topic("one"), new_topic("two", factor=2))
    assert (one.error_code, one.error_message) == (ErrorCode.POLICY_VIOLATION, "one needs two replicas")
    assert two.error_code == ErrorCode.NONE
    assert [topic.name for topic in cluster.metadata.topics] == ["t", "two"]
    assert topics.asked == [NewTopic("one", 1, 1, None, {}), NewTopic("two", 1, 2, None, {})]


def test_defaults_and_assignments_are_what_the_topic_gets(cluster: TopicCluster, topics: Topics) -> None:
    cluster.create(
        CreatableTopic(name="default", num_partitions=-1, replication_factor=-1),
        assigned_topic("assigned", {0: [0, 1], 1: [1, 0]}),
    )
    assert topics.asked == [
        NewTopic("default", 1, 1, None, {}),
        NewTopic("assigned", None, None, {0: (0, 1), 1: (1, 0)}, {}),
    ]


def test_topics_that_can_not_be_created_are_not_asked_about(cluster: TopicCluster, topics: Topics) -> None:
    cluster.create(
        new_topic("t"), new_topic("bad/name"), new_topic("many", factor=9), new_topic("n", partitions=0)
    )
    assert topics.asked == []


def test_what_is_only_validated_is_asked_about(cluster: TopicCluster) -> None:
    (result,) = cluster.create(new_topic("one"), validate_only=True)
    assert result.error_code == ErrorCode.POLICY_VIOLATION


def test_the_configuration_of_a_new_topic_is_asked_about_first(
    cluster: TopicCluster, topics: Topics, configs: Configs
) -> None:
    (short,) = cluster.create(configured("short", retention_ms="1"))
    assert (short.error_code, short.error_message) == (ErrorCode.POLICY_VIOLATION, "keep it longer")
    assert topics.asked == []
    (longer,) = cluster.create(configured("longer", retention_ms="5"))
    assert longer.error_code == ErrorCode.NONE
    assert configs.asked[1:] == [ConfigChange(TOPIC, "longer", {"retention.ms": "5"})]
    assert topics.asked == [NewTopic("longer", 1, 2, None, {"retention.ms": "5"})]


def test_changed_keys_are_asked_about_with_their_new_values(cluster: TopicCluster, configs: Configs) -> None:
    cluster.set_config(TOPIC, "t", "cleanup.policy", "compact")
    cluster.set_config(TOPIC, "t", "segment.ms", "7")
    changes = [
        AlterableConfig("retention.ms", Operation.SET, "5"),
        AlterableConfig("segment.ms", Operation.SET, "7"),
        AlterableConfig("cleanup.policy", Operation.APPEND, "delete"),
        AlterableConfig("max.message.bytes", Operation.DELETE, None),
    ]
    assert alter(cluster, AlterConfigsResource(TOPIC, "t", changes)) == [(0, None)]
    expected = {"retention.ms": "5", "cleanup.policy": "compact,delete"}
    assert configs.asked == [ConfigChange(TOPIC, "t", expected)]
    removal = [AlterableConfig("retention.ms", Operation.DELETE, None)]
    alter(cluster, AlterConfigsResource(TOPIC, "t", removal))
    assert configs.asked[1] == ConfigChange(TOPIC, "t", {"retention.ms": None})


def test_the_values_of_brokers_are_asked_about_even_if_they_do_not_change(
    cluster: TopicCluster, configs: Configs
) -> None:
    cluster.set_config(BROKER, "1", "background.threads", "3")
    change = [AlterableConfig("background.threads", Operation.SET, "3")]
    alter(cluster, AlterConfigsResource(BROKER, "1", change))
    assert configs.asked == [ConfigChange(BROKER, "1", {"background.threads": "3"})]


def test_a_forbidden_change_changes_nothing_of_its_resource(cluster: TopicCluster) -> None:
    cluster.create(new_topic("u", factor=2))
    short = AlterableConfig("retention.ms", Operation.SET, "1")
    other = AlterableConfig("segment.ms", Operation.SET, "9")
    assert alter(
        cluster, AlterConfigsResource(TOPIC, "t", [short, other]), AlterConfigsResource(TOPIC, "u", [other])
    ) == [(ErrorCode.POLICY_VIOLATION, "keep it longer"), (0, None)]
    assert cluster.metadata.configs.get(TOPIC, "t") == {}
    assert cluster.metadata.configs.get(TOPIC, "u") == {"segment.ms": "9"}


def test_keys_that_alter_configs_removes_by_not_naming_them_are_not_asked_about(
    cluster: TopicCluster, configs: Configs
) -> None:
    """KAFKA-14195."""
    cluster.set_config(TOPIC, "t", "segment.ms", "7")
    request = AlterConfigsRequest([LegacyResource(TOPIC, "t", [LegacyConfig("retention.ms", "5")])])
    (response,) = cluster.run(alter_configs, request, 1, AlterConfigsResponse).responses
    assert response.error_code == ErrorCode.NONE
    assert configs.asked == [ConfigChange(TOPIC, "t", {"retention.ms": "5"})]
    assert cluster.metadata.configs.get(TOPIC, "t") == {"retention.ms": "5"}


def test_a_change_that_is_not_valid_is_not_asked_about(cluster: TopicCluster, configs: Configs) -> None:
    changes = [AlterableConfig("retention.ms", Operation.SET, "soon")]
    ((code, _),) = alter(cluster, AlterConfigsResource(TOPIC, "t", changes))
    assert code == ErrorCode.INVALID_CONFIG and configs.asked == []
