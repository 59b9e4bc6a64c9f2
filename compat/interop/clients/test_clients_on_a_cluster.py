"""kafka-python and aiokafka work with a broker of our controller."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic

from compat.conftest import make_workspace
from compat.harness import clients
from compat.harness.kafka import broker_metadata
from compat.harness.kafka.cluster import NEWEST_KAFKA, Cluster
from compat.harness.kafka.tool_server import ToolServer
from compat.judges.client_codecs.kafka_python_codec import kafka

MESSAGES = [b"message %d" % n for n in range(2000)]
PARTITIONS = 3


@pytest.fixture(scope="module")
def cluster(tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    for workspace in make_workspace(tmp_path_factory.mktemp("clients")):
        cluster = Cluster(workspace, tool_server, "ours", NEWEST_KAFKA)
        cluster.start(log_dir_counts=[1])
        yield cluster


def test_kafka_python_administers_produces_and_consumes(cluster: Cluster) -> None:
    """The broker forwards CreateTopics to our controller."""
    admin = kafka.KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        admin.create_topics({"kafka-python": {"num_partitions": PARTITIONS, "replication_factor": 1}})
        assert admin.describe_cluster()["cluster_id"] == cluster.cluster_id
    finally:
        admin.close()
    broker_metadata.wait_for_topic(cluster.running, "kafka-python", PARTITIONS)

    producer = kafka.KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all")
    try:
        sent = [producer.send("kafka-python", value) for value in MESSAGES]
        producer.flush(timeout=60)
        assert all(future.succeeded() for future in sent)
    finally:
        producer.close()

    consumer = kafka.KafkaConsumer(
        "kafka-python",
        bootstrap_servers=cluster.bootstrap,
        group_id="readers of kafka-python",
        auto_offset_reset="earliest",
        consumer_timeout_ms=60_000,
    )
    try:
        consumed = [next(consumer).value for _ in MESSAGES]
    finally:
        consumer.close()
    assert sorted(consumed) == sorted(MESSAGES)
    assert sorted(clients.consume(cluster.bootstrap, "kafka-python", PARTITIONS)) == sorted(MESSAGES)


def test_aiokafka_administers_produces_and_consumes(cluster: Cluster) -> None:
    """It produces in a transaction, with a producer id from a block that our controller allocated."""

    async def administer() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        await admin.start()
        try:
            await admin.create_topics([AioNewTopic("aiokafka", PARTITIONS, 1)])
        finally:
            await admin.close()

    async def produce() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id="aiokafka")
        await producer.start()
        try:
            async with producer.transaction():
                for delivery in [await producer.send("aiokafka", value) for value in MESSAGES]:
                    await delivery
        finally:
            await producer.stop()

    async def consume() -> list[bytes]:
        consumer = AIOKafkaConsumer(
            "aiokafka",
            bootstrap_servers=cluster.bootstrap,
            group_id="readers of aiokafka",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        await consumer.start()
        try:
            return [(await asyncio.wait_for(consumer.getone(), 60)).value for _ in MESSAGES]
        finally:
            await consumer.stop()

    asyncio.run(administer())
    broker_metadata.wait_for_topic(cluster.running, "aiokafka", PARTITIONS)
    asyncio.run(produce())
    assert sorted(asyncio.run(consume())) == sorted(MESSAGES)
