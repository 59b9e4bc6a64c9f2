"""Create very many partitions, with a few large requests in flight."""

from __future__ import annotations

from typing import Protocol

from compat.benches.controller.measure import TopicLoad


class CreationSizes(Protocol):
    """How many partitions, in which requests."""

    @property
    def partitions(self) -> int: ...
    @property
    def topics_a_request(self) -> int: ...
    @property
    def partitions_a_topic(self) -> int: ...
    @property
    def in_flight(self) -> int: ...


def create_topics(port: int, sizes: CreationSizes) -> float:
    """Create the partitions, at replication factor 3; return how many a second."""
    a_request = sizes.topics_a_request * sizes.partitions_a_topic
    load = TopicLoad(port, sizes.partitions_a_topic, sizes.topics_a_request)
    measured = load.create(max(1, sizes.partitions // a_request), sizes.in_flight)
    return measured.per_second * a_request
