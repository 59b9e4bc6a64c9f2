"""Produce is served for librdkafka, and every request is refused."""

from __future__ import annotations

import pytest

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.controller.reading import refuse_produce
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.protocol.messages.produce_response import ProduceResponse
from kraft_wire.protocol.uuid import Uuid
from tests.controller.controller_harness import Harness, uuid

PRODUCE = 0
FETCH = 1


def answers(name: str, topic_id: Uuid, version: int) -> list[tuple[int, int, str | None]]:
    """Return (error code, base offset, message) of each partition."""
    partitions = [PartitionProduceData(index, b"whatever") for index in (0, 1)]
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name, topic_id, partitions)])
    response = Harness().run(refuse_produce, request, version, ProduceResponse)
    (topic,) = response.responses
    assert [p.index for p in topic.partition_responses] == [0, 1]
    return [(p.error_code, p.base_offset, p.error_message) for p in topic.partition_responses]


@pytest.mark.parametrize("version", range(3, 14))
def test_the_metadata_log_is_read_only(version: int) -> None:
    message = "__cluster_metadata is read only" if version >= 8 else None
    expected = (ErrorCode.INVALID_TOPIC_EXCEPTION, -1, message)
    assert answers("__cluster_metadata", Uuid.ONE, version) == [expected] * 2


def test_other_topics_are_not_here() -> None:
    assert answers("orders", uuid(500), 12)[0][0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answers("orders", uuid(500), 13)[0][0] == ErrorCode.UNKNOWN_TOPIC_ID


def test_the_longest_name_still_gets_an_answer() -> None:
    name = "n" * 32_767
    request = ProduceRequest(
        acks=-1, topic_data=[TopicProduceData(name, Uuid.ZERO, [PartitionProduceData(0)])]
    )
    response = Harness().run(refuse_produce, request, 12, ProduceResponse)
    (topic,) = ProduceResponse.decode(response.encode(12), 12).responses
    assert topic.name == name


def test_librdkafka_finds_the_versions_that_mean_batches_of_today() -> None:
    """librdkafka fetches only from nodes that serve Produce 3 and Fetch 4 (its feature MsgVer2)."""
    assert CONTROLLER_APIS[PRODUCE].supports(3)
    assert CONTROLLER_APIS[FETCH].supports(4)
