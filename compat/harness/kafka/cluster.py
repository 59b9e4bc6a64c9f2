"""Run a cluster: one controller, Java's or ours, and Java brokers of one Kafka version."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from confluent_kafka.admin import AdminClient

from compat.harness import clients
from compat.harness.kafka import broker_metadata
from compat.harness.kafka.jars import KafkaJars, find_jars
from compat.harness.kafka.nodes import JvmBroker, JvmController, OurController
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import Workspace
from compat.harness.waiting import wait_until

ControllerKind = Literal["java", "ours"]

CONTROLLER_ID = 100
NEWEST_KAFKA = "4.4.0"


def random_cluster_id() -> str:
    """Return a random id in Kafka's text form; it never starts with "-", which would look like an option."""
    while (text := base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")).startswith("-"):
        pass
    return text


class Cluster:
    """Controller ``CONTROLLER_ID`` and brokers 1, 2, ... of ``broker_version``.

    The controller has the newest version and is formatted for the brokers' release, as in a rolling upgrade.
    """

    def __init__(
        self,
        workspace: Workspace,
        tools: ToolServer,
        controller_kind: ControllerKind,
        broker_version: str,
        controller_properties: Mapping[str, str] | None = None,
    ) -> None:
        self.workspace = workspace
        self.tool_server = tools
        self.cluster_id = random_cluster_id()
        self.broker_jars = find_jars(broker_version)
        self.controller_properties = controller_properties
        self.controller = make_controller(workspace, tools, controller_kind, controller_properties)
        self.brokers: dict[int, JvmBroker] = {}
        self._admin: AdminClient | None = None

    def format_controller(self) -> None:
        self.controller.format(self.cluster_id, "--standalone", *release_options(self.broker_jars))

    def add_broker(self, node_id: int, log_dir_count: int = 1) -> JvmBroker:
        """Create and format a broker without starting it."""
        broker = JvmBroker(
            self.workspace,
            node_id,
            self.broker_jars,
            self.tool_server,
            self.controller.address,
            log_dir_count,
        )
        broker.format(self.cluster_id)
        self.brokers[node_id] = broker
        return broker

    def start(self, log_dir_counts: Sequence[int]) -> None:
        """Format and start the controller and a broker for each entry; wait until all are unfenced."""
        self.format_controller()
        self.controller.start()
        for node_id, log_dir_count in enumerate(log_dir_counts, start=1):
            self.add_broker(node_id, log_dir_count).start()
        self.controller.wait_until_ready()
        for broker in self.brokers.values():
            broker.wait_until_ready()
        self.wait_for_brokers(self.brokers)

    def hand_over(self, to: ControllerKind) -> None:
        """Stop the controller and start one of the other kind on its folder and port."""
        self.controller.stop()
        port = self.controller.port
        self.controller = make_controller(
            self.workspace, self.tool_server, to, self.controller_properties, port
        )
        self.controller.start()
        self.controller.wait_until_ready()

    @property
    def running(self) -> list[JvmBroker]:
        return [broker for broker in self.brokers.values() if broker.running_process.running]

    def create_topic(
        self, name: str, partitions: int, replicas: int, config: dict[str, str] | None = None
    ) -> None:
        """Create a topic and wait until every running broker sees all replicas in sync."""
        clients.create_topic(self.admin(), name, partitions, replicas, config)
        broker_metadata.wait_for_topic(self.running, name, partitions)

    def create_topic_on(self, name: str, assignments: Sequence[Sequence[int]]) -> None:
        """Create a topic with these replicas for partitions 0, 1, ...; the first is the preferred leader."""
        clients.create_topic_on(self.admin(), name, assignments)
        broker_metadata.wait_for_topic(self.running, name, len(assignments))

    def wait_for_brokers(self, broker_ids: Iterable[int]) -> None:
        """Wait until every running broker sees exactly these brokers unfenced."""
        expected = set(broker_ids)
        wait_until(
            lambda: all(broker_metadata.live_brokers(broker) == expected for broker in self.running),
            f"brokers {sorted(expected)} to be the unfenced ones",
        )

    def wait_for_isr(self, topic: str, isr: Iterable[int]) -> None:
        """Wait until every running broker sees every partition of the topic with exactly this ISR."""
        broker_metadata.wait_for_isr(self.running, topic, isr)

    def wait_for_absence(self, topic: str) -> None:
        """Wait until no running broker lists the topic."""
        broker_metadata.wait_for_absence(self.running, topic)

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def admin(self) -> AdminClient:
        """Return an admin client of the brokers, which forward its requests to the controller."""
        if self._admin is None:
            self._admin = clients.admin(self.bootstrap)
        return self._admin


def make_controller(
    workspace: Workspace,
    tools: ToolServer,
    kind: ControllerKind,
    extra_properties: Mapping[str, str] | None = None,
    port: int | None = None,
) -> JvmController | OurController:
    """Return a controller that is neither formatted nor started."""
    if kind == "java":
        return JvmController(workspace, CONTROLLER_ID, find_jars(NEWEST_KAFKA), tools, extra_properties, port)
    return OurController(workspace, CONTROLLER_ID, extra_properties, port)


def release_options(jars: KafkaJars) -> tuple[str, ...]:
    """Return the format options for a controller of the newest Kafka with brokers of this version."""
    return () if jars.version == NEWEST_KAFKA else ("--release-version", jars.release)
