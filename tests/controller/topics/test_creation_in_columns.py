"""Many new partitions are made in columns: the same records, state and undo as one by one."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kraft_wire.controller.decision.context import Result
from kraft_wire.controller.decision.records import Records
from kraft_wire.controller.topics import create_partitions, create_topics, new_partitions, placement
from kraft_wire.metadata.partitions import rare
from kraft_wire.metadata.partitions.column_creations import FEWEST_ENCODED_AS_MATRIX, NewPartitions
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.protocol.metadata_record import encode_metadata_record
from tests.controller.partitions.random_cluster import BROKERS, RandomCluster
from tests.controller.partitions.slice_checks import check_applying
from tests.controller.scripted_entropy import SeededEntropy

SEEDS = 600
NEVER = 1_000_000


def random_creation(random: Random) -> CreateTopicsRequest:
    topics = [_random_topic(random, f"new.{number}") for number in range(random.randint(1, 4))]
    return CreateTopicsRequest(topics=topics, validate_only=random.random() < 0.05)


def _random_topic(random: Random, name: str) -> CreatableTopic:
    count = random.choice((1, 2, 3, 5, 10, 23, 24, 70, 200))
    factor = random.randint(1, 4)
    configs = [CreatableTopicConfig("retention.ms", "1000")] if random.random() < 0.3 else []
    if random.random() < 0.8:
        return CreatableTopic(name, count, factor, configs=configs)
    assignments = [CreatableReplicaAssignment(index, _brokers(random, factor)) for index in range(count)]
    return CreatableTopic(name, -1, -1, assignments=assignments, configs=configs)


def random_growth(random: Random, cluster: RandomCluster) -> CreatePartitionsRequest:
    topics = []
    for topic in sorted(cluster.metadata.topics, key=lambda topic: topic.name):
        added = random.choice((1, 3, 10, 24, 60))
        first = cluster.metadata.partitions.get(topic.id, 0)
        assert first is not None
        factor = len(first.replicas)
        assignments = None
        if random.random() < 0.2:
            assignments = [CreatePartitionsAssignment(_brokers(random, factor)) for _ in range(added)]
        topics.append(CreatePartitionsTopic(topic.name, topic.partition_count + added, assignments))
    return CreatePartitionsRequest(topics=topics)


def _request(module: Any, random: Random, cluster: RandomCluster) -> tuple[Message, int]:
    if module is create_topics:
        return random_creation(random), 7
    return random_growth(random, cluster), 3


def _brokers(random: Random, count: int) -> tuple[int, ...]:
    return tuple(random.sample(range(BROKERS), count))


def encoded(result: Result) -> list[bytes]:
    return [encode_metadata_record(record, version) for record, version in result.records]


def decided(cluster: RandomCluster, module: Any, request: Message, version: int, seed: int) -> Result:
    cluster.entropy = SeededEntropy(seed)
    return cluster.decide(module, request, version)


@pytest.mark.parametrize("module", [create_topics, create_partitions])
def test_columns_have_the_records_of_one_by_one_and_can_be_undone(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    for seed in range(SEEDS):
        monkeypatch.setattr(rare, "WIDEST", 8 if seed % 3 else 2)
        random = Random(seed)
        cluster = RandomCluster(random)
        request, version = _request(module, random, cluster)
        found = decided(cluster, module, request, version, seed)
        with monkeypatch.context() as one_by_one:
            for each in (placement, new_partitions):
                one_by_one.setattr(each, "FEWEST_IN_COLUMNS", NEVER)
            expected = decided(cluster, module, request, version, seed)
        assert found.response == expected.response, seed
        assert encoded(found) == encoded(expected), seed
        if isinstance(found.records, Records):
            sizes += [len(part) for part in found.records.parts if isinstance(part, NewPartitions)]
            check_applying(cluster, found.records)
    assert sum(size < FEWEST_ENCODED_AS_MATRIX for size in sizes) > 50
    assert sum(size >= FEWEST_ENCODED_AS_MATRIX for size in sizes) > 50


def test_partitions_with_a_fenced_broker_are_made_one_by_one() -> None:
    cluster = RandomCluster(Random(1))
    cluster.fence(2)
    assignments = [CreatableReplicaAssignment(index, (1, 2)) for index in range(30)]
    request = CreateTopicsRequest(topics=[CreatableTopic("new", -1, -1, assignments=assignments)])
    result = cluster.decide(create_topics, request, 7)
    assert isinstance(result.records, Records)
    assert not [part for part in result.records.parts if isinstance(part, NewPartitions)]
