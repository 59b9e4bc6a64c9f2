"""Let a broker of a large cluster end, properly or not, and measure what that costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from compat.benches.scale.creation import create_topics
from compat.benches.scale.java_heap import give_heap
from compat.benches.scale.peak import forget_peak, peak_bytes
from compat.benches.scale.pulse import feel_pulse
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.pretend_broker import PretendBroker
from compat.harness.kafka.quorum import Controller, ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import Workspace
from compat.harness.waiting import WaitTimeout
from compat.harness.wire import WireClient, describe_quorum
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse

SESSION_TIMEOUT_MS = 9000
ASK_AGAIN_S = 0.02
QUIET_S = 2.0
LONGEST_S = 180.0


class EndSizes(msgspec.Struct, frozen=True):
    """The size of the cluster: ``controllers`` of one kind, pretend ``brokers``, partitions of RF 3."""

    controllers: int = 1
    brokers: int = 4
    partitions: int = 640_000
    topics_a_request: int = 50
    partitions_a_topic: int = 100
    in_flight: int = 4


class Ended(msgspec.Struct, frozen=True):
    """What an end of a broker cost. ``took_s`` is the time until it may go, or until its last record."""

    took_s: float
    longest_heartbeat_ms: float
    changes_of_leader: int
    more_bytes: int
    failures: tuple[str, ...]


class EndFigures(msgspec.Struct, frozen=True):
    """The figures of one kind of controller."""

    partitions: int
    created_per_s: float
    resident_bytes: int
    stopped: Ended
    crashed: Ended


def measure_ends(
    kind: ControllerKind,
    folder: Path,
    tools: ToolServer,
    sizes: EndSizes,
    settings: Mapping[str, str] | None = None,
) -> EndFigures:
    """Create the partitions, let one broker shut down, and another crash."""
    properties = {"broker.session.timeout.ms": str(SESSION_TIMEOUT_MS), **(settings or {})}
    with Workspace(folder / f"{kind}-{sizes.controllers}-{sizes.partitions}") as workspace:
        quorum = ControllerQuorum(workspace, tools, [kind] * sizes.controllers, "dynamic", properties)
        give_heap(quorum)
        quorum.format()
        quorum.start()
        leader = quorum.leader()
        brokers = [
            PretendBroker(id, quorum.cluster_id, leader.port, patient=kind == "java")
            for id in range(1, sizes.brokers + 1)
        ]
        created_per_s = create_topics(leader.port, sizes)
        resident_bytes = settled_bytes(leader)
        *others, crashing, stopping = brokers
        stopping.close()
        stopped = _measure(quorum, leader, [*others, crashing], lambda: shut_down(leader.port, stopping))
        crashing.close()
        crashed = _measure(quorum, leader, others, lambda: _wait_for_fencing(leader.port))
        for broker in others:
            broker.close()
    return EndFigures(sizes.partitions, created_per_s, resident_bytes, stopped, crashed)


def _measure(
    quorum: ControllerQuorum, leader: Controller, others: list[PretendBroker], end: Callable[[], float]
) -> Ended:
    process = leader.running_process
    with WireClient(leader.port) as client:
        epoch_before = describe_quorum(client).topics[0].partitions[0].leader_epoch
    before_bytes = process.resident_bytes()
    forget_peak(process.pid)
    with feel_pulse(others, leader.port) as pulse:
        took_s = end()
        time.sleep(QUIET_S)
    with WireClient(quorum.leader().port) as client:
        epoch = describe_quorum(client).topics[0].partitions[0].leader_epoch
    more_bytes = max(0, peak_bytes(process.pid) - before_bytes)
    return Ended(took_s, pulse.longest_ms, epoch - epoch_before, more_bytes, tuple(pulse.failures))


def shut_down(port: int, broker: PretendBroker) -> float:
    """Ask for a controlled shutdown until it is granted; return the seconds that it took."""
    request = msgspec.structs.replace(broker.heartbeat(), want_shut_down=True)
    began = time.perf_counter()
    with WireClient(port, timeout_s=LONGEST_S) as client:
        while time.perf_counter() - began < LONGEST_S:
            answer = client.call(request, 1, BrokerHeartbeatResponse)
            if answer.error_code not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
                raise WaitTimeout(f"shutting down: {ErrorCode(answer.error_code).name}")
            if answer.should_shut_down:
                return time.perf_counter() - began
            time.sleep(ASK_AGAIN_S)
    raise WaitTimeout(f"the broker may not go after {LONGEST_S:g} s")


def _wait_for_fencing(port: int) -> float:
    """Wait until the log grows and is quiet again; return the seconds from its first growth to its last."""
    began = time.perf_counter()
    first = last = 0.0
    with WireClient(port, timeout_s=LONGEST_S) as client:
        end = _end_offset(client)
        while time.perf_counter() - began < LONGEST_S:
            now_end, now = _end_offset(client), time.perf_counter()
            if now_end > end + 10:  # a no-op record comes every 500 ms
                first, last = first or now, now
            elif first and now - last > QUIET_S:
                return last - first
            end = now_end
            time.sleep(ASK_AGAIN_S)
    raise WaitTimeout(f"the broker wasn't fenced within {LONGEST_S:g} s")


def _end_offset(client: WireClient) -> int:
    return describe_quorum(client).topics[0].partitions[0].high_watermark


def settled_bytes(controller: Controller) -> int:
    """Return the resident memory when the controller has been idle for a while."""
    process = controller.running_process
    while True:
        before_s = process.cpu_seconds()
        time.sleep(QUIET_S)
        if process.cpu_seconds() - before_s < QUIET_S / 5:
            return process.resident_bytes()
