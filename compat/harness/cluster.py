"""A whole cluster: one controller, Java's or ours, and JVM brokers of one Kafka version."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping, Sequence
from typing import Literal

from confluent_kafka.admin import AdminClient

from compat.harness import clients
from compat.harness.jars import KafkaJars, find_jars
from compat.harness.nodes import JvmBroker, JvmController, OurController
from compat.harness.processes import Workspace
from compat.harness.tool_server import ToolServer
from compat.harness.waiting import wait_until

ControllerKind = Literal["java", "ours"]

CONTROLLER_ID = 100
NEWEST_KAFKA = "4.4.0"


def random_cluster_id() -> str:
    """A random id in Kafka's text form, never one that an option parser would take for an option."""
    while (text := base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")).startswith("-"):
        pass
    return text


class Cluster:
    """Controller ``CONTROLLER_ID`` and brokers 1, 2, ... of ``broker_version``.

    The controller is the newest there is, formatted at the brokers' release, as in a rolling upgrade.
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
        self.clients: dict[str, AdminClient] = {}

    def format_controller(self) -> None:
        self.controller.format(self.cluster_id, "--standalone", *release_options(self.broker_jars))

    def add_broker(self, node_id: int, log_dir_count: int = 1) -> JvmBroker:
        """A formatted broker, not started."""
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
        """Format and start everything, one broker an entry, and wait until every broker is unfenced."""
        self.format_controller()
        self.controller.start()
        for node_id, log_dir_count in enumerate(log_dir_counts, start=1):
            self.add_broker(node_id, log_dir_count).start()
        self.controller.wait_until_ready()
        for broker in self.brokers.values():
            broker.wait_until_ready()
        wait_until(
            lambda: clients.live_brokers(self.admin()) == set(self.brokers), "all brokers in the metadata"
        )

    def hand_over(self, to: ControllerKind) -> None:
        """Stop the controller and start one of the other kind in its place, on its folder."""
        self.controller.stop()
        port = self.controller.port
        self.controller = make_controller(
            self.workspace, self.tool_server, to, self.controller_properties, port
        )
        self.controller.start()
        self.controller.wait_until_ready()

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def admin(self, *broker_ids: int) -> AdminClient:
        """An admin client that bootstraps from these brokers (all, when none is named)."""
        addresses = ",".join(self.brokers[broker_id].address for broker_id in broker_ids) or self.bootstrap
        if addresses not in self.clients:
            self.clients[addresses] = clients.admin(addresses)
        return self.clients[addresses]


def make_controller(
    workspace: Workspace,
    tools: ToolServer,
    kind: ControllerKind,
    extra_properties: Mapping[str, str] | None = None,
    port: int | None = None,
) -> JvmController | OurController:
    """A controller that is neither formatted nor started."""
    if kind == "java":
        return JvmController(workspace, CONTROLLER_ID, find_jars(NEWEST_KAFKA), tools, extra_properties, port)
    return OurController(workspace, CONTROLLER_ID, extra_properties, port)


def release_options(jars: KafkaJars) -> tuple[str, ...]:
    """The format options by which a controller of the newest Kafka serves brokers of these jars."""
    return () if jars.version == NEWEST_KAFKA else ("--release-version", jars.release)
