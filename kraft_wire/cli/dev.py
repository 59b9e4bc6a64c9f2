"""``kraft-wire dev``: run a controller to try things on, and write the properties of a broker for it."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Mapping
from errno import EADDRINUSE
from pathlib import Path

from kraft_wire.cli.errors import CommandError, UsageError, run_server
from kraft_wire.cli.storage.format import only_voter
from kraft_wire.cli.storage.formatting import format_node
from kraft_wire.metadata.features.supported import initial_levels
from kraft_wire.server import logging
from kraft_wire.server.config.server_config import node_config, server_config
from kraft_wire.server.entropy import SystemEntropy
from kraft_wire.server.logging import LogFormat, LogLevel
from kraft_wire.storage.errors import NotFormatted
from kraft_wire.storage.folder import read_meta_properties
from kraft_wire.wire.address import MAX_PORT

HOST = "127.0.0.1"
CONTROLLER_ID = 1
BROKER_ID = 2
BROKER_FILE = "broker.properties"
DEFAULT_PORT = 9093
DEFAULT_BROKER_PORT = 9092


def dev(
    *,
    dir: str | None = None,
    port: int = DEFAULT_PORT,
    broker_port: int = DEFAULT_BROKER_PORT,
    log_level: LogLevel | None = None,
    log_format: LogFormat | None = None,
) -> int:
    """Run the controller of a new cluster, ready for a broker, until SIGTERM, SIGINT or SIGHUP.

    Formats a folder for the controller and one for a broker, writes the broker's properties beside them and
    prints them. A real Kafka broker starts with that file as it is.

    For example:

        kraft-wire dev
        kraft-wire dev --dir /tmp/cluster --port 19093 --broker-port 19092

    Parameters
    ----------
    dir
        The folder to keep everything in. It continues with the cluster of an earlier run, and writes
        broker.properties again. By default a temporary folder, which is removed at the end.
    port
        The controller's port on 127.0.0.1; 0 for any free one.
    broker_port
        The port for the broker.
    log_level
        The lowest level to log. Default: the environment's KRAFT_WIRE_LOG_LEVEL, otherwise info.
    log_format
        The form of the log. Default: the environment's KRAFT_WIRE_LOG_FORMAT, otherwise text on a terminal
        and json elsewhere.
    """
    logging.configure(logging.log_level(log_level), form=logging.log_format(log_format))
    for option, number in (("--port", port), ("--broker-port", broker_port)):
        if not 0 <= number <= MAX_PORT:
            raise UsageError(f"{option} {number} is not a port; give one from 1 to {MAX_PORT}, or 0 for any")
    if port and port == broker_port:
        raise UsageError(f"--port and --broker-port are both {port}; give two different ones")
    port = _bindable_port(port)
    if dir is not None:
        return _run_in(Path(dir).absolute(), port, broker_port)
    temporary = Path(tempfile.mkdtemp(prefix="kraft-wire-"))
    try:
        return _run_in(temporary, port, broker_port)
    finally:
        shutil.rmtree(temporary)


def controller_properties(folder: Path, port: int) -> dict[str, str]:
    """Return the properties of a controller that is alone in its quorum."""
    return {
        "process.roles": "controller",
        "node.id": str(CONTROLLER_ID),
        "controller.quorum.bootstrap.servers": f"{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://{HOST}:{port}",
        "log.dirs": str(folder / "controller"),
    }


def broker_properties(folder: Path, port: int, broker_port: int) -> dict[str, str]:
    """Return the properties of a broker of that controller. One broker is enough for Kafka's own topics."""
    return {
        "process.roles": "broker",
        "node.id": str(BROKER_ID),
        "controller.quorum.bootstrap.servers": f"{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:{broker_port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(folder / "broker"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


def _run_in(folder: Path, port: int, broker_port: int) -> int:
    controller = controller_properties(folder, port)
    broker = broker_properties(folder, port, broker_port)
    _format(controller, broker)
    text = "".join(f"{key}={value}\n" for key, value in broker.items())
    file = folder / BROKER_FILE

    def hand_out_broker_file() -> None:
        """Write and print the file. Before the folder is locked, it may be that of a running controller."""
        file.write_text(text, "latin-1")
        print(
            f"# A broker for this controller. Start one with Kafka's kafka-server-start and {file}\n{text}",
            flush=True,
        )

    from kraft_wire.server.main import run

    return run_server(lambda: run(server_config(controller, "dev"), hand_out_broker_file))


def _format(controller: Mapping[str, str], broker: Mapping[str, str]) -> None:
    """Format the folders of both nodes for one cluster, unless an earlier run did."""
    nodes = [node_config(properties, "dev") for properties in (controller, broker)]
    try:
        cluster_id = read_meta_properties(Path(nodes[0].metadata_log_dir)).cluster_id
    except NotFormatted:
        cluster_id = str(SystemEntropy().uuid())
    for node in nodes:
        voters = [only_voter(node)] if node.is_controller else []
        format_node(node, cluster_id, initial_levels(), voters, ignore_formatted=True)


def _bindable_port(port: int) -> int:
    """Return the port, or a free one for 0. Raises CommandError if the port can't be bound."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen()
        except OSError as error:
            advice = "; give another --port, or 0 for any free one" if error.errno == EADDRINUSE else ""
            raise CommandError(f"--port {port}: {error.strerror}{advice}") from None
        free_port: int = probe.getsockname()[1]
        return free_port
