"""Measure three controllers: the time of failovers, and the speed of replicated writes."""

from __future__ import annotations

import signal
import statistics
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from compat.benches.controller.failover_pieces import (
    LogEvent,
    Logs,
    events_since,
    has_written,
    is_contested,
    pieces_ms,
)
from compat.benches.controller.load import Measured
from compat.benches.controller.measure import JAVA_OPTIONS, PRETEND_BROKERS, TopicLoad, write_succeeded
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.nodes import JvmController, OurController
from compat.harness.kafka.pretend_broker import PretendBroker
from compat.harness.kafka.quorum import Controller, ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import Workspace
from compat.harness.waiting import WaitTimeout, wait_until
from compat.harness.wire import WireClient

ASK_AGAIN_S = 0.001
GIVE_UP_S = 120.0
IDLE_SHARE = 0.2
LOOK_AGAIN_S = 1.0


class QuorumSizes(msgspec.Struct, frozen=True):
    """The sizes of the measurement."""

    failovers: int = 7
    warm_up_topics: int = 200
    topics: int = 300
    partitions_a_topic: int = 10


class Failovers(msgspec.Struct):
    """The times that a client sees, one per failover. For our controllers also the pieces of each failover,
    and how many elections were contested."""

    took_s: list[float] = []
    pieces_ms: list[list[float]] = []
    contested: int = 0


class QuorumFigures(msgspec.Struct):
    """The figures of three controllers of one kind."""

    killed: Failovers
    stopped: Failovers
    one_in_flight: Measured


def measure_quorum(
    kind: ControllerKind, folder: Path, tools: ToolServer, sizes: QuorumSizes
) -> QuorumFigures:
    """Start three controllers, create topics, then kill or stop the leader several times."""
    with Workspace(folder / f"{kind}-quorum") as workspace:
        quorum = start_quorum(workspace, tools, kind, 3)
        one_in_flight = _create_topics(quorum, sizes)
        killed = fail_over_often(quorum, kill, sizes.failovers)
        stopped = fail_over_often(quorum, stop, sizes.failovers)
    return QuorumFigures(killed, stopped, one_in_flight)


def start_quorum(
    workspace: Workspace, tools: ToolServer, kind: ControllerKind, voters: int
) -> ControllerQuorum:
    """Format and start a quorum of this many voters."""
    quorum = ControllerQuorum(workspace, tools, [kind] * voters, "dynamic")
    for controller in quorum.controllers.values():
        use_bench_options(controller)
    quorum.format()
    quorum.start()
    return quorum


def use_bench_options(controller: Controller) -> None:
    """Give a Java controller the JVM options of the benchmarks."""
    if isinstance(controller, JvmController):
        controller.jvm_options = JAVA_OPTIONS


def _create_topics(quorum: ControllerQuorum, sizes: QuorumSizes) -> Measured:
    port = quorum.leader().port
    brokers = [PretendBroker(node_id, quorum.cluster_id, port) for node_id in range(1, PRETEND_BROKERS + 1)]
    topics = TopicLoad(port, sizes.partitions_a_topic)
    topics.create(sizes.warm_up_topics, in_flight=1)
    measured = topics.create(sizes.topics, in_flight=1)
    for broker in brokers:
        broker.close()
    return measured


def fail_over_often(
    quorum: ControllerQuorum,
    end: Callable[[Controller], None],
    times: int,
    before: Callable[[Controller], None] | None = None,
) -> Failovers:
    """End the leader several times; ``before`` is called with it just before each end."""
    failovers = Failovers()
    wait_until(lambda: all_caught_up(quorum), "all to catch up")
    for _ in range(times):
        _fail_over(quorum, end, failovers, before)
    return failovers


def _fail_over(
    quorum: ControllerQuorum,
    end: Callable[[Controller], None],
    failovers: Failovers,
    before: Callable[[Controller], None] | None,
) -> None:
    """End the leader, and note the time until another controller accepts a write; then restart the leader
    and wait until all have settled."""
    leader = quorum.leader()
    others = [controller for controller in quorum.running if controller is not leader]
    writers = [Writer(controller) for controller in others]
    if before is not None:
        before(leader)
    began_s = time.time()
    end(leader)
    successor = first_to_write(writers).controller
    answered_s = time.time()
    for writer in writers:
        writer.close()
    leader.running_process.wait(30)
    failovers.took_s.append(answered_s - began_s)
    if isinstance(successor, OurController):
        # The answer leaves before the events of the step are logged.
        wait_until(lambda: has_written(_log_of(successor, began_s)), "the log of the first write")
        third = next(controller for controller in others if controller is not successor)
        _note_pieces(failovers, began_s, answered_s, (leader, successor, third))
    leader.start()
    wait_until(lambda: all_caught_up(quorum), "all to catch up")
    wait_until_idle(quorum)


def _note_pieces(
    failovers: Failovers, began_s: float, answered_s: float, controllers: Iterable[Controller]
) -> None:
    logs = Logs(*(_log_of(controller, began_s) for controller in controllers))
    failovers.pieces_ms.append(pieces_ms(began_s, answered_s, logs))
    failovers.contested += is_contested(logs)


def _log_of(controller: Controller, began_s: float) -> list[LogEvent]:
    return events_since(controller.running_process.log_text(), began_s)


def wait_until_idle(quorum: ControllerQuorum, timeout_s: float = 60.0) -> None:
    """Wait until no controller uses the processor: one that was just started still loads metadata and
    modules."""

    def is_idle() -> bool:
        processes = [controller.running_process for controller in quorum.running]
        before = [process.cpu_seconds() for process in processes]
        time.sleep(LOOK_AGAIN_S)
        spent = (process.cpu_seconds() - then for process, then in zip(processes, before, strict=True))
        return max(spent) < IDLE_SHARE * LOOK_AGAIN_S

    wait_until(is_idle, "all three to be idle", timeout_s)


def kill(controller: Controller) -> None:
    controller.running_process.send_signal(signal.SIGKILL)


def stop(controller: Controller) -> None:
    controller.running_process.send_signal(signal.SIGTERM)


def first_to_write(writers: Iterable[Writer]) -> Writer:
    """Wait for the first writer that succeeds."""
    began = time.perf_counter()
    while time.perf_counter() - began < GIVE_UP_S:
        for writer in writers:
            if writer.try_once():
                return writer
        time.sleep(ASK_AGAIN_S)
    raise WaitTimeout(f"no controller accepted a write within {GIVE_UP_S:g} s")


def all_caught_up(quorum: ControllerQuorum) -> bool:
    """Whether every controller listens, and every voter has caught up with the high watermark."""
    with suppress(OSError):
        for controller in quorum.controllers.values():
            WireClient(controller.port).close()
        with WireClient(quorum.leader().port) as client:
            return quorum.in_step(client)
    return False


class Writer:
    """A client with an open connection to one controller."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self._client = WireClient(controller.port, timeout_s=GIVE_UP_S)

    def try_once(self) -> bool:
        """Try to write and return whether it succeeded; a controller that isn't active rejects it at once."""
        return write_succeeded(self._client)

    def close(self) -> None:
        self._client.close()


def slowest_ms(seconds: list[float]) -> float:
    return max(seconds) * 1000


def median_ms(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1000
