"""Measure what an observer costs the leader: ``python -m compat.benches.scale.observing``.

Three controllers, Java's or ours, write about 100 records a second. The leader's processor time is measured
in turns with and without an observer that follows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import msgspec

from compat.benches.controller.measure import PRETEND_BROKERS, TopicLoad
from compat.benches.controller.quorum import start_quorum
from compat.benches.machine import this_machine
from compat.harness.interrupts import raise_on_signals
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.nodes import Node, OurObserver
from compat.harness.kafka.pretend_broker import PretendBroker
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import Workspace

KINDS: tuple[ControllerKind, ...] = ("java", "ours")
PARTITIONS_A_TOPIC = 9
TOPICS_A_SECOND = 10
"""Together with the topics' own, 100 records a second."""
WARM_UP_TOPICS = 500


class Figures(msgspec.Struct):
    """The leader's processor time, in percent of a core, in each turn without an observer and with one."""

    without: list[float]
    with_observer: list[float]

    @property
    def cost(self) -> float:
        """Return what the observer costs: the median of the differences of neighbouring turns."""
        pairs = zip(self.without, self.with_observer, strict=True)
        return median(with_it - without for without, with_it in pairs)


def main() -> int:
    """Print the figures."""
    raise_on_signals()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--turns", type=int, default=6, help="turns without an observer, and as many with one"
    )
    parser.add_argument("--seconds", type=float, default=20, help="how long a turn is")
    options = parser.parse_args()
    machine = this_machine()
    print(f"{machine.cpu}, {machine.cores} cores, load {machine.load:.1f}")
    with (
        tempfile.TemporaryDirectory(prefix="kraft-wire-observing-") as folder,
        ToolServer(Path(folder) / "tools.log") as tools,
    ):
        for kind in KINDS:
            show(kind, measure(kind, Path(folder) / kind, tools, options.turns, options.seconds))
    return 0


def show(kind: ControllerKind, figures: Figures) -> None:
    print(
        f"{kind:<5} leader {median(figures.without):.1f} % of a core without an observer, "
        f"{median(figures.with_observer):.1f} % with one; the observer costs {figures.cost:.1f} %",
        flush=True,
    )


def measure(kind: ControllerKind, folder: Path, tools: ToolServer, turns: int, seconds: float) -> Figures:
    """Start three controllers and write all the time; an observer comes and goes."""
    figures = Figures([], [])
    with Workspace(folder) as workspace:
        quorum = start_quorum(workspace, tools, kind, 3)
        leader = quorum.leader()
        brokers = [PretendBroker(id, quorum.cluster_id, leader.port) for id in range(1, PRETEND_BROKERS + 1)]
        load = TopicLoad(leader.port, PARTITIONS_A_TOPIC)
        load.create(WARM_UP_TOPICS, 4)
        observer = OurObserver(workspace, quorum.address_list, {})
        for _ in range(turns):
            figures.without.append(_leaders_share(leader, load, seconds))
            observer.start()
            observer.wait_until_ready()
            load.create(TOPICS_A_SECOND, 1)
            figures.with_observer.append(_leaders_share(leader, load, seconds))
            observer.stop()
        for broker in brokers:
            broker.close()
    return figures


def _leaders_share(leader: Node, load: TopicLoad, seconds: float) -> float:
    """Write 100 records a second, and return the leader's processor time in percent of a core."""
    began_s, before_s = time.monotonic(), leader.running_process.cpu_seconds()
    for topic in range(int(seconds * TOPICS_A_SECOND)):
        load.create(1, 1)
        time.sleep(max(0.0, began_s + topic / TOPICS_A_SECOND - time.monotonic()))
    took_s = time.monotonic() - began_s
    return 100 * (leader.running_process.cpu_seconds() - before_s) / took_s


if __name__ == "__main__":
    sys.exit(main())
