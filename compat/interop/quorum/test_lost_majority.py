"""A majority is killed for good. The survivor's folder is recovered, and the cluster goes on with its data:
with our controller or with Java's, which then takes another controller."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.conftest import make_workspace
from compat.harness import clients
from compat.harness.kafka.cluster import NEWEST_KAFKA, ControllerKind
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.nodes import JvmController, OurController, run_command
from compat.harness.kafka.quorum import Controller, ControllerQuorum, connect
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools
from compat.harness.waiting import wait_until
from compat.harness.wire import describe_quorum

NEWCOMER_ID = 150
MESSAGES = [b"before %d" % number for number in range(100)]
AFTER = [b"after %d" % number for number in range(100)]
KINDS: list[tuple[ControllerKind, ControllerKind]] = [("ours", "ours"), ("ours", "java"), ("java", "java")]


@pytest.fixture(params=KINDS, ids="-then-".join)
def kinds(request: pytest.FixtureRequest) -> tuple[ControllerKind, ControllerKind]:
    found: tuple[ControllerKind, ControllerKind] = request.param
    return found


@pytest.fixture
def quorum(
    kinds: tuple[ControllerKind, ControllerKind], tool_server: ToolServer, tmp_path: Path
) -> Iterator[ControllerQuorum]:
    """Three controllers and a broker with messages."""
    for workspace in make_workspace(tmp_path):
        quorum = ControllerQuorum(workspace, tool_server, [kinds[0]] * 3)
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.start_brokers(1)
        clients.create_topic(quorum.admin(), "messages", 1, 1)
        clients.produce(quorum.bootstrap, "messages", MESSAGES)
        quorum.wait_until_equal()
        yield quorum


def test_a_recovered_folder_leads_the_cluster_with_its_data(
    quorum: ControllerQuorum, kinds: tuple[ControllerKind, ControllerKind], tools: KafkaTools, tmp_path: Path
) -> None:
    leader = quorum.leader()
    survivor = next(controller for controller in quorum.running if controller is not leader)
    for controller in quorum.running:
        controller.kill()
        if controller is not survivor:
            shutil.rmtree(controller.data_folder)
    _recover(quorum, survivor, tmp_path)

    again = _same_node(quorum, survivor, kinds[1])
    quorum.controllers = {again.node_id: again}
    again.start()
    wait_until(lambda: _voters_of(again) == {survivor.node_id}, "the survivor to lead alone")
    quorum.create_topic_quickly("after")
    quorum.wait_for_brokers()
    clients.produce(quorum.bootstrap, "messages", AFTER)
    consumed = clients.consume(quorum.bootstrap, "messages", 1)
    assert sorted(consumed) == sorted(MESSAGES + AFTER)
    if kinds[1] == "java":
        _add_a_controller(quorum, again, tools)
    checked = run_command("quorum", "recover", "verify", again.data_folder)
    assert checked.returncode == 0, checked.stderr


def _recover(quorum: ControllerQuorum, survivor: Controller, tmp_path: Path) -> None:
    collected, plan = tmp_path / "collected.json", tmp_path / "plan.json"
    folder = survivor.data_folder
    for words in (
        ("collect", folder, "--output", collected),
        ("plan", collected, "--output", plan),
        ("apply", plan, folder, "--cluster-id", quorum.cluster_id, "--yes"),
        ("verify", folder),
    ):
        done = run_command("quorum", "recover", *words)
        assert done.returncode == 0, done.stderr


def _same_node(quorum: ControllerQuorum, node: Controller, kind: ControllerKind) -> Controller:
    """Return the node to be run by this kind of controller, on its folder and port."""
    properties = {"controller.quorum.bootstrap.servers": quorum.address_list}
    if kind == "ours":
        return OurController(quorum.workspace, node.node_id, properties, node.port)
    jars = find_jars(NEWEST_KAFKA)
    return JvmController(quorum.workspace, node.node_id, jars, quorum.tools, properties, node.port)


def _voters_of(controller: Controller) -> set[int]:
    """The voters, if the controller leads; nothing otherwise."""
    try:
        with connect(controller, timeout_s=2.0) as client:
            partition = describe_quorum(client).topics[0].partitions[0]
    except OSError:
        return set()
    return {voter.replica_id for voter in partition.current_voters}


def _add_a_controller(quorum: ControllerQuorum, leader: Controller, tools: KafkaTools) -> None:
    properties = {"controller.quorum.bootstrap.servers": leader.address}
    jars = find_jars(NEWEST_KAFKA)
    newcomer = JvmController(quorum.workspace, NEWCOMER_ID, jars, quorum.tools, properties)
    newcomer.format(quorum.cluster_id, "--no-initial-controllers")
    newcomer.start()
    file = newcomer.properties_file
    arguments = ["--command-config", str(file), "--bootstrap-controller", leader.address, "add-controller"]

    def added() -> bool:
        """It is refused until the newcomer has caught up."""
        return tools.run("org.apache.kafka.tools.MetadataQuorumCommand", arguments).exit_code == 0

    wait_until(added, "the newcomer to be added")
    wait_until(lambda: NEWCOMER_ID in _voters_of(leader) | _voters_of(newcomer), "two voters")
