"""Measure what clusters of different sizes cost: creation, the end of a broker, a restart, memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from compat.benches.controller.measure import start_and_write
from compat.benches.scale.creation import create_topics
from compat.benches.scale.ends import SESSION_TIMEOUT_MS, EndSizes, settled_bytes, shut_down
from compat.benches.scale.java_heap import give_heap
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.pretend_broker import PretendBroker
from compat.harness.kafka.quorum import ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import ProcessFailed, Workspace
from compat.harness.waiting import WaitTimeout

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
        controller.stop()
        return msgspec.structs.replace(grown, restart_s=start_and_write(controller, LONGEST_RESTART_S))
    except (OSError, ProcessFailed, WaitTimeout) as failure:
        return msgspec.structs.replace(grown, failure=str(failure).splitlines()[0])
