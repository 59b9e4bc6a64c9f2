"""kcat and confluent-kafka read the metadata log from our controller itself; no broker is there."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.harness import clients, kcat
from compat.harness.cluster import CONTROLLER_ID, random_cluster_id
from compat.harness.nodes import OurController
from compat.harness.processes import Workspace
from compat.harness.tools import KafkaTools, segments
from kraft_wire.protocol.metadata_record import decode_metadata_record

TOPIC = "__cluster_metadata"
LENGTH_PREFIXED = ("-f", "%R%s")
LENGTH = struct.Struct(">i")


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
    consumed = [_as_dumped(value) for value in _split(_consume(controller.address))]
    dumped = tools.dump_log(*segments(controller.data_folder)).stdout
    expected = [
        (record.type, record.version, record.data)
        for record in tools.metadata_records(*_log_files(controller))
    ]
    assert "FEATURE_LEVEL_RECORD" in dumped
    assert consumed == expected[: len(consumed)]
    assert len(consumed) > 5, "bootstrap records and what came after them"


def test_kcat_starts_in_the_middle_of_the_log(controller: OurController) -> None:
    everything = kcat.consume_bytes(controller.address, TOPIC, "-c", "6", "-f", "%o\n").split()
    tail = kcat.consume_bytes(
        controller.address, TOPIC, "-c", "3", "-f", "%o\n", "-o", everything[3].decode()
    )
    assert tail.split() == everything[3:6]


def test_confluent_kafka_consumes_what_kcat_consumes(controller: OurController) -> None:
    by_kcat = _split(_consume(controller.address))
    by_confluent = clients.consume(controller.address, TOPIC, 1)
    assert by_confluent[: len(by_kcat)] == by_kcat


def _consume(address: str) -> bytes:
    return kcat.consume_bytes(address, TOPIC, *LENGTH_PREFIXED)


def _split(consumed: bytes) -> list[bytes]:
    return list(_values(consumed))


def _values(consumed: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(consumed):
        (size,) = LENGTH.unpack_from(consumed, position)
        position += LENGTH.size
        yield consumed[position : position + size]
        position += size


def _as_dumped(value: bytes) -> tuple[str, int, dict[str, Any]]:
    """A record as kafka-dump-log names it: "FEATURE_LEVEL_RECORD" for FeatureLevelRecord."""
    record, version = decode_metadata_record(value)
    words = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in record.NAME)
    return words.lstrip("_"), version, record.to_json(version)


def _log_files(controller: OurController) -> list[Path]:
    return segments(controller.data_folder)
