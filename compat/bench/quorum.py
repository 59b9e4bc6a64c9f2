"""What is measured of three controllers: how soon the next one writes, and how fast they write together."""

from __future__ import annotations

import signal
import statistics
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from compat.bench.load import Measured
from compat.bench.measure import JAVA_OPTIONS, PRETEND_BROKERS, TopicLoad, write_succeeded
from compat.bench.pretend_broker import PretendBroker
from compat.harness.cluster import ControllerKind
from compat.harness.controllers import Controller, ControllerQuorum
from compat.harness.nodes import JvmController
from compat.harness.processes import Workspace
from compat.harness.tool_server import ToolServer
from compat.harness.waiting import WaitTimeout, wait_until
from compat.harness.wire import WireClient

ASK_AGAIN_S = 0.001
GIVE_UP_S = 120.0


class QuorumSizes(msgspec.Struct, frozen=True):
    """How much of everything."""

    failovers: int = 7
    warm_up_topics: int = 200
    topics: int = 300
    partitions_a_topic: int = 10


class QuorumFigures(msgspec.Struct):
    """What three controllers of one kind do. Times are those that a client sees, one a failover."""

    killed_s: list[float]
    stopped_s: list[float]
    one_in_flight: Measured


def measure_quorum(
    kind: ControllerKind, folder: Path, tools: ToolServer, sizes: QuorumSizes
) -> QuorumFigures:
    """Start three, write, then take the leader away again and again."""
    with Workspace(folder / f"{kind}-quorum") as workspace:
        quorum = ControllerQuorum(workspace, tools, [kind] * 3, "dynamic")
        for controller in quorum.controllers.values():
            if isinstance(controller, JvmController):
                controller.jvm_options = JAVA_OPTIONS
        quorum.format()
        quorum.start()
        one_in_flight = _create_topics(quorum, sizes)
        killed = [_fail_over(quorum, kill) for _ in range(sizes.failovers)]
        stopped = [_fail_over(quorum, stop) for _ in range(sizes.failovers)]
    return QuorumFigures(killed, stopped, one_in_flight)


def _create_topics(quorum: ControllerQuorum, sizes: QuorumSizes) -> Measured:
    port = quorum.leader().port
    brokers = [PretendBroker(node_id, quorum.cluster_id, port) for node_id in range(1, PRETEND_BROKERS + 1)]
    topics = TopicLoad(port, sizes.partitions_a_topic)
    topics.create(sizes.warm_up_topics, in_flight=1)
    measured = topics.create(sizes.topics, in_flight=1)
    for broker in brokers:
        broker.close()
    return measured


def _fail_over(quorum: ControllerQuorum, end: Callable[[Controller], None]) -> float:
    """Take the leader away; seconds until another one has done a write. All three run again afterwards."""
    leader = quorum.leader()
    others = [controller for controller in quorum.running if controller is not leader]
    writers = [Writer(controller) for controller in others]
    began = time.perf_counter()
    end(leader)
    until_written(writers)
    took_s = time.perf_counter() - began
    for writer in writers:
        writer.close()
    leader.running_process.wait(30)
    leader.start()
    wait_until(lambda: all_in_step(quorum), "all three to be in step")
    return took_s


def kill(controller: Controller) -> None:
    controller.running_process.send_signal(signal.SIGKILL)


def stop(controller: Controller) -> None:
    controller.running_process.send_signal(signal.SIGTERM)


def until_written(writers: Iterable[Writer]) -> Writer:
    """Whoever does a write first."""
    began = time.perf_counter()
    while time.perf_counter() - began < GIVE_UP_S:
        for writer in writers:
            if writer.try_once():
                return writer
        time.sleep(ASK_AGAIN_S)
    raise WaitTimeout(f"nobody wrote within {GIVE_UP_S:g} s")


def all_in_step(quorum: ControllerQuorum) -> bool:
    """Whether every controller listens, and every voter has all that the leader has."""
    with suppress(OSError):
        for controller in quorum.controllers.values():
            WireClient(controller.port).close()
        with WireClient(quorum.leader().port) as client:
            return quorum.in_step(client)
    return False


class Writer:
    """A connection to one controller that stays open."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self._client = WireClient(controller.port, timeout_s=GIVE_UP_S)

    def try_once(self) -> bool:
        """Whether a write was taken. Who doesn't lead says so at once."""
        return write_succeeded(self._client)

    def close(self) -> None:
        self._client.close()


def median_ms(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1000
