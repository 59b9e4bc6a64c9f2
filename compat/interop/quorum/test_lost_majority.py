"""A majority is killed for good. The survivor's folder is recovered, and the cluster goes on with its data:
with our controller or with Java's, which then takes another controller."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from compat.conftest import make_workspace
from compat.harness import clients
from compat.harness.kafka.cluster import NEWEST_KAFKA, ControllerKind
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.nodes import JvmController, OurController, run_command
from compat.harness.kafka.quorum import Controller, ControllerQuorum, connect
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools
from compat.harness.ports import free_port
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
    # The survivor last: without it the others would go on, and a broker would know more than it does.
    for controller in sorted(quorum.running, key=lambda controller: controller is survivor):
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
    _run("verify", again.data_folder)


@pytest.fixture
def three(tool_server: ToolServer, tmp_path: Path) -> Iterator[ControllerQuorum]:
    """Three controllers of ours and a broker."""
    for workspace in make_workspace(tmp_path):
        quorum = ControllerQuorum(workspace, tool_server, ["ours"] * 3)
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.start_brokers(1)
        yield quorum


@pytest.mark.parametrize("stays", [False, True], ids=["broker-was-down", "broker-stays"])
def test_a_broker_that_knows_more_than_the_survivor_needs_a_restart(
    three: ControllerQuorum, stays: bool, tmp_path: Path
) -> None:
    """Two topics are committed while the survivor is suspended. The plan says which offsets are lost.

    A broker that runs stops when it would have to truncate committed records, and follows after a restart.
    """
    three.create_topic_quickly("kept")
    three.wait_until_equal()
    survivor = three.followers()[0]
    others = [controller for controller in three.running if controller is not survivor]
    survivor.running_process.send_signal(signal.SIGSTOP)
    for name in ("lost-1", "lost-2"):
        three.create_topic_quickly(name)
    broker = three.brokers[1]
    wait_until(lambda: "lost-2" in _topics_of(three), "the broker to know the topic")
    for controller in (*others, survivor):
        controller.kill()
    if not stays:
        broker.kill()
    loss = _recover(three, survivor, tmp_path)
    assert loss["seen"] is not None

    three.controllers = {survivor.node_id: survivor}
    survivor.start()
    wait_until(lambda: _voters_of(survivor) == {survivor.node_id}, "the survivor to lead alone")
    if stays:
        broker.running_process.wait_for_log("below the current high watermark")
        wait_until(lambda: not broker.running_process.running, "the broker to stop")
    broker.start()
    broker.wait_until_ready()
    three.create_topic_quickly("after")
    wait_until(lambda: _topics_of(three) == {"kept", "after"}, "the broker to have the survivor's topics")


def _topics_of(quorum: ControllerQuorum) -> set[str]:
    """The topics that the broker knows."""
    return {name for name in quorum.admin().list_topics(timeout=10).topics if not name.startswith("__")}


@pytest.mark.parametrize("kind", ["ours", "java"])
def test_all_controllers_move_to_other_ports(
    kind: ControllerKind, tool_server: ToolServer, tmp_path: Path
) -> None:
    """KIP-1347. The record is written to the folders with equal logs; the others fetch it."""
    for workspace in make_workspace(tmp_path):
        quorum = ControllerQuorum(workspace, tool_server, [kind] * 3)
        _kill_all_once_equal(quorum)
        folders = [controller.data_folder for controller in quorum.controllers.values()]
        collected, plan = tmp_path / "collected.json", tmp_path / "plan.json"
        _run("collect", *folders, "--output", collected)
        _move(quorum)
        endpoints = ",".join(f"{c.node_id}@{c.address}" for c in quorum.controllers.values())
        _run("plan", collected, "--output", plan, "--endpoints", endpoints)
        for target in msgspec.json.decode(plan.read_bytes())["targets"]:
            folder = quorum.controllers[target["node_id"]].data_folder
            _run("apply", plan, folder, "--cluster-id", quorum.cluster_id, "--yes")
        quorum.start()
        quorum.leader()
        quorum.wait_until_equal()


@pytest.mark.parametrize("third", ["ours", "java"])
def test_controllers_that_all_moved_find_each_other_at_their_bootstrap_servers(
    third: ControllerKind, tool_server: ToolServer, tmp_path: Path
) -> None:
    for workspace in make_workspace(tmp_path):
        quorum = ControllerQuorum(workspace, tool_server, ["ours", "ours", third])
        _kill_all_once_equal(quorum)
        _move(quorum)
        quorum.start()
        quorum.leader()
        quorum.wait_until_equal()
        wait_until(partial(_knows_all_ports, quorum), "the voters to tell their new ports")


def _knows_all_ports(quorum: ControllerQuorum) -> bool:
    with connect(quorum.leader()) as client:
        nodes = describe_quorum(client).nodes
    return {node.node_id: listener.port for node in nodes for listener in node.listeners} == quorum.ports


def _kill_all_once_equal(quorum: ControllerQuorum) -> None:
    """Run new controllers until their logs are equal, and kill all."""
    quorum.format()
    quorum.start()
    quorum.leader()
    quorum.wait_until_equal()
    for controller in quorum.running:
        controller.kill()


def _move(quorum: ControllerQuorum) -> None:
    """Give every stopped controller another port, in its properties only."""
    for controller in quorum.controllers.values():
        controller.port = quorum.ports[controller.node_id] = free_port()
    for controller in quorum.controllers.values():
        controller.change_properties(
            {
                "listeners": f"CONTROLLER://{controller.address}",
                "controller.quorum.bootstrap.servers": quorum.address_list,
            }
        )


def _run(*words: str | Path) -> None:
    done = run_command("quorum", "recover", *words)
    assert done.returncode == 0, done.stderr


def _recover(quorum: ControllerQuorum, survivor: Controller, tmp_path: Path) -> dict[str, Any]:
    """Recover the survivor's folder; returns what the plan says is lost."""
    collected, plan = tmp_path / "collected.json", tmp_path / "plan.json"
    folder = survivor.data_folder
    for words in (
        ("collect", folder, quorum.brokers[1].data_folder, "--output", collected),
        ("plan", collected, "--output", plan),
        ("apply", plan, folder, "--cluster-id", quorum.cluster_id, "--yes"),
        ("verify", folder),
    ):
        _run(*words)
    made = msgspec.json.decode(plan.read_bytes())
    broker = next(survivor for survivor in made["survivors"] if survivor["node_id"] == 1)
    assert broker["problem"] == "it is a broker's"
    assert broker["log_end_offset"] > 0
    loss: dict[str, Any] = made["loss"]
    return loss


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
