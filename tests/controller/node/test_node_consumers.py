"""Consumers of the metadata log at a node."""

from __future__ import annotations

import pytest

from kraft_wire.controller.node.consumer_reads import ANSWERS_PER_STEP
from kraft_wire.controller.settings import Settings
from kraft_wire.log.batch import split_batches
from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.protocol.messages.list_offsets_response import ListOffsetsResponse
from kraft_wire.raft.events import (
    RequestAbandoned,
)
from tests.controller.lone_controller import NODE_ID, active_controller
from tests.controller.node.node_requests import (
    consume,
    controller_with_broker,
    create_topic,
)


def test_a_consumer_sees_committed_batches_only() -> None:
    controller = controller_with_broker()
    high_watermark = controller.node.core.high_watermark
    assert high_watermark is not None
    controller.ask("create", create_topic("a"), 7)
    controller.ask("fetch", consume(0), 11)
    (partition,) = controller.answer("fetch", FetchResponse).responses[0].partitions
    assert partition.high_watermark == high_watermark
    assert partition.records is not None
    batches, _ = split_batches(partition.records)
    assert batches[0].header.base_offset == 0
    assert batches[-1].header.next_offset == high_watermark


def test_a_consumer_at_the_end_waits_for_the_next_commit() -> None:
    controller = controller_with_broker()
    end = controller.node.core.high_watermark
    assert end is not None
    controller.ask("fetch", consume(end), 11)
    assert "fetch" not in controller.replies
    controller.ask("create", create_topic("a"), 7)
    assert "fetch" not in controller.replies
    controller.flush()
    (partition,) = controller.answer("fetch", FetchResponse).responses[0].partitions
    assert partition.records is not None
    assert split_batches(partition.records)[0][0].header.base_offset == end


def test_a_consumer_that_waited_long_enough_gets_an_empty_answer() -> None:
    controller = controller_with_broker(Settings(node_id=NODE_ID, metadata_max_idle_interval_ms=0))
    end = controller.node.core.high_watermark
    assert end is not None
    controller.ask("fetch", consume(end, max_wait_ms=300), 11)
    controller.tick(299)
    assert "fetch" not in controller.replies
    controller.tick(1)
    assert controller.answer("fetch", FetchResponse).responses[0].partitions[0].records == b""


@pytest.mark.parametrize("is_committed", [True, False])
def test_many_consumers_are_answered_some_in_each_step(is_committed: bool) -> None:
    """A connection may have 128 Fetches that wait, and all of them wait for the same commit."""
    controller = controller_with_broker(Settings(node_id=NODE_ID, metadata_max_idle_interval_ms=0))
    end = controller.node.core.high_watermark
    assert end is not None
    consumers = range(4 * ANSWERS_PER_STEP)
    for consumer in consumers:
        controller.ask(consumer, consume(end, max_wait_ms=300), 11)
    controller.replies.clear()
    if is_committed:
        controller.ask("create", create_topic("a"), 7)
        controller.flush()
    else:
        controller.tick(300)
    steps = 1
    while (answered := [token for token in controller.replies if token != "create"]) != [*consumers]:
        assert answered == [*consumers[: steps * ANSWERS_PER_STEP]]
        assert controller.node.next_deadline_ms() == controller.now_ms
        controller.tick()
        steps += 1
    assert steps == 4


def test_an_abandoned_consumer_is_not_answered() -> None:
    controller = controller_with_broker()
    end = controller.node.core.high_watermark
    assert end is not None
    controller.ask("fetch", consume(end), 11)
    controller.step(RequestAbandoned("fetch"))
    controller.ask("create", create_topic("a"), 7)
    controller.flush()
    assert "fetch" not in controller.replies


def test_list_offsets_returns_the_log_start_offset_and_the_high_watermark() -> None:
    controller = active_controller()
    partitions = [ListOffsetsPartition(partition_index=0, timestamp=t) for t in (-2, -1)]
    for partition in partitions:
        topic = ListOffsetsTopic(name=CLUSTER_METADATA, partitions=[partition])
        controller.ask(partition.timestamp, ListOffsetsRequest(replica_id=-1, topics=[topic]), 5)
    earliest, latest = (
        controller.answer(token, ListOffsetsResponse).topics[0].partitions[0].offset for token in (-2, -1)
    )
    assert (earliest, latest) == (0, controller.node.core.high_watermark)
