"""Measure three controllers with very many partitions: the time to the first write, and the memory."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import msgspec

from compat.benches.controller.large_log import PROPERTIES, LargeLog, plant
from compat.benches.controller.measure import JAVA_OPTIONS, write_succeeds
from compat.benches.controller.quorum import (
    Writer,
    all_caught_up,
    first_to_write,
    kill,
    stop,
    wait_until_idle,
)
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.nodes import JvmController
from compat.harness.kafka.quorum import Controller, ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import ManagedProcess, ProcessFailed, Workspace
from compat.harness.waiting import WaitTimeout, wait_until

JAVA_HEAP = "-Xmx2g"
STARTED_WITHIN_S = 300.0

_BECAME_LEADER = {
    "ours": re.compile(r'^\{"time":"([^"]+)".*"event":"became leader"', re.MULTILINE),
    "java": re.compile(r"^(\S+) INFO \[RaftManager id=\d+\] Completed transition to Leader\(", re.MULTILINE),
}


class LargeSizes(msgspec.Struct, frozen=True):
    """The sizes of the measurement. The last ``tail_topics`` come after the snapshot."""

    topics: int = 6400
    tail_topics: int = 640
    partitions_a_topic: int = 100
    failovers: int = 3

    @property
    def partitions(self) -> int:
        return self.topics * self.partitions_a_topic


class Failover(msgspec.Struct, frozen=True):
    """The time to the first answered write: since the old leader's end (or the start), and since the new
    leader's transition to the LEADER role."""

    client_s: float
    role_s: float


class LargeFigures(msgspec.Struct):
    """The figures of three controllers of one kind. ``resident_bytes`` is the largest of the three when
    idle."""

    started: Failover
    resident_bytes: int
    killed: list[Failover]
    stopped: list[Failover]


def measure_large(
    kind: ControllerKind, log: LargeLog, folder: Path, tools: ToolServer, sizes: LargeSizes
) -> LargeFigures:
    """Start three controllers on copies of the log, then kill or stop the leader several times."""
    with Workspace(folder / f"{kind}-large") as workspace:
        quorum = ControllerQuorum(workspace, tools, [kind] * 3, "static", PROPERTIES)
        for controller in quorum.controllers.values():
            if isinstance(controller, JvmController):
                controller.jvm_options = (JAVA_HEAP, *JAVA_OPTIONS[1:])
        plant(log, quorum)
        started = _start(quorum, kind)
        wait_until_idle(quorum, STARTED_WITHIN_S)
        resident_bytes = max(controller.running_process.resident_bytes() for controller in quorum.running)
        killed = [_fail_over(quorum, kind, kill) for _ in range(sizes.failovers)]
        stopped = [_fail_over(quorum, kind, stop) for _ in range(sizes.failovers)]
    return LargeFigures(started, resident_bytes, killed, stopped)


def _start(quorum: ControllerQuorum, kind: ControllerKind) -> Failover:
    began = time.time()
    quorum.start()
    while time.time() - began < STARTED_WITHIN_S:
        for controller in quorum.controllers.values():
            if write_succeeds(controller.port):
                return _since(began, controller, kind)
            if not controller.running_process.running:
                raise ProcessFailed(f"{controller.name} ended\n{controller.running_process.tail()}")
        time.sleep(0.002)
    raise WaitTimeout(f"no controller accepted a write within {STARTED_WITHIN_S:g} s")


def _fail_over(quorum: ControllerQuorum, kind: ControllerKind, end: Callable[[Controller], None]) -> Failover:
    """End the leader and measure the failover; afterwards all three run again and are idle."""
    leader = quorum.leader()
    writers = [Writer(controller) for controller in quorum.running if controller is not leader]
    began = time.time()
    end(leader)
    took = _since(began, first_to_write(writers).controller, kind)
    for writer in writers:
        writer.close()
    leader.running_process.wait(60)
    leader.start()
    wait_until(lambda: all_caught_up(quorum), "all three to catch up", STARTED_WITHIN_S)
    wait_until_idle(quorum, STARTED_WITHIN_S)
    return took


def _since(began: float, controller: Controller, kind: ControllerKind) -> Failover:
    now = time.time()
    return Failover(now - began, now - _became_leader_at(controller.running_process, kind))


def _became_leader_at(process: ManagedProcess, kind: ControllerKind) -> float:
    """Read the time from the node's own log, which has milliseconds."""
    found = _BECAME_LEADER[kind].findall(process.log_text())
    if not found:
        raise ProcessFailed(f"{process.name} accepted a write but didn't log that it leads\n{process.tail()}")
    return datetime.fromisoformat(found[-1].replace(",", ".")).timestamp()


def role_ms(failovers: list[Failover]) -> list[float]:
    return [failover.role_s * 1000 for failover in failovers]


def client_ms(failovers: list[Failover]) -> list[float]:
    return [failover.client_s * 1000 for failover in failovers]
