"""Run Kafka nodes as processes: a Java broker, a Java controller or our controller, with one interface."""

from __future__ import annotations

import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

import javaproperties
import msgspec

from compat.harness.kafka.class_archives import using_archive
from compat.harness.kafka.jars import KafkaJars, java
from compat.harness.kafka.tool_server import JVM_OPTIONS, ToolServer
from compat.harness.paths import COMMAND, NODE_LOGGING, ROOT, MissingComponent
from compat.harness.ports import HOST, free_port
from compat.harness.processes import ManagedProcess, ProcessFailed, Workspace
from compat.harness.waiting import PATIENCE_S
from compat.harness.wire import wait_until_active
from kraft_wire.storage.folder import read_meta_properties

QUICK_JVM = ("-Xmx256m", *JVM_OPTIONS)
EXIT_CODE_OF_JVM_AFTER_SIGTERM = 128 + signal.SIGTERM


class Place(msgspec.Struct, frozen=True):
    """The host of a node: its address, the prefix that runs a command there, and the folder for its data
    (None: the workspace's)."""

    host: str = HOST
    command_prefix: Sequence[str] = ()
    folder: Path | None = None


HERE = Place()


class Node(ABC):
    """A node: its properties file, its data folder, and its process while it runs.

    Port and folder survive restarts. A new object with the same name and port is the same node.
    """

    def __init__(
        self, workspace: Workspace, name: str, node_id: int, port: int | None = None, place: Place = HERE
    ) -> None:
        self.workspace = workspace
        self.name = name
        self.node_id = node_id
        self.place = place
        self.port = free_port() if port is None else port
        self.data_folder = (place.folder or workspace.folder / name) / "data"
        self.properties_file = workspace.folder / name / "server.properties"
        self.process: ManagedProcess | None = None

    @property
    def address(self) -> str:
        return f"{self.place.host}:{self.port}"

    @property
    def running_process(self) -> ManagedProcess:
        """The process of a started node."""
        if self.process is None:
            raise ProcessFailed(f"{self.name} was not started")
        return self.process

    def write_properties(self, properties: Mapping[str, str]) -> None:
        self.properties_file.parent.mkdir(parents=True, exist_ok=True)
        with self.properties_file.open("w", encoding="latin-1") as file:
            javaproperties.dump(properties, file)

    def change_properties(self, changes: Mapping[str, str]) -> None:
        """Set these keys in the properties file; an empty value removes the key."""
        with self.properties_file.open(encoding="latin-1") as file:
            properties = {**javaproperties.load(file), **changes}
        self.write_properties({key: value for key, value in properties.items() if value})

    @abstractmethod
    def start(self) -> None:
        """Start the process without waiting until it is ready."""

    @abstractmethod
    def wait_until_ready(self, timeout_s: float = PATIENCE_S) -> None:
        """Wait until a broker is unfenced, or a controller is active."""

    @abstractmethod
    def stop(self, timeout_s: float = PATIENCE_S) -> None:
        """Send SIGTERM and wait; raises ProcessFailed unless the process stops gracefully."""

    def kill(self) -> None:
        """Send SIGKILL and wait."""
        self.running_process.kill()

    def restart(self) -> None:
        """Stop gracefully, start again, and wait until ready."""
        self.stop()
        self.start()
        self.wait_until_ready()


def kafka_command(
    jars: KafkaJars, properties_file: Path, jvm_options: Sequence[str] = QUICK_JVM
) -> list[str]:
    """Return the command line that runs a Java node."""
    logging = f"-Dlog4j2.configurationFile={NODE_LOGGING}"
    return [java(), *jvm_options, logging, "-cp", jars.class_path, "kafka.Kafka", str(properties_file)]


class JvmNode(Node):
    """A Java node of one Kafka version; its properties make it a broker or a controller."""

    def __init__(
        self,
        workspace: Workspace,
        name: str,
        node_id: int,
        jars: KafkaJars,
        tools: ToolServer,
        port: int | None = None,
        place: Place = HERE,
    ) -> None:
        super().__init__(workspace, name, node_id, port, place)
        self.jars = jars
        self._tools = tools
        self.jvm_options: Sequence[str] = (*QUICK_JVM, using_archive(jars.version))

    def change_version(self, jars: KafkaJars) -> None:
        """Run another version of Kafka from the next start on."""
        self.jars = jars
        self.jvm_options = (*QUICK_JVM, using_archive(jars.version))

    def format(self, cluster_id: str, *options: str) -> None:
        """Run ``kafka-storage.sh format`` of the node's version."""
        arguments: list[str | Path] = ["format", "-t", cluster_id, "-c", self.properties_file, *options]
        self._tools.run(self.jars, "kafka.tools.StorageTool", arguments).check()

    def start(self) -> None:
        command = kafka_command(self.jars, self.properties_file, self.jvm_options)
        self.process = self.workspace.start(self.name, command)

    def wait_until_ready(self, timeout_s: float = PATIENCE_S) -> None:
        self.running_process.wait_for_log(r"Kafka Server started", timeout_s)

    def stop(self, timeout_s: float = PATIENCE_S) -> None:
        exit_code = self.running_process.terminate(timeout_s)
        if exit_code not in (EXIT_CODE_OF_JVM_AFTER_SIGTERM, -signal.SIGTERM):
            raise ProcessFailed(f"{self.name} ended with {exit_code}\n{self.running_process.tail()}")


class JvmBroker(JvmNode):
    """A Java broker of one Kafka version that bootstraps from ``controller_address``."""

    def __init__(
        self,
        workspace: Workspace,
        node_id: int,
        jars: KafkaJars,
        tools: ToolServer,
        controller_address: str,
        log_dir_count: int = 1,
        place: Place = HERE,
    ) -> None:
        super().__init__(workspace, f"broker-{node_id}", node_id, jars, tools, place=place)
        self.write_properties(
            {
                "process.roles": "broker",
                "node.id": str(node_id),
                "controller.quorum.bootstrap.servers": controller_address,
                "controller.listener.names": "CONTROLLER",
                "listeners": f"PLAINTEXT://{self.address}",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
                "log.dirs": ",".join(str(folder) for folder in self.log_folders(log_dir_count)),
                "auto.create.topics.enable": "false",
                "offsets.topic.num.partitions": "1",
                "offsets.topic.replication.factor": "1",
                "transaction.state.log.num.partitions": "1",
                "transaction.state.log.replication.factor": "1",
                "group.initial.rebalance.delay.ms": "0",
                "broker.heartbeat.interval.ms": "500",
                "num.network.threads": "2",
                "num.io.threads": "2",
                "background.threads": "2",
            }
        )

    def log_folders(self, count: int) -> list[Path]:
        """Return the paths of ``data``, ``data-2``, ``data-3`` ..."""
        others = [self.data_folder.with_name(f"data-{nth}") for nth in range(2, count + 1)]
        return [self.data_folder, *others]


def controller_properties(
    node_id: int, address: str, data_folder: Path, extra_properties: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the properties of a cluster's only controller. Java's controller and ours take the same file."""
    properties = {
        "process.roles": "controller",
        "node.id": str(node_id),
        "controller.quorum.bootstrap.servers": address,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://{address}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        "log.dirs": str(data_folder),
        "broker.heartbeat.interval.ms": "500",
        "broker.session.timeout.ms": "3000",
        **(extra_properties or {}),
    }
    return {key: value for key, value in properties.items() if value}


class JvmController(JvmNode):
    """A Java controller, alone in its quorum unless ``extra_properties`` name others."""

    def __init__(
        self,
        workspace: Workspace,
        node_id: int,
        jars: KafkaJars,
        tools: ToolServer,
        extra_properties: Mapping[str, str] | None = None,
        port: int | None = None,
    ) -> None:
        super().__init__(workspace, f"controller-{node_id}", node_id, jars, tools, port)
        self.write_properties(
            controller_properties(node_id, self.address, self.data_folder, extra_properties)
        )

    def wait_until_ready(self, timeout_s: float = PATIENCE_S) -> None:
        super().wait_until_ready(timeout_s)
        wait_until_active(self.running_process, self.port, timeout_s)


class OurController(Node):
    """Our controller, run by the installed ``kraft-wire`` command; alone in its quorum like JvmController.

    ``environment`` holds variables for its process, beside ours.
    """

    def __init__(
        self,
        workspace: Workspace,
        node_id: int,
        extra_properties: Mapping[str, str] | None = None,
        port: int | None = None,
        place: Place = HERE,
    ) -> None:
        super().__init__(workspace, f"controller-{node_id}", node_id, port, place)
        if not COMMAND.exists():
            raise MissingComponent(f"{COMMAND} is missing: run `make venv`")
        self.write_properties(
            controller_properties(node_id, self.address, self.data_folder, extra_properties)
        )
        self.environment: Mapping[str, str] = {}

    def format(self, cluster_id: str, *options: str) -> None:
        """Run ``kraft-wire storage format``."""
        run_command(
            "storage", "format", "-t", cluster_id, "-c", str(self.properties_file), *options
        ).check_returncode()

    def start(self) -> None:
        command = [*self.place.command_prefix, str(COMMAND), "server", str(self.properties_file)]
        environment = {"PYTHONUNBUFFERED": "1", **self.environment}
        self.process = self.workspace.start(self.name, command, environment)

    def wait_until_ready(self, timeout_s: float = PATIENCE_S) -> None:
        wait_until_active(self.running_process, self.port, timeout_s)

    def stop(self, timeout_s: float = PATIENCE_S) -> None:
        exit_code = self.running_process.terminate(timeout_s)
        if exit_code != 0:
            raise ProcessFailed(f"{self.name} ended with {exit_code}\n{self.running_process.tail()}")


class OurObserver(Node):
    """`kraft-wire observe` beside the controllers at ``bootstrap``; the file has ``properties`` only."""

    def __init__(self, workspace: Workspace, bootstrap: str, properties: Mapping[str, str]) -> None:
        super().__init__(workspace, "observer", node_id=-1)
        if not COMMAND.exists():
            raise MissingComponent(f"{COMMAND} is missing: run `make venv`")
        self._bootstrap = bootstrap
        self.write_properties(properties)

    def start(self) -> None:
        """Start it. Its node id is known when it is ready."""
        followed = ["--bootstrap", self._bootstrap, "--dir", str(self.data_folder)]
        own = ["--listener", self.address, "--config", str(self.properties_file)]
        command = [str(COMMAND), "observe", *followed, *own]
        self.process = self.workspace.start(self.name, command, {"PYTHONUNBUFFERED": "1"})

    def wait_until_ready(self, timeout_s: float = PATIENCE_S) -> None:
        self.running_process.wait_for_log('"listening"', timeout_s)
        self.node_id = read_meta_properties(self.data_folder).node_id

    def stop(self, timeout_s: float = PATIENCE_S) -> None:
        exit_code = self.running_process.terminate(timeout_s)
        if exit_code != 0:
            raise ProcessFailed(f"{self.name} ended with {exit_code}\n{self.running_process.tail()}")


def run_command(*arguments: str | Path, timeout_s: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
    """Run ``kraft-wire`` with these arguments until it ends."""
    argv = [str(COMMAND), *(str(argument) for argument in arguments)]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)
