"""Kafka's tools with --bootstrap-controller print and end the same with Java's controller and ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from compat.harness.kafka.cluster import CONTROLLER_ID, NEWEST_KAFKA, random_cluster_id
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.nodes import JvmController, OurController
from compat.harness.kafka.pretend_broker import PretendBroker
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools
from compat.harness.processes import Workspace
from kraft_wire.protocol.uuid import Uuid

BROKER_ID = 1
DIRECTORY = Uuid(b"a log directory.")
CONFIGS = "kafka.admin.ConfigCommand"
FEATURES, CLUSTER, MOVES, QUORUM = (
    f"org.apache.kafka.tools.{name}"
    for name in (
        "FeatureCommand",
        "ClusterTool",
        "reassign.ReassignPartitionsCommand",
        "MetadataQuorumCommand",
    )
)
AT = "--bootstrap-controller"

Controllers = tuple[OurController, JvmController]


@pytest.fixture(scope="module")
def controllers(tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controllers]:
    """A controller of ours and one of Java's, each with the registration of a broker."""
    cluster_id = random_cluster_id()
    with ExitStack() as stack:
        folder = Path(tmp_path_factory.mktemp("tools"))
        ours = OurController(stack.enter_context(Workspace(folder / "ours")), CONTROLLER_ID)
        space = stack.enter_context(Workspace(folder / "java"))
        java = JvmController(space, CONTROLLER_ID, find_jars(NEWEST_KAFKA), tool_server)
        for node in (ours, java):
            node.format(cluster_id, "--standalone")
            node.start()
        for node in (ours, java):
            node.wait_until_ready()
            broker = PretendBroker(BROKER_ID, cluster_id, node.port, directory=DIRECTORY)
            stack.callback(broker.close)
        yield ours, java


# In this order: some build on what others have changed.
COMMANDS: list[tuple[str, list[str]]] = [
    (FEATURES, [AT, "describe"]),
    (FEATURES, [AT, "upgrade", "--feature", "transaction.version=9"]),
    (FEATURES, [AT, "downgrade", "--feature", "transaction.version=1"]),
    (FEATURES, [AT, "upgrade", "--feature", "transaction.version=2", "--dry-run"]),
    (FEATURES, [AT, "downgrade", "--metadata", "3.9-IV0"]),
    (FEATURES, [AT, "disable", "--feature", "streams.version"]),
    (FEATURES, [AT, "describe"]),
    (
        CONFIGS,
        [
            AT,
            "--alter",
            "--entity-type",
            "brokers",
            "--entity-default",
            "--add-config",
            "log.retention.ms=5000",
        ],
    ),
    (
        CONFIGS,
        [
            AT,
            "--alter",
            "--entity-type",
            "brokers",
            "--entity-name",
            "100",
            "--add-config",
            "background.threads=4",
        ],
    ),
    (
        CONFIGS,
        [
            AT,
            "--alter",
            "--entity-type",
            "brokers",
            "--entity-name",
            "7",
            "--add-config",
            "background.threads=4",
        ],
    ),
    (CONFIGS, [AT, "--describe", "--entity-type", "brokers", "--entity-name", "100"]),
    (CONFIGS, [AT, "--describe", "--entity-type", "brokers", "--entity-default"]),
    (
        CONFIGS,
        [
            AT,
            "--alter",
            "--entity-type",
            "brokers",
            "--entity-name",
            "100",
            "--delete-config",
            "background.threads",
        ],
    ),
    (CONFIGS, [AT, "--describe", "--entity-type", "brokers", "--entity-name", "100"]),
    (CLUSTER, ["cluster-id", AT]),
    (CLUSTER, ["list-endpoints", AT]),
    (CLUSTER, ["unregister", "--id", "9", AT]),
    (MOVES, ["--list", AT]),
    (QUORUM, ["describe", "--status", AT]),
    (QUORUM, ["remove-controller", "--controller-id", "7", "--controller-directory-id", str(DIRECTORY), AT]),
    (QUORUM, ["unregister-controller", "--controller-id", "100", AT]),
]


@pytest.mark.parametrize("number", range(len(COMMANDS)))
def test_a_tool_prints_and_ends_as_with_java(
    controllers: Controllers, tools: KafkaTools, number: int
) -> None:
    ours, java = ((*_run(tools, node, *COMMANDS[number]),) for node in controllers)
    assert ours == java


def _run(
    tools: KafkaTools, node: OurController | JvmController, tool: str, words: list[str]
) -> tuple[int, str]:
    """Run a tool. Returns its exit code and what it printed, without what is chance. After a failure that is
    the text of the error, which is each controller's own."""
    place = words.index(AT) + 1
    result = tools.run(tool, [*words[:place], node.address, *words[place:]])
    return result.exit_code, "" if result.exit_code else _without_chance(result.stdout, node)


def _without_chance(text: str, node: OurController | JvmController) -> str:
    text = text.replace(node.address, "ADDRESS").replace(str(node.port), "PORT")
    for pattern, name in (
        (r"Epoch: \d+", "Epoch: N"),
        (r"(HighWatermark|LeaderEpoch|MaxFollowerLag|MaxFollowerLagTimeMs):\s+\d+", r"\1: N"),
        (r'"directoryId": "[^"]+"', '"directoryId": ID'),
        (r"(CurrentObservers):\s+.*", r"\1: SOME"),
    ):
        text = re.sub(pattern, name, text)
    return "\n".join(sorted(text.splitlines()))
