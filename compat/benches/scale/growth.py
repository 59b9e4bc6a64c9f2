"""Measure what clusters of different sizes cost: creation, the end of a broker, a restart, memory."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from compat.benches.controller.measure import write_succeeds
from compat.benches.scale.creation import create_topics
from compat.benches.scale.ends import SESSION_TIMEOUT_MS, EndSizes, settled_bytes, shut_down
from compat.benches.scale.java_heap import give_heap
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.pretend_broker import PretendBroker
from compat.harness.kafka.quorum import Controller, ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import ProcessFailed, Workspace
from compat.harness.waiting import WaitTimeout

POLL_S = 0.01
LONGEST_RESTART_S = 300.0


class Grown(msgspec.Struct, frozen=True):
    """The costs of a cluster of this many partitions; None from the first step on that failed."""

    kind: ControllerKind
    partitions: int
    created_s: float | None = None
    resident_mib: float | None = None
    broker_end_s: float | None = None
    restart_s: float | None = None
    failure: str = ""


def measure_growth(
    kind: ControllerKind, sizes: Iterable[EndSizes], folder: Path, tools: ToolServer
) -> Iterator[Grown]:
    """Measure one controller of this kind with one cluster after the other."""
    for size in sizes:
        with Workspace(folder / f"{kind}-{size.partitions}") as workspace:
            yield _grow(kind, size, workspace, tools)


def _grow(kind: ControllerKind, size: EndSizes, workspace: Workspace, tools: ToolServer) -> Grown:
    properties = {"broker.session.timeout.ms": str(SESSION_TIMEOUT_MS)}
    quorum = ControllerQuorum(workspace, tools, [kind], "dynamic", properties)
    give_heap(quorum)
    quorum.format()
    quorum.start()
    controller = quorum.leader()
    grown = Grown(kind, size.partitions)
    try:
        *others, stopping = [
            PretendBroker(id, quorum.cluster_id, controller.port, patient=True)
            for id in range(1, size.brokers + 1)
        ]
        created_s = size.partitions / create_topics(controller.port, size)
        grown = msgspec.structs.replace(grown, created_s=created_s)
        grown = msgspec.structs.replace(grown, resident_mib=settled_bytes(controller) / 2**20)
        stopping.close()
        grown = msgspec.structs.replace(grown, broker_end_s=shut_down(controller.port, stopping))
        for broker in others:
            broker.close()
        return msgspec.structs.replace(grown, restart_s=_restart(controller))
    except (OSError, ProcessFailed, WaitTimeout) as failure:
        return msgspec.structs.replace(grown, failure=str(failure).splitlines()[0])


def _restart(controller: Controller) -> float:
    """Stop the controller and start it again; return the seconds from its start to its first write."""
    controller.stop()
    began = time.perf_counter()
    controller.start()
    while not write_succeeds(controller.port):
        if not controller.running_process.running:
            raise ProcessFailed(f"{controller.name} ended")
        if time.perf_counter() - began > LONGEST_RESTART_S:
            raise WaitTimeout(f"no write within {LONGEST_RESTART_S:g} s of the restart")
        time.sleep(POLL_S)
    return time.perf_counter() - began
