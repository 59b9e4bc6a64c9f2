"""Measure exporters beside three controllers under load: ``python -m compat.benches.scale.exporting``.

A log of very many records is exported from its beginning, while a client creates topics, one in flight. Then
it is quiet, and each new topic is awaited at the sink.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from urllib.request import urlopen

import msgspec

from compat.benches.controller.large_log import PROPERTIES, LargeLog, make_large_log, plant
from compat.benches.controller.measure import TopicLoad
from compat.benches.machine import this_machine
from compat.harness.interrupts import raise_on_signals
from compat.harness.kafka.nodes import Node
from compat.harness.kafka.quorum import Controller, ControllerQuorum, connect
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.ports import HOST, free_port
from compat.harness.processes import Workspace
from compat.harness.waiting import WaitTimeout
from compat.harness.wire import describe_quorum
from tests.support.scrapes import PLAIN, parsed

PARTITIONS_A_TOPIC = 100
NEW_PARTITIONS = 10
ROUND = 20
QUIET_S = 5.0
LIVE_TOPICS = 200
LIVE_PAUSE_S = 0.05
PATIENCE_S = 300.0
POSITION = "kraft_wire_exporter_position"
NOTHING = "none"
SINKS: dict[str, dict[str, str]] = {
    NOTHING: {},
    "jsonl": {"type": "jsonl"},
    "parquet": {"type": "parquet"},
}


class Figures(msgspec.Struct):
    """What one sink did. ``lags_ms`` is the time from the answer to a client until the sink has the topic."""

    records: int
    export_s: float
    creations_ms: list[float]
    lags_ms: list[float]


def main() -> int:
    """Print the figures."""
    raise_on_signals()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    options = parser.parse_args()
    machine = this_machine()
    print(f"{machine.cpu}, {machine.cores} cores, load {machine.load:.1f}")
    with tempfile.TemporaryDirectory(prefix="kraft-wire-exporting-") as folder:
        tools = ToolServer(Path(folder) / "tools.log")  # it starts no JVM for controllers of ours
        topics = options.records // (PARTITIONS_A_TOPIC + 1)
        log = make_large_log(
            Path(folder) / "log", tools, topics=topics, tail_topics=1, partitions_a_topic=PARTITIONS_A_TOPIC
        )
        for sink in SINKS:
            show(sink, measure(sink, log, Path(folder) / sink, tools))
    return 0


def show(sink: str, figures: Figures) -> None:
    line = f"{sink:<8} create-topic p50 {median(figures.creations_ms):.2f} ms"
    if figures.records:
        line += f"; {figures.records / figures.export_s:,.0f} records/s"
    if figures.lags_ms:
        ordered = sorted(figures.lags_ms)
        line += f"; live lag p50 {median(ordered):.0f}, p99 {ordered[int(len(ordered) * 0.99)]:.0f} ms"
    print(line, flush=True)


def measure(sink: str, log: LargeLog, folder: Path, tools: ToolServer) -> Figures:
    """Start three controllers on copies of the log, and load them."""
    with Workspace(folder) as workspace:
        quorum = ControllerQuorum(workspace, tools, ["ours"] * 3, "static", PROPERTIES)
        listeners = {id: f"{HOST}:{free_port()}" for id in quorum.controllers}
        for id, controller in quorum.controllers.items():
            controller.change_properties(_keys(sink, controller, listeners[id]))
        plant(log, quorum)
        quorum.start()
        leader = quorum.leader()
        began_s = time.monotonic()
        load = TopicLoad(leader.port, NEW_PARTITIONS, prefix="new")
        if sink == NOTHING:
            return Figures(0, 0.0, _create_for(load, QUIET_S), [])
        end_offset = _end_offset(leader)
        creations_ms: list[float] = []
        while (position := _position(listeners[leader.node_id])) < end_offset:
            creations_ms += load.create(ROUND, 1).latencies_ms
            if time.monotonic() - began_s > PATIENCE_S:
                raise WaitTimeout(f"{sink}: at offset {position} of {end_offset} after {PATIENCE_S:g} s")
        export_s = time.monotonic() - began_s
        return Figures(
            end_offset, export_s, creations_ms, _live_lags_ms(load, leader, listeners[leader.node_id])
        )


def _keys(sink: str, controller: Node, listener: str) -> dict[str, str]:
    keys = {"kraft.wire.http.listener": listener}
    if SINKS[sink]:
        prefix = "kraft.wire.exporter.bench."
        path = str(controller.data_folder.with_name("exported"))
        keys |= {"kraft.wire.exporters": "bench", f"{prefix}path": path, f"{prefix}start": "0"}
        keys |= {f"{prefix}no-op": "true"}  # else a position that only passes NoOpRecords is told late
        keys |= {prefix + key: value for key, value in SINKS[sink].items()}
    return keys


def _create_for(load: TopicLoad, seconds: float) -> list[float]:
    latencies_ms: list[float] = []
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        latencies_ms += load.create(ROUND, 1).latencies_ms
    return latencies_ms


def _live_lags_ms(load: TopicLoad, leader: Controller, listener: str) -> list[float]:
    """Create topics, and wait for each at the sink: its position moves when it has the records."""
    lags_ms = []
    for _ in range(LIVE_TOPICS):
        load.create(1, 1)
        answered_s, end_offset = time.monotonic(), _end_offset(leader)
        while _position(listener) < end_offset:
            time.sleep(0.001)
        lags_ms.append((time.monotonic() - answered_s) * 1000)
        time.sleep(LIVE_PAUSE_S)
    return lags_ms


def _end_offset(leader: Controller) -> int:
    with connect(leader) as client:
        return describe_quorum(client).topics[0].partitions[0].high_watermark


def _position(listener: str) -> int:
    """Return the exporter's position, 0 if it has none."""
    with urlopen(f"http://{listener}/metrics?name[]={POSITION}", timeout=PATIENCE_S) as answer:
        found = parsed(answer.read().decode(), PLAIN)
    samples = found[POSITION].samples if POSITION in found else []
    return int(samples[0].value) if samples else 0


if __name__ == "__main__":
    sys.exit(main())
