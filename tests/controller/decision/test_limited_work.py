"""A request about very many topics or resources is decided in pieces: it comes to the same as in one step."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any

import pytest

from kraft_wire.controller.clients import alter_client_quotas, alter_user_scram_credentials
from kraft_wire.controller.config_apis import alter_configs, config_changes, incremental_alter_configs
from kraft_wire.controller.config_apis.operation import Operation
from kraft_wire.controller.decision import item_work
from kraft_wire.controller.topics import create_partitions, create_topics, delete_topics
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import alter_client_quotas_request as quotas_request
from kraft_wire.protocol.messages import alter_configs_request as configs_request
from kraft_wire.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraft_wire.protocol.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.controller.decision.test_item_work import decide, rest_of
from tests.controller.topic_cluster import TopicCluster, assigned_topic, new_topic

SEEDS = 200
BROKERS = (0, 1, 2)
NAMES = [f"topic-{number}" for number in range(12)]
SETTINGS = [
    ("cleanup.policy", "delete"),
    ("min.insync.replicas", "2"),
    ("retention.ms", "5"),
    ("no.key", "1"),
]
PIECE = 2
FEW_RECORDS = 4
SIZES: list[tuple[ModuleType, str]] = [
    (create_topics, "TOPICS_PER_PIECE"),
    (create_partitions, "TOPICS_PER_PIECE"),
    (delete_topics, "TOPICS_PER_PIECE"),
    (config_changes, "RESOURCES_PER_PIECE"),
    (alter_client_quotas, "ENTITIES_PER_PIECE"),
    (alter_user_scram_credentials, "USERS_PER_PIECE"),
]
Case = tuple[ModuleType, Message, int]


def cluster_of(random: Random) -> TopicCluster:
    """A cluster with some of the topics, some of which have a configuration."""
    cluster = TopicCluster(*BROKERS)
    for name in random.sample(NAMES, 8):
        cluster.create(new_topic(name, partitions=random.randint(1, 3)))
        if random.random() < 0.5:
            cluster.set_config(ResourceType.TOPIC, name, "cleanup.policy", "compact")
    return cluster


def chosen(random: Random) -> list[str]:
    """Names in any order, of which some are given twice and some are no names."""
    names = [
        *random.sample(NAMES, random.randint(3, 12)),
        *random.sample(NAMES, 2),
        "/",
        "__cluster_metadata",
    ]
    random.shuffle(names)
    return names


def creation(random: Random) -> Case:
    topics = []
    for name in chosen(random):
        brokers = [random.sample(range(4), 2) for _ in range(random.randint(1, 3))]  # there is no broker 3
        topic = assigned_topic(name, dict(enumerate(brokers)))
        key = random.choice(["retention.ms", "min.insync.replicas", "no.key"])
        if random.random() < 0.5:
            topic.configs = [CreatableTopicConfig(name=key, value=str(random.randint(-2, 3)))]
        topics.append(topic)
    return create_topics, CreateTopicsRequest(topics=topics, validate_only=random.random() < 0.2), 7


def addition(random: Random) -> Case:
    topics = [
        CreatePartitionsTopic(
            name=name,
            count=(count := random.randint(1, 4)),
            assignments=[
                CreatePartitionsAssignment(broker_ids=(random.randrange(4),))
                for _ in range(random.randint(0, count))
            ],
        )
        for name in chosen(random)
    ]
    return (
        create_partitions,
        CreatePartitionsRequest(topics=topics, validate_only=random.random() < 0.2),
        3,
    )


def deletion(random: Random) -> Case:
    return delete_topics, DeleteTopicsRequest(topics=[DeleteTopicState(name=n) for n in chosen(random)]), 6


def alteration(random: Random) -> Case:
    resources = []
    for name in [*chosen(random), "0", "1", "9"]:
        configs = [
            AlterableConfig(key, random.choice([0, 0, 0, 1, 2, 3, 4]), value)
            for key, value in random.sample(SETTINGS, 1)
        ]
        kind = ResourceType.TOPIC if name in NAMES else random.choice([2, 4, 8, 16, 77])
        resources.append(AlterConfigsResource(resource_type=int(kind), resource_name=name, configs=configs))
    return (
        incremental_alter_configs,
        IncrementalAlterConfigsRequest(resources=resources, validate_only=random.random() < 0.2),
        1,
    )


def replacement(random: Random) -> Case:
    resources = []
    for name in [*chosen(random), "0", "1", "9"]:
        configs = [configs_request.AlterableConfig(*pair) for pair in random.sample(SETTINGS, 2)]
        kind = ResourceType.TOPIC if name in NAMES else random.choice([2, 4, 8, 16, 77])
        resources.append(configs_request.AlterConfigsResource(int(kind), name, configs))
    return (
        alter_configs,
        configs_request.AlterConfigsRequest(resources, validate_only=random.random() < 0.2),
        2,
    )


def quotas(random: Random) -> Case:
    entries = []
    for name in chosen(random):
        kind = random.choice(["user", "user", "client-id", "ip", "group"])
        ops = [quotas_request.OpData(key, random.randint(0, 3)) for key in ("producer_byte_rate", "no.key")]
        entity = [quotas_request.EntityData(kind, name)]
        entries.append(quotas_request.EntryData(entity, ops[: random.randint(1, 2)]))
    request = quotas_request.AlterClientQuotasRequest(entries, validate_only=random.random() < 0.2)
    return alter_client_quotas, request, 1


def credentials(random: Random) -> Case:
    users = chosen(random)
    deletions = [ScramCredentialDeletion(user, 1) for user in users[:2]]
    upsertions = [
        ScramCredentialUpsertion(user, random.randint(0, 2), 4095 + random.randint(0, 2), b"salt", b"salted")
        for user in users[2:]
    ]
    return alter_user_scram_credentials, AlterUserScramCredentialsRequest(deletions, upsertions), 0


def shown(cluster: TopicCluster) -> dict[str, object]:
    """What clients see of the topics; their ids are drawn, and pieces may draw others."""
    metadata = cluster.metadata
    return (
        {
            topic.name: (
                [
                    (partition.replicas, partition.leader, partition.isr)
                    for _, partition in metadata.partitions.indexed(topic.id)
                ],
                dict(metadata.configs.get(ResourceType.TOPIC, topic.name)),
            )
            for topic in metadata.topics
        }
        | {
            f"{kind.name} {name}": dict(metadata.configs.get(kind, name))
            for kind in ResourceType
            for name in ("0", "1", "9", "/", "__cluster_metadata")
        }
        | {
            "quotas": dict(metadata.quotas.by_entity),
            "credentials": dict(metadata.scram.by_user),
        }
    )


def without_ids(response: Any) -> Any:
    if isinstance(response, Message):
        for result in getattr(response, "topics", ()):
            result.topic_id = None
    return response


def set_sizes(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for module, name in SIZES:
        monkeypatch.setattr(module, name, size)


@pytest.mark.parametrize("most_records", [10_000, FEW_RECORDS], ids=["many records", "few records"])
@pytest.mark.parametrize("make", [creation, addition, deletion, alteration, replacement, quotas, credentials])
def test_pieces_come_to_the_same_as_the_whole(
    make: Callable[[Random], Case], most_records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_work, "MAX_RECORDS_PER_BATCH", most_records)
    most_pieces = too_many = 0
    for seed in range(SEEDS):
        whole, in_pieces = (cluster_of(Random(seed)) for _ in range(2))
        module, request, version = make(Random(seed))
        set_sizes(monkeypatch, 1_000)
        before = shown(whole)
        expected, _ = decide(whole, module, request, version)
        set_sizes(monkeypatch, PIECE)
        found, pieces = decide(in_pieces, module, request, version)
        if found == ErrorCode.POLICY_VIOLATION:
            too_many += 1
            assert most_records == FEW_RECORDS and shown(in_pieces) == before, seed
            continue
        assert without_ids(found) == without_ids(expected), seed
        assert shown(in_pieces) == shown(whole), seed
        most_pieces = max(most_pieces, pieces)
    assert most_pieces > 1
    assert (too_many > 0) == (most_records == FEW_RECORDS)


def test_a_request_that_only_validates_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    set_sizes(monkeypatch, 1)
    cluster = TopicCluster(*BROKERS)
    request = CreateTopicsRequest(topics=[new_topic("a"), new_topic("b")], validate_only=True)
    response, pieces = decide(cluster, create_topics, request, 7)
    assert isinstance(response, CreateTopicsResponse)
    assert pieces == 2 and [topic.error_code for topic in response.topics] == [0, 0]
    assert len(cluster.metadata.topics) == 0


def test_a_topic_that_another_request_creates_meanwhile_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    set_sizes(monkeypatch, 1)
    cluster = TopicCluster(*BROKERS)
    request = CreateTopicsRequest(topics=[new_topic("a"), new_topic("b")])
    result = create_topics.handle(cluster.state, request, 7, cluster.context())
    set_sizes(monkeypatch, 100)
    cluster.create(new_topic("b"))
    response, _ = rest_of(cluster, result)
    assert isinstance(response, CreateTopicsResponse)
    codes = [topic.error_code for topic in response.topics]
    assert codes == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]


@pytest.mark.parametrize("by_id", [False, True])
def test_a_topic_that_another_request_deletes_meanwhile_is_unknown(
    by_id: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = TopicCluster(*BROKERS)
    cluster.create(new_topic("a"), new_topic("b"))
    set_sizes(monkeypatch, 1)
    first, second = (
        DeleteTopicState(name=None, topic_id=topic.id) if by_id else DeleteTopicState(name=topic.name)
        for topic in cluster.metadata.topics
    )
    result = delete_topics.handle(
        cluster.state, DeleteTopicsRequest(topics=[first, second]), 6, cluster.context()
    )
    assert decide(cluster, delete_topics, DeleteTopicsRequest(topics=[second]), 6)[1] == 1
    response, _ = rest_of(cluster, result)
    assert isinstance(response, DeleteTopicsResponse)
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [each.error_code for each in response.responses] == [ErrorCode.NONE, unknown]
    assert len(cluster.metadata.topics) == 0


@pytest.mark.parametrize("validate_only", [False, True])
def test_one_resource_whose_records_are_too_large_refuses_all(validate_only: bool) -> None:
    """A batch has up to 8 MiB. Nothing is written before all is known to fit."""
    cluster = TopicCluster(*BROKERS)
    large = [AlterableConfig(name=f"key-{n}", config_operation=0, value="v" * 30_000) for n in range(300)]
    small = [AlterableConfig(name="key", config_operation=0, value="v")]
    resources = [AlterConfigsResource(4, "0", small), AlterConfigsResource(4, "1", large)]
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
    result, _ = decide(cluster, incremental_alter_configs, request, 1)
    assert result is ErrorCode.POLICY_VIOLATION
    assert not cluster.metadata.configs.get(ResourceType.BROKER, "0")


def test_one_resource_that_does_not_fit_into_a_batch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    set_sizes(monkeypatch, 1)
    monkeypatch.setattr(item_work, "MAX_RECORDS_PER_BATCH", 2)
    cluster = TopicCluster(*BROKERS)
    many = [AlterableConfig(name=f"key-{n}", config_operation=0, value="v") for n in range(3)]
    resources = [AlterConfigsResource(4, "0", many[:1]), AlterConfigsResource(4, "1", many)]
    result, _ = decide(
        cluster, incremental_alter_configs, IncrementalAlterConfigsRequest(resources=resources), 1
    )
    assert result is ErrorCode.POLICY_VIOLATION
    assert not cluster.metadata.configs.get(ResourceType.BROKER, "0")


def test_long_values_that_are_changed_are_work_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short request may append to long lists, or take items out of them."""
    monkeypatch.setattr(config_changes, "CHARS_PER_PIECE", 100)
    cluster = TopicCluster(*BROKERS)
    key = "ssl.cipher.suites"
    for name in ("0", "1"):
        cluster.set_config(ResourceType.BROKER, name, key, "a," * 40)
    resources = [
        AlterConfigsResource(4, name, [AlterableConfig(key, Operation.APPEND, "b")]) for name in ("0", "1")
    ]
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=True)
    assert decide(cluster, incremental_alter_configs, request, 1)[1] == 2
    monkeypatch.setattr(config_changes, "CHARS_PER_PIECE", 200)
    assert decide(cluster, incremental_alter_configs, request, 1)[1] == 1


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        ([new_topic(f"t{n}", partitions=3, factor=2) for n in range(4)], 4),
        ([new_topic(f"t{n}", partitions=1, factor=3) for n in range(4)], 2),
        ([new_topic(f"t{n}", partitions=-1, factor=-1) for n in range(4)], 2),
        ([new_topic(f"t{n}", partitions=4, factor=-1) for n in range(4)], 4),
        ([assigned_topic(f"t{n}", {0: [0, 1], 1: [0, 2]}) for n in range(4)], 4),
        ([assigned_topic(f"t{n}", {0: [0], 1: [0], 2: [2]}) for n in range(4)], 2),
        ([new_topic(f"t{n}", partitions=-9, factor=-9) for n in range(4)], 1),
        ([new_topic("large", partitions=9, factor=3)], 1),
    ],
)
def test_new_replicas_are_work_not_topics_alone(
    topics: list[CreatableTopic], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(create_topics, "CHARS_PER_PIECE", 6 * create_topics.CHARS_OF_A_REPLICA)
    cluster = TopicCluster(*BROKERS, num_partitions=3)
    request = CreateTopicsRequest(topics=topics, validate_only=True)
    assert decide(cluster, create_topics, request, 7)[1] == expected


def test_new_replicas_of_old_topics_are_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(create_partitions, "REPLICAS_PER_PIECE", 6)
    cluster = TopicCluster(*range(10))
    cluster.create(*(new_topic(name, factor=factor) for name, factor in (("a", 3), ("b", 10), ("c", 1))))

    def pieces(**counts: int) -> int:
        topics = [CreatePartitionsTopic(name=name, count=count) for name, count in counts.items()]
        request = CreatePartitionsRequest(topics=topics, validate_only=True)
        return decide(cluster, create_partitions, request, 3)[1]

    assert pieces(a=2, c=4) == 1
    assert pieces(a=3, c=2) == 2
    assert pieces(a=2, b=2, c=2) == 3
    assert pieces(a=1, b=1, unknown=500) == 1


def test_pieces_have_few_items_of_little_weight() -> None:
    pieces = item_work.pieces_of([1, 2, 3, 9, 1, 1, 1, 1], 3, lambda number: number, 6)
    assert pieces == [[1, 2, 3], [9], [1, 1, 1], [1]]
