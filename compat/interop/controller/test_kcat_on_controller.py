"""kcat and confluent-kafka read the metadata log from our controller, without any broker."""

from __future__ import annotations

import pytest

from compat.harness import clients, kcat
from compat.harness.kafka.cluster import CONTROLLER_ID, random_cluster_id
from compat.harness.kafka.metadata_values import describe_record, split_values
from compat.harness.kafka.nodes import OurController
from compat.harness.kafka.tools import KafkaTools, segments
from compat.harness.processes import Workspace

TOPIC = "__cluster_metadata"


@pytest.fixture
def controller(workspace: Workspace) -> OurController:
    controller = OurController(workspace, CONTROLLER_ID)
    controller.format(random_cluster_id(), "--standalone")
    controller.start()
    controller.wait_until_ready()
    return controller


def test_kcat_lists_the_metadata_topic(controller: OurController) -> None:
    listed = kcat.metadata(controller.address)
    [broker] = listed["brokers"]
    assert (broker["id"], broker["name"]) == (CONTROLLER_ID, controller.address)
    [topic] = listed["topics"]
    assert topic["topic"] == TOPIC
    [partition] = topic["partitions"]
    assert (partition["partition"], partition["leader"]) == (0, CONTROLLER_ID)


def test_kcat_consumes_the_records_that_kafkas_dump_prints(
    controller: OurController, tools: KafkaTools
) -> None:
    consumed = [describe_record(value) for value in _consume(controller.address)]
    dumped = tools.metadata_records(*segments(controller.data_folder))
    assert consumed == dumped[: len(consumed)]
    assert "FEATURE_LEVEL_RECORD" in [record.type for record in consumed]


def test_kcat_starts_in_the_middle_of_the_log(controller: OurController) -> None:
    everything = kcat.consume_bytes(controller.address, TOPIC, "-c", "6", "-f", "%o\n").split()
    tail = kcat.consume_bytes(
        controller.address, TOPIC, "-c", "3", "-f", "%o\n", "-o", everything[3].decode()
    )
    assert tail.split() == everything[3:6]


def test_confluent_kafka_consumes_what_kcat_consumes(controller: OurController) -> None:
    by_kcat = _consume(controller.address)
    by_confluent = clients.consume(controller.address, TOPIC, 1)
    assert by_confluent[: len(by_kcat)] == by_kcat


def _consume(address: str) -> list[bytes]:
    return split_values(kcat.consume_bytes(address, TOPIC, *kcat.LENGTH_PREFIXED))
