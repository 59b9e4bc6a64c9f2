"""Clients of other projects connect to our controller, administer topics, and read the metadata log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewPartitions as AioNewPartitions
from aiokafka.admin import NewTopic as AioNewTopic
from aiokafka.admin.config_resource import ConfigResource as AioConfigResource
from aiokafka.admin.config_resource import ConfigResourceType as AioConfigResourceType
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from compat.conftest import make_workspace
from compat.harness import clients
from compat.harness.kafka.cluster import CONTROLLER_ID, random_cluster_id
from compat.harness.kafka.metadata_values import describe_record
from compat.harness.kafka.nodes import OurController
from compat.harness.kafka.pretend_broker import PretendBroker
from compat.harness.kafka.tools import KafkaTools, MetadataRecord, segments
from compat.judges.client_codecs.kafka_python_codec import kafka

LOG = "__cluster_metadata"
EARLIER = {"retention.ms": "3600000"}


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurController]:
    """A controller with a pretend broker, so that topics can be created."""
    for workspace in make_workspace(tmp_path_factory.mktemp("clients")):
        controller = OurController(workspace, CONTROLLER_ID)
        cluster_id = random_cluster_id()
        controller.format(cluster_id, "--standalone")
        controller.start()
        controller.wait_until_ready()
        broker = PretendBroker(1, cluster_id, controller.port)
        yield controller
        broker.close()


Written = Callable[[], list[MetadataRecord]]


@pytest.fixture
def written(controller: OurController, tools: KafkaTools) -> Written:
    """Return the records that kafka-dump-log finds in the controller's log now."""
    return lambda: tools.metadata_records(*segments(controller.data_folder))


def _assert_life_of_a_topic(records: list[MetadataRecord], name: str) -> None:
    """Check that a topic was created with a config and two partitions, got a third, and was deleted."""
    [topic] = [record for record in records if record.type == "TOPIC_RECORD" and record.concerns(name=name)]
    topic_id = topic.data["topicId"]
    of_topic = [record for record in records if record.concerns(topicId=topic_id)]
    partitions = [record.data["partitionId"] for record in of_topic if record.type == "PARTITION_RECORD"]
    assert partitions == [0, 1, 2]
    assert of_topic[-1].type == "REMOVE_TOPIC_RECORD"
    configs = [
        (record.data["name"], record.data["value"])
        for record in records
        if record.type == "CONFIG_RECORD" and record.concerns(resourceName=name)
    ]
    assert configs == list(EARLIER.items())


def test_kafka_python_administers(controller: OurController, written: Written) -> None:
    admin = kafka.KafkaAdminClient(bootstrap_servers=controller.address)
    try:
        options = {"num_partitions": 2, "replication_factor": 1, "configs": EARLIER}
        [created] = admin.create_topics({"by-kafka-python": options})["topics"]
        assert (created["num_partitions"], created["replication_factor"]) == (2, 1)
        with pytest.raises(kafka.errors.TopicAlreadyExistsError):
            admin.create_topics({"by-kafka-python": options})
        admin.create_partitions({"by-kafka-python": 3})
        resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, "by-kafka-python")
        configs = admin.describe_configs([resource])["topic"]["by-kafka-python"]
        assert {name: entry["value"] for name, entry in configs.items()} == EARLIER
        [partition] = admin.describe_metadata_quorum()["topics"][0]["partitions"]
        assert partition["leader_id"] == CONTROLLER_ID
        admin.delete_topics(["by-kafka-python"])
        with pytest.raises(kafka.errors.UnknownTopicOrPartitionError):
            admin.delete_topics(["by-kafka-python"])
        with pytest.raises(kafka.errors.MismatchedEndpointTypeError):
            admin.describe_cluster()  # its requests can't ask for the controllers
    finally:
        admin.close()
    _assert_life_of_a_topic(written(), "by-kafka-python")


def test_aiokafka_administers(controller: OurController, written: Written) -> None:
    async def administer() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=controller.address)
        await admin.start()
        try:
            topic = AioNewTopic("by-aiokafka", 2, 1, topic_configs=EARLIER)
            assert (await admin.create_topics([topic])).topic_errors == [("by-aiokafka", 0, None)]
            [(_, error, _)] = (await admin.create_topics([topic])).topic_errors
            assert error == kafka.errors.TopicAlreadyExistsError.errno
            await admin.create_partitions({"by-aiokafka": AioNewPartitions(3)})
            resource = AioConfigResource(AioConfigResourceType.TOPIC, "by-aiokafka")
            [described] = await admin.describe_configs([resource])
            [(*_, entries)] = described.resources
            assert ("retention.ms", "3600000") in [tuple(entry[:2]) for entry in entries]
            assert (await admin.describe_cluster())["controller_id"] == CONTROLLER_ID
            assert (await admin.delete_topics(["by-aiokafka"])).topic_error_codes == [("by-aiokafka", 0)]
        finally:
            await admin.close()

    asyncio.run(administer())
    _assert_life_of_a_topic(written(), "by-aiokafka")


def test_confluent_kafka_administers(controller: OurController, written: Written) -> None:
    admin: AdminClient = clients.admin(controller.address)
    topic = NewTopic("by-confluent", num_partitions=2, replication_factor=1, config=EARLIER)
    admin.create_topics([topic])["by-confluent"].result(30)
    admin.create_partitions([NewPartitions("by-confluent", 3)])["by-confluent"].result(30)
    clients.delete_topic(admin, "by-confluent")
    _assert_life_of_a_topic(written(), "by-confluent")


def test_kafka_python_reads_the_log(controller: OurController, written: Written) -> None:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=controller.address, group_id=None, enable_auto_commit=False, consumer_timeout_ms=500
    )
    try:
        place = kafka.TopicPartition(LOG, 0)
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        values = [record.value for record in consumer]
    finally:
        consumer.close()
    _assert_is_the_log(values, written())


def test_aiokafka_reads_the_log(controller: OurController, written: Written) -> None:
    async def read() -> list[bytes]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=controller.address, group_id=None, enable_auto_commit=False
        )
        await consumer.start()
        try:
            place = AioTopicPartition(LOG, 0)
            consumer.assign([place])
            await consumer.seek_to_beginning(place)
            [end] = (await consumer.end_offsets([place])).values()
            values: list[bytes] = []
            while await consumer.position(place) < end:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    values += [record.value for record in records]
            return values
        finally:
            await consumer.stop()

    _assert_is_the_log(asyncio.run(read()), written())


def _assert_is_the_log(values: list[bytes], dumped: list[MetadataRecord]) -> None:
    """Check that the values are a prefix of the log, which may have grown since."""
    read = [describe_record(value) for value in values]
    assert "REGISTER_BROKER_RECORD" in [record.type for record in read]
    assert read == dumped[: len(read)]
