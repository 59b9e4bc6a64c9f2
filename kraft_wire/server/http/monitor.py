"""Join the node, its counts and the pages: what the server needs for the HTTP listener."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import trio
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

from kraft_wire.controller.node.node import Node
from kraft_wire.metrics.counts import Counts
from kraft_wire.metrics.exporters import Exporters
from kraft_wire.metrics.families import families
from kraft_wire.metrics.health import readiness
from kraft_wire.metrics.process import DiskUse, Process
from kraft_wire.metrics.readings import read
from kraft_wire.metrics.windows import LATENCY_BOUNDS_MS, Histogram
from kraft_wire.raft.events import Now
from kraft_wire.server.http.listener import MAX_CONNECTIONS
from kraft_wire.server.http.pages import Pages
from kraft_wire.server.http.warning_counts import WarningCounts
from kraft_wire.server.reports.step_times import BOUNDS_MS, StepTimes
from kraft_wire.storage.log.metadata_log import MetadataLog
from kraft_wire.wire.traffic import Traffic

PROBE_SECONDS: Final = 0.1


class Monitor:
    """The counts of a node (``counts`` is a ``Tap``), and the pages that show them. ``files`` are the open
    files that their connections may need."""

    files = MAX_CONNECTIONS

    def __init__(
        self,
        node: Node,
        clocks: Callable[[], Now],
        log: MetadataLog,
        folder: Path,
        *,
        has_static_voters: bool,
        exporters: Exporters,
    ) -> None:
        """``log`` is the node's, in ``folder``. The CPU time of the calling thread counts."""
        self.counts = Counts(node, clocks())
        self._node = node
        self._clocks = clocks
        self._log = log
        self._folder = folder
        self._has_static_voters = has_static_voters
        self._exporters = exporters
        self._collector = ProcessCollector(registry=None)
        self._delays = Histogram(LATENCY_BOUNDS_MS)
        self._began_cpu_s = time.thread_time()
        self._warnings = WarningCounts()

    def pages(self, steps: StepTimes, traffic: Traffic) -> Pages:
        """Return the pages. ``steps`` are the times of the node's steps, ``traffic`` are the bytes of its
        connections to other controllers."""
        return Pages(
            lambda: self._families(steps, traffic),
            lambda: readiness(self._node, self.counts, self._clocks().monotonic_ms),
        )

    async def run(self) -> None:
        """Count warnings, and probe the event loop, until cancelled."""
        with self._warnings.counting():
            while True:
                due_s = trio.current_time() + PROBE_SECONDS
                await trio.sleep_until(due_s)
                self._delays.add((trio.current_time() - due_s) * 1000)

    def _families(self, steps: StepTimes, traffic: Traffic) -> Iterator[Metric]:
        process = Process(
            steps=_histogram(steps),
            delays=self._delays,
            cpu_ms=(time.thread_time() - self._began_cpu_s) * 1000,
            traffic=traffic,
            disk=self._disk_use(),
            warnings=self._warnings.by_event,
            has_static_voters=self._has_static_voters,
            exporters=self._exporters,
        )
        yield from families(read(self._node, self.counts, process, self._clocks()))
        yield from self._collector.collect()

    def _disk_use(self) -> DiskUse:
        disk = os.statvfs(self._folder)
        return DiskUse(self._log.size_bytes, disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize)


def _histogram(steps: StepTimes) -> Histogram:
    histogram = Histogram(BOUNDS_MS)
    histogram.counts = steps.counts
    histogram.sum = steps.total_ms
    return histogram
