"""Run a quorum of several controllers, Java's, ours or both, and brokers that bootstrap from all of them."""

from __future__ import annotations

import base64
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from confluent_kafka.admin import AdminClient

from compat.harness import clients
from compat.harness.kafka import broker_metadata
from compat.harness.kafka.cluster import NEWEST_KAFKA, ControllerKind, random_cluster_id
from compat.harness.kafka.jars import KafkaJars, find_jars
from compat.harness.kafka.nodes import HERE, JvmBroker, JvmController, Node, OurController, Place
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import segments
from compat.harness.ports import free_port
from compat.harness.processes import ProcessFailed, Workspace
from compat.harness.waiting import PATIENCE_S, wait_until
from compat.harness.wire import WireClient, describe_quorum
from kraft_wire.log.batch import Batch, split_batches
from kraft_wire.log.control import decode_control_batch
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_cluster_response import DescribeClusterResponse
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage

FIRST_CONTROLLER_ID = 100
CREATE_TOPICS_VERSION = 7
DESCRIBE_CLUSTER_VERSION = 1
CONTROLLERS = 2
Voters = Literal["static", "dynamic"]
"""controller.quorum.voters (kraft.version 0), or storage format --initial-controllers (kraft.version 1)."""

Controller = JvmController | OurController


class ControllerQuorum:
    """Controllers 100, 101, ... of the given kinds. Java's are of the newest Kafka, or run ``jars``. Ours
    need neither jars nor tools."""

    def __init__(
        self,
        workspace: Workspace,
        tools: ToolServer,
        kinds: Sequence[ControllerKind],
        voters: Voters = "dynamic",
        properties: Mapping[str, str] | None = None,
        places: Sequence[Place] = (),
        jars: KafkaJars | None = None,
    ) -> None:
        self._jars = jars
        self.workspace = workspace
        self.tools = tools
        self.cluster_id = random_cluster_id()
        self.voters = voters
        self.ports = {FIRST_CONTROLLER_ID + n: free_port() for n in range(len(kinds))}
        self.places = dict(zip(self.ports, places or [HERE] * len(kinds), strict=True))
        self.controllers: dict[int, Controller] = {
            id: self._make(kind, id, properties or {}) for id, kind in zip(self.ports, kinds, strict=True)
        }
        self.brokers: dict[int, JvmBroker] = {}
        self._admin: AdminClient | None = None

    @property
    def address_list(self) -> str:
        return ",".join(self._addresses().values())

    def _addresses(self) -> dict[int, str]:
        return {id: f"{self.places[id].host}:{port}" for id, port in self.ports.items()}

    def _quorum_properties(self) -> dict[str, str]:
        if self.voters == "dynamic":
            return {"controller.quorum.bootstrap.servers": self.address_list}
        voters = ",".join(f"{id}@{address}" for id, address in self._addresses().items())
        return {"controller.quorum.voters": voters, "controller.quorum.bootstrap.servers": ""}

    def _make(self, kind: ControllerKind, id: int, properties: Mapping[str, str]) -> Controller:
        extra = {**self._quorum_properties(), **properties}
        if kind == "ours":
            return OurController(self.workspace, id, extra, self.ports[id], self.places[id])
        jars = self._jars or find_jars(NEWEST_KAFKA)
        return JvmController(self.workspace, id, jars, self.tools, extra, self.ports[id])

    # Starting.

    def new_controller(
        self, kind: ControllerKind, properties: Mapping[str, str] | None = None, place: Place = HERE
    ) -> Controller:
        """Create and format a controller that is no voter yet, without starting it."""
        id = max(self.controllers) + 1
        self.ports[id], self.places[id] = free_port(), place
        controller = self._make(kind, id, properties or {})
        controller.format(self.cluster_id, "--no-initial-controllers")
        self.controllers[id] = controller
        return controller

    def replace(self, id: int, kind: ControllerKind, properties: Mapping[str, str] | None = None) -> None:
        """Stop a controller, and start one of another kind on its folder and port."""
        self.controllers[id].stop()
        self.controllers[id] = self._make(kind, id, properties or {})
        self.controllers[id].start()

    def format(self, *options: str) -> None:
        """Format every controller's folder as a voter."""
        for controller in self.controllers.values():
            controller.format(self.cluster_id, *self._voter_options(), *options)

    def format_again(self, controller: Controller) -> None:
        """Format a voter's folder again with the same options. With static voters, which name no directory
        ids, it gets another directory id."""
        controller.format(self.cluster_id, *self._voter_options())

    def _voter_options(self) -> list[str]:
        if self.voters == "static":
            return []
        entries = (f"{id}@{address}:{directory_id(id)}" for id, address in self._addresses().items())
        return ["--initial-controllers", ",".join(entries)]

    def start(self, ids: Iterable[int] | None = None) -> None:
        """Start the controllers with these ids, or all."""
        for id in self.controllers if ids is None else ids:
            self.controllers[id].start()

    def add_broker(
        self,
        node_id: int,
        properties: Mapping[str, str] | None = None,
        log_dir_count: int = 1,
        place: Place = HERE,
    ) -> JvmBroker:
        """Create and format a broker without starting it."""
        jars = find_jars(NEWEST_KAFKA)
        broker = JvmBroker(self.workspace, node_id, jars, self.tools, self.address_list, log_dir_count, place)
        if self.voters == "static":
            broker.change_properties(self._quorum_properties())
        broker.change_properties(properties or {})
        broker.format(self.cluster_id)
        self.brokers[node_id] = broker
        return broker

    def start_brokers(self, count: int, properties: Mapping[str, str] | None = None) -> None:
        """Start brokers 1 to ``count`` and wait until all are unfenced."""
        for node_id in range(1, count + 1):
            self.add_broker(node_id, properties).start()
        self.wait_until_brokers_are_ready()

    def wait_until_brokers_are_ready(self) -> None:
        for broker in self.brokers.values():
            broker.wait_until_ready()
        self.wait_for_brokers()

    def wait_for_brokers(self) -> None:
        """Wait until every broker sees all brokers unfenced."""
        wait_until(
            lambda: all(broker_metadata.live_brokers(b) == set(self.brokers) for b in self.brokers.values()),
            "all brokers to be unfenced",
        )

    # The leader.

    @property
    def running(self) -> list[Controller]:
        return [c for c in self.controllers.values() if c.process is not None and c.process.running]

    def leader_now(self) -> Controller | None:
        """Return the running controller that claims to lead and has committed its epoch's first record, if
        any."""
        return self.leader_among(self.running)

    def leader_among(self, controllers: Iterable[Controller]) -> Controller | None:
        """Return the one of these controllers that claims to lead and has committed a record, if any."""
        for controller in controllers:
            with suppress(OSError), connect(controller, timeout_s=2.0) as client:
                partition = describe_quorum(client).topics[0].partitions[0]
                if partition.error_code == ErrorCode.NONE and partition.high_watermark > 0:
                    return controller
        return None

    def controller_id_by(self, controller: Controller) -> int | None:
        """Return the active controller's id as ``controller`` reports it (DescribeCluster); None if it
        can't."""
        with connect(controller) as client:
            request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
            response = client.call(request, DESCRIBE_CLUSTER_VERSION, DescribeClusterResponse)
        return response.controller_id if response.error_code == ErrorCode.NONE else None

    def leader(self, timeout_s: float = PATIENCE_S) -> Controller:
        """Wait for a leader; raises ProcessFailed if a controller ended with an unexpected exit code."""

        def find() -> Controller | None:
            for controller in self.controllers.values():
                process = controller.process
                if process is not None and process.exit_code not in (None, -9, 0, 143, -15):
                    raise ProcessFailed(f"{process.name} ended with {process.exit_code}\n{process.tail()}")
            return self.leader_now()

        found = wait_until(find, "a leader", timeout_s)
        assert found is not None
        return found

    def followers(self) -> list[Controller]:
        leader = self.leader()
        return [controller for controller in self.running if controller is not leader]

    # Writing.

    def create_topic_quickly(self, name: str, timeout_s: float = PATIENCE_S) -> float:
        """Create a topic with one replica, asking every controller in turn until one does it; return the
        seconds that this took. Needs a broker."""
        began = time.monotonic()
        while time.monotonic() - began < timeout_s:
            for controller in self.running:
                with suppress(OSError), connect(controller, timeout_s=2.0) as client:
                    if _create_topic(client, name) in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                        return time.monotonic() - began
        raise AssertionError(f"no controller created {name} within {timeout_s} s")

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = clients.admin(self.bootstrap)
        return self._admin

    # Logs.

    def wait_until_equal(self, timeout_s: float = PATIENCE_S) -> bytes:
        """Wait until the logs of all running controllers are byte for byte equal, and return the bytes.

        Compared is the range from the highest log start offset to the high watermark.
        """

        def same() -> bytes | None:
            with connect(self.leader()) as client:
                if not self.in_step(client):
                    return None
                end_offset = describe_quorum(client).topics[0].partitions[0].high_watermark
            start_offset = max(log_start(controller) for controller in self.running)
            logs = {log_bytes(controller, start_offset, end_offset) for controller in self.running}
            return logs.pop() if len(logs) == 1 else None

        found = wait_until(same, "equal logs", timeout_s)
        assert found is not None
        return found

    def in_step(self, client: WireClient) -> bool:
        """Whether the log end offsets that the leader reports for all voters reach the high watermark."""
        partition = describe_quorum(client).topics[0].partitions[0]
        return partition.error_code == ErrorCode.NONE and all(
            voter.log_end_offset >= partition.high_watermark > 0 for voter in partition.current_voters
        )

    # Leadership in turns.

    def pass_leadership_on(self, leave: Callable[[Controller], None]) -> Controller:
        """Make the leader ``leave`` and check that the next controller is elected; return the former leader.

        Only the next one can be elected: the third is suspended while two topics are committed, and so lacks
        committed records. Two topics are needed because the leader may still answer a fetch of the third with
        the first one.

        On a busy machine a new Java leader may resign before the third fetches from it. Another one leads
        then; the log still says that the next controller was elected first.
        """
        former = self.leader()
        ids = list(self.controllers)
        place = ids.index(former.node_id)
        heir, third = (self.controllers[ids[(place + step) % len(ids)]] for step in (1, 2))
        third.running_process.send_signal(signal.SIGSTOP)
        try:
            with connect(former) as client:
                for _ in range(2):
                    assert _create_topic(client, f"for-{heir.name}-{time.monotonic_ns()}") == ErrorCode.NONE
                end_offset = describe_quorum(client).topics[0].partitions[0].high_watermark
            leave(former)
        finally:
            third.running_process.send_signal(signal.SIGCONT)
        assert leaders_since(self.leader(), end_offset)[0] == heir.node_id
        return former


def connect(controller: Controller, timeout_s: float = 30.0) -> WireClient:
    """Connect to a controller on its host. Raises OSError."""
    return WireClient(controller.port, host=controller.place.host, timeout_s=timeout_s)


def log_start(node: Node) -> int:
    """Return the base offset of a node's first segment."""
    return int(segments(node.data_folder)[0].stem)


def log_bytes(node: Node, start_offset: int, end_offset: int) -> bytes:
    """Return the bytes of the batches of a node's log between two offsets."""
    return b"".join(batch.data for batch in _batches(node, start_offset, end_offset))


def leaders_since(controller: Controller, start_offset: int) -> list[int]:
    """Return the node ids of the leaders that began an epoch at ``start_offset`` or later, from a
    controller's log."""
    return [
        message.leader_id
        for batch in _batches(controller, start_offset, sys.maxsize)
        if batch.header.is_control
        for message in decode_control_batch(batch)
        if isinstance(message, LeaderChangeMessage)
    ]


def _batches(node: Node, start_offset: int, end_offset: int) -> list[Batch]:
    batches, _ = split_batches(b"".join(path.read_bytes() for path in segments(node.data_folder)))
    return [
        batch
        for batch in batches
        if batch.header.base_offset >= start_offset and batch.header.next_offset <= end_offset
    ]


def flip_a_bit(controller: Controller, place: float = 0.5) -> None:
    """Flip a bit in the only segment of a stopped controller; ``place`` 0 is its beginning, 1 its end."""
    [segment] = segments(controller.data_folder)
    data = bytearray(segment.read_bytes())
    data[int(len(data) * place)] ^= 0x10
    segment.write_bytes(data)


def directory_id(node_id: int) -> str:
    """Return a directory id for --initial-controllers, always the same for the same node."""
    return base64.urlsafe_b64encode(node_id.to_bytes(16, "little")).decode().rstrip("=")


def _create_topic(client: WireClient, name: str) -> int:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    response = client.call(request, CREATE_TOPICS_VERSION, CreateTopicsResponse)
    return response.topics[0].error_code
