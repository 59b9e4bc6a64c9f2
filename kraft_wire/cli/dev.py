"""``kraft-wire dev``: a controller to try things on, and the file with which a broker joins it."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kraft_wire.cli.errors import CommandError, run_to_the_end
from kraft_wire.cli.formatting import format_node
from kraft_wire.cli.storage_format import only_voter
from kraft_wire.metadata.features import initial_levels
from kraft_wire.server.config import node_config, server_config
from kraft_wire.server.entropy import SystemEntropy
from kraft_wire.server.logging import configure, level_from_environment
from kraft_wire.storage.errors import NotFormatted
from kraft_wire.storage.folder import read_meta_properties

HOST = "127.0.0.1"
CONTROLLER_ID = 1
BROKER_ID = 2
BROKER_FILE = "broker.properties"
DEFAULT_PORT = 9093
DEFAULT_BROKER_PORT = 9092
MAX_PORT = 65535


def dev(
    *,
    dir: str | None = None,
    port: int = DEFAULT_PORT,
    broker_port: int = DEFAULT_BROKER_PORT,
    log_level: str | None = None,
) -> int:
    """Run a controller of its own cluster, ready for a broker, until SIGTERM, SIGINT or SIGHUP.

    Formats a folder for the controller and one for a broker, writes the broker's properties beside them and
    prints them. A real Kafka broker starts with that file as it is.

    Parameters
    ----------
    dir
        Where to keep all of it; what is there already is used again. Without it a temporary folder is made,
        and removed in the end.
    port
        The controller's port on 127.0.0.1, 9093 by default. 0 takes a free one.
    broker_port
        The port that the broker is to have, 9092 by default.
    log_level
        debug, info, warning or error. Without it KRAFT_WIRE_LOG_LEVEL counts, then info.
    """
    configure(level_from_environment(log_level))
    for number in (port, broker_port):
        if not 0 <= number <= MAX_PORT:
            raise CommandError(f"{number} is not a port; give one from 1 to {MAX_PORT}, or 0 for any")
    if port and port == broker_port:
        raise CommandError(f"--port and --broker-port are both {port}; give two different ones")
    if dir is not None:
        return _run_in(Path(dir).absolute(), port or _free_port(), broker_port)
    temporary = Path(tempfile.mkdtemp(prefix="kraft-wire-"))
    try:
        return _run_in(temporary, port or _free_port(), broker_port)
    finally:
        shutil.rmtree(temporary)


def controller_properties(folder: Path, port: int) -> dict[str, str]:
    """A controller that is alone in its quorum."""
    return {
        "process.roles": "controller",
        "node.id": str(CONTROLLER_ID),
        "controller.quorum.bootstrap.servers": f"{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://{HOST}:{port}",
        "log.dirs": str(folder / "controller"),
    }


def broker_properties(folder: Path, port: int, broker_port: int) -> dict[str, str]:
    """A broker of that controller; topics that Kafka makes by itself get along with one broker."""
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

    def tell() -> None:
        """Only now: the folder may be that of a controller that runs, whose broker's file is right."""
        file.write_text(text, "latin-1")
        print(
            f"# A broker for this controller. Start one with Kafka's kafka-server-start and {file}\n{text}",
            flush=True,
        )

    from kraft_wire.server.main import run

    return run_to_the_end(lambda: run(server_config(controller, "dev"), tell))


def _format(controller: Mapping[str, str], broker: Mapping[str, str]) -> None:
    """Format both nodes' folders, those of an earlier run excepted, for one cluster."""
    nodes = [node_config(properties, "dev") for properties in (controller, broker)]
    try:
        cluster_id = read_meta_properties(Path(nodes[0].metadata_log_dir)).cluster_id
    except NotFormatted:
        cluster_id = str(SystemEntropy().uuid())
    for node in nodes:
        voters = [only_voter(node)] if node.is_controller else []
        format_node(node, cluster_id, initial_levels(), voters, ignore_formatted=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
