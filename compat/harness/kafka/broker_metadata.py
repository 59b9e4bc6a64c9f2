"""Ask one given broker for its view of the cluster (Metadata requests); a client would choose the broker."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from compat.harness.kafka.nodes import Node
from compat.harness.waiting import PATIENCE_S, wait_until
from compat.harness.wire import WireClient
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraft_wire.protocol.messages.metadata_response import MetadataResponse

METADATA_VERSION = 12


class PartitionView(msgspec.Struct, frozen=True):
    """A partition in a broker's Metadata response; ``leader`` is -1 if there is none."""

    leader: int
    replicas: tuple[int, ...]
    isr: frozenset[int]


def partitions(broker: Node, topic: str) -> dict[int, PartitionView]:
    """Return the topic's partitions by index as the broker sees them; empty if it doesn't know the topic."""
    [described] = _metadata(broker, [MetadataRequestTopic(name=topic)]).topics
    if described.error_code != ErrorCode.NONE:
        return {}
    return {
        partition.partition_index: PartitionView(
            partition.leader_id, tuple(partition.replica_nodes), frozenset(partition.isr_nodes)
        )
        for partition in described.partitions
    }


def leaders(broker: Node, topic: str) -> set[int]:
    return {view.leader for view in partitions(broker, topic).values()}


def live_brokers(broker: Node) -> set[int]:
    """Return the ids of the unfenced brokers, as this broker sees them."""
    return {described.node_id for described in _metadata(broker, []).brokers}


def topics(broker: Node) -> set[str]:
    return {described.name or "" for described in _metadata(broker, None).topics}


def wait_for_isr(
    brokers: Iterable[Node], topic: str, isr: Iterable[int], timeout_s: float = PATIENCE_S
) -> None:
    """Wait until each broker sees every partition of the topic with a leader and exactly this ISR."""
    expected = frozenset(isr)
    asked = list(brokers)

    def settled(broker: Node) -> bool:
        views = partitions(broker, topic).values()
        return bool(views) and all(view.isr == expected and view.leader in expected for view in views)

    what = f"{topic} to have ISR {sorted(expected)} on {[broker.name for broker in asked]}"
    wait_until(lambda: all(settled(broker) for broker in asked), what, timeout_s)


def wait_for_topic(
    brokers: Iterable[Node], topic: str, partition_count: int, timeout_s: float = PATIENCE_S
) -> None:
    """Wait until each broker sees ``partition_count`` partitions of the topic, with all replicas in sync."""
    asked = list(brokers)

    def complete(broker: Node) -> bool:
        described = partitions(broker, topic).values()
        return len(described) == partition_count and all(
            view.isr == frozenset(view.replicas) and view.leader in view.isr for view in described
        )

    what = f"{topic} to be complete on {[broker.name for broker in asked]}"
    wait_until(lambda: all(complete(broker) for broker in asked), what, timeout_s)


def wait_for_absence(brokers: Iterable[Node], topic: str, timeout_s: float = PATIENCE_S) -> None:
    """Wait until none of the brokers lists the topic."""
    asked = list(brokers)
    wait_until(
        lambda: not any(topic in topics(broker) for broker in asked), f"{topic} to be deleted", timeout_s
    )


def _metadata(broker: Node, asked: list[MetadataRequestTopic] | None) -> MetadataResponse:
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
    with WireClient(broker.port, host=broker.place.host) as client:
        return client.call(request, METADATA_VERSION, MetadataResponse)
