"""Join the node, its counts and the pages: what the server needs for the HTTP listener."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

from kraft_wire.controller.node.node import Node
from kraft_wire.metrics.counts import Counts
from kraft_wire.metrics.families import families
from kraft_wire.metrics.health import readiness
from kraft_wire.metrics.readings import read
from kraft_wire.metrics.windows import Histogram
from kraft_wire.raft.events import Now
from kraft_wire.server.http.listener import MAX_CONNECTIONS
from kraft_wire.server.http.pages import Pages
from kraft_wire.server.reports.step_times import BOUNDS_MS, StepTimes
from kraft_wire.wire.traffic import Traffic


class Monitor:
    """The counts of a node (``counts`` is a ``Tap``), and the pages that show them. ``files`` are the open
    files that their connections may need."""

    files = MAX_CONNECTIONS

    def __init__(self, node: Node, clocks: Callable[[], Now]) -> None:
        self.counts = Counts(node, clocks())
        self._node = node
        self._clocks = clocks
        self._process = ProcessCollector(registry=None)

    def pages(self, steps: StepTimes, traffic: Traffic) -> Pages:
        """Return the pages. ``steps`` are the times of the node's steps, ``traffic`` are the bytes of its
        connections to other controllers."""
        return Pages(
            lambda: self._families(steps, traffic),
            lambda: readiness(self._node, self.counts, self._clocks().monotonic_ms),
        )

    def _families(self, steps: StepTimes, traffic: Traffic) -> Iterator[Metric]:
        yield from families(read(self._node, self.counts, _histogram(steps), traffic, self._clocks()))
        yield from self._process.collect()


def _histogram(steps: StepTimes) -> Histogram:
    histogram = Histogram(BOUNDS_MS)
    histogram.counts = steps.counts
    histogram.sum = steps.total_ms
    return histogram
