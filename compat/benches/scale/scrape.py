"""Measure what metrics cost the event loop: ``python -m compat.benches.scale.scrape``.

In one process, without sockets: a node with very many partitions is read and encoded as for a scraper, and a
heartbeat is counted. Times are those of the thread's CPU, so that other work on this machine doesn't count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from statistics import median

from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.controller.node.events import ApiRequest, Caller
from kraft_wire.metrics.families import families
from kraft_wire.metrics.windows import LATENCY_BOUNDS_MS, Histogram
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.effects import Reply
from kraft_wire.server.http.pages import Pages
from tests.controller.node.node_requests import register_broker
from tests.metrics.counted import CountedController, active
from tests.support.scrapes import PARSERS

PARTITIONS_OF_A_TOPIC = 1_000
REPLICAS = 3
SCRAPES = 15
HEARTBEATS = 100_000


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=640_000)
    parser.add_argument("--brokers", type=int, default=10)
    options = parser.parse_args()
    controller = _controller(options.brokers, options.partitions)
    print(f"{options.partitions:,} partitions, {options.brokers:,} brokers; milliseconds of CPU")
    for content_type in PARSERS:
        scrapes = [list(_pieces(controller, content_type)) for _ in range(SCRAPES)]
        longest = median(max(took for took, _ in pieces) for pieces in scrapes)
        whole = median(sum(took for took, _ in pieces) for pieces in scrapes)
        size = sum(size for _, size in scrapes[0])
        print(f"{content_type}: {size:,} bytes, {whole:.1f} ms, the longest step {longest:.1f} ms")
    print(f"a heartbeat: {_heartbeat_ns(controller):.0f} ns")


def _controller(brokers: int, partitions: int) -> CountedController:
    """Return an active controller with this metadata, which has had a request of each API."""
    controller = active()
    for broker_id in range(brokers):
        controller.ask(broker_id, register_broker(broker_id), 4)
    controller.flush()
    for broker_id in range(brokers):
        epoch = controller.state.metadata.brokers[broker_id].epoch
        beat = BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch)
        controller.ask(f"beat of {broker_id}", beat, 1)
    controller.flush()
    metadata, offset = controller.state.metadata, controller.disk.end_offset
    for number in range(partitions):
        index = number % PARTITIONS_OF_A_TOPIC
        topic_id = Uuid((1 + number // PARTITIONS_OF_A_TOPIC).to_bytes(16, "big"))
        if not index:
            metadata.replay(TopicRecord(f"topic-{topic_id}", topic_id), offset)
        replicas = tuple((number + each) % brokers for each in range(min(REPLICAS, brokers)))
        record = PartitionRecord(
            partition_id=index, topic_id=topic_id, replicas=replicas, isr=replicas, leader=replicas[0]
        )
        metadata.replay(record, offset)
    times = controller.counted.request_times.by_api
    times.update({api.key: Histogram(LATENCY_BOUNDS_MS) for api in CONTROLLER_APIS})
    return controller


def _pieces(controller: CountedController, content_type: str) -> Iterator[tuple[float, int]]:
    """Yield the milliseconds and the bytes of each piece of a scrape."""
    process = ProcessCollector(registry=None)

    def metrics() -> Iterator[Metric]:
        yield from families(controller.values())
        yield from process.collect()

    body = iter(Pages(metrics, list).answer("GET", "/metrics", content_type).body)
    while True:
        began_s = time.thread_time()
        piece = next(body, None)
        if piece is None:
            return
        yield (time.thread_time() - began_s) * 1000, len(piece)


def _heartbeat_ns(controller: CountedController) -> float:
    """Return the nanoseconds in which a heartbeat and its answer are counted."""
    request = ApiRequest("a", BrokerHeartbeatRequest.API_KEY, 1, BrokerHeartbeatRequest(), Caller(""))
    effects = [Reply("a", BrokerHeartbeatResponse())]
    counts, now = controller.counted, controller.now
    rounds = []
    for _ in range(SCRAPES):
        began_s = time.thread_time()
        for _ in range(HEARTBEATS):
            counts.stepped(request, effects, now)
        rounds.append((time.thread_time() - began_s) / HEARTBEATS)
    return median(rounds) * 1e9


if __name__ == "__main__":
    main()
