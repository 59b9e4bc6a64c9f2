"""Measure what the state on followers costs: ``python -m compat.benches.scale.standbys``.

Three controllers, ours or Java's, take bulk creations of topics. Followers replicate and replay meanwhile.
The processor time of the leader and of each follower is measured, with the time from the last answer until
every follower has what was answered.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean

import msgspec

from compat.benches.controller.measure import PRETEND_BROKERS, TopicLoad
from compat.benches.controller.quorum import start_quorum
from compat.benches.machine import this_machine
from compat.harness.interrupts import raise_on_signals
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.pretend_broker import PretendBroker
from compat.harness.kafka.quorum import ControllerQuorum, connect
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import Workspace
from compat.harness.waiting import wait_until
from compat.harness.wire import describe_quorum

KINDS: tuple[ControllerKind, ...] = ("ours", "java")
PARTITIONS_A_TOPIC = 20
WARM_UP_TOPICS = 300


class Figures(msgspec.Struct):
    """The processor time of the leader and of a follower, in milliseconds for each thousand partitions."""

    partitions_a_second: float
    leader_ms: float
    follower_ms: float
    behind_ms: float


def main() -> int:
    """Print the figures."""
    raise_on_signals()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=3_000)
    options = parser.parse_args()
    machine = this_machine()
    print(f"{machine.cpu}, {machine.cores} cores, load {machine.load:.1f}")
    with (
        tempfile.TemporaryDirectory(prefix="kraft-wire-standbys-") as folder,
        ToolServer(Path(folder) / "tools.log") as tools,
    ):
        for kind in KINDS:
            show(kind, measure(kind, Path(folder), tools, options.topics))
    return 0


def show(kind: ControllerKind, figures: Figures) -> None:
    print(
        f"{kind:<5} {figures.partitions_a_second:,.0f} partitions/s; for 1,000 partitions the leader takes "
        f"{figures.leader_ms:.1f} ms of a core, a follower {figures.follower_ms:.1f} ms; "
        f"followers have all {figures.behind_ms:.0f} ms after the last answer",
        flush=True,
    )


def measure(kind: ControllerKind, folder: Path, tools: ToolServer, topics: int) -> Figures:
    """Start three controllers, and create topics with 20 partitions, 4 requests in flight."""
    with Workspace(folder / kind) as workspace:
        quorum = start_quorum(workspace, tools, kind, 3)
        leader = quorum.leader()
        brokers = [PretendBroker(id, quorum.cluster_id, leader.port) for id in range(1, PRETEND_BROKERS + 1)]
        load = TopicLoad(leader.port, PARTITIONS_A_TOPIC)
        load.create(WARM_UP_TOPICS, 4)
        wait_until(lambda: _is_even(quorum), "all to have all")
        before = _cpu(quorum)
        measured = load.create(topics, 4)
        answered_s = time.monotonic()
        wait_until(lambda: _is_even(quorum), "all to have all")
        behind_ms = (time.monotonic() - answered_s) * 1000
        used = {id: after - before[id] for id, after in _cpu(quorum).items()}
        for broker in brokers:
            broker.close()
    thousands = topics * PARTITIONS_A_TOPIC / 1_000
    followers = [each for id, each in used.items() if id != leader.node_id]
    return Figures(
        topics * PARTITIONS_A_TOPIC / measured.elapsed_s,
        used[leader.node_id] * 1_000 / thousands,
        mean(followers) * 1_000 / thousands,
        behind_ms,
    )


def _cpu(quorum: ControllerQuorum) -> dict[int, float]:
    return {id: node.running_process.cpu_seconds() for id, node in quorum.controllers.items()}


def _is_even(quorum: ControllerQuorum) -> bool:
    """Whether every voter has fetched the whole log, and all of it is committed."""
    with connect(quorum.leader()) as client:
        partition = describe_quorum(client).topics[0].partitions[0]
    ends = {voter.log_end_offset for voter in partition.current_voters}
    return ends == {partition.high_watermark}


if __name__ == "__main__":
    sys.exit(main())
