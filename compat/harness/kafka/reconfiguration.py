"""Change the voters of a running quorum, with Kafka's tool or ours, and see what came of it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from compat.harness.kafka.nodes import run_command
from compat.harness.kafka.quorum import Controller, ControllerQuorum, connect
from compat.harness.kafka.tools import KafkaTools
from compat.harness.waiting import wait_until
from compat.harness.wire import describe_quorum
from kraft_wire.cli.quorum.status.report import StatusReport
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.describe_quorum_response import PartitionData


def describe(quorum: ControllerQuorum) -> PartitionData:
    """Return the quorum as its leader describes it."""
    with connect(quorum.leader()) as client:
        return describe_quorum(client).topics[0].partitions[0]


def voter_ids(quorum: ControllerQuorum) -> set[int]:
    """Return the node ids of the voters."""
    return {voter.replica_id for voter in describe(quorum).current_voters}


def directory_of(controller: Controller) -> str:
    """Return the directory id in a controller's meta.properties."""
    lines = (controller.data_folder / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))["directory.id"]


def wait_until_caught_up(quorum: ControllerQuorum, controller: Controller) -> None:
    """Wait until an observer has once had the whole log, and answers requests: Java's fetches before."""

    def caught_up() -> bool:
        found = describe(quorum)
        return found.error_code == ErrorCode.NONE and any(
            each.replica_id == controller.node_id and each.last_caught_up_timestamp > 0
            for each in found.observers
        )

    wait_until(caught_up, f"{controller.name} to catch up")
    wait_until(lambda: _answers(controller), f"{controller.name} to answer")


def _answers(controller: Controller) -> bool:
    try:
        with connect(controller, timeout_s=2.0) as client:
            describe_quorum(client)
    except OSError:
        return False
    return True


def wait_until_brokers_follow(quorum: ControllerQuorum) -> None:
    """Wait until all brokers have fetched from the leader.

    Only then may controllers that their properties name be stopped: a broker looks for a leader nowhere else.
    """

    def follow() -> bool:
        found = describe(quorum)
        return found.error_code == ErrorCode.NONE and set(quorum.brokers) <= {
            each.replica_id for each in found.observers
        }

    wait_until(follow, "all brokers to follow the leader")


def wait_for_voters(quorum: ControllerQuorum, *controllers: Controller) -> None:
    """Wait until these controllers are the voters."""
    wanted = {controller.node_id for controller in controllers}
    wait_until(lambda: voter_ids(quorum) == wanted, f"the voters to be {sorted(wanted)}")


def addresses(quorum: ControllerQuorum) -> set[str]:
    """Return the addresses of the voters."""
    with connect(quorum.leader()) as client:
        nodes = describe_quorum(client).nodes
    return {f"{point.host}:{point.port}" for node in nodes for point in node.listeners}


def directories(quorum: ControllerQuorum) -> dict[int, str]:
    """Return the directory ids of the voters by node id."""
    return {voter.replica_id: str(voter.replica_directory_id) for voter in describe(quorum).current_voters}


def wait_for_directories(quorum: ControllerQuorum, *controllers: Controller) -> None:
    """Wait until these controllers are the voters, with the directory ids of their folders."""
    wanted = {controller.node_id: directory_of(controller) for controller in controllers}
    wait_until(lambda: directories(quorum) == wanted, f"the voters to be {wanted}")


def wait_for_registrations(quorum: ControllerQuorum) -> None:
    """Wait until all controllers are registered with the leader."""

    def registered() -> set[int]:
        options = ("--bootstrap-controller", quorum.address_list, "--no-history", "--json")
        told = run_command("quorum", "status", *options)
        assert told.returncode == 0, told.stdout + told.stderr
        report = msgspec.json.decode(told.stdout, type=StatusReport)
        return {replica.id for replica in report.replicas if replica.registered}

    wait_until(lambda: registered() >= set(quorum.controllers), "all controllers to be registered")


def add_voter(tools: KafkaTools, controller: Controller, through: Controller, *options: str) -> str:
    """Run ``add-controller`` against the controller ``through``."""
    words = ("--command-config", controller.properties_file, "add-controller")
    return _command(tools, through, *words, *options)


def remove_voter(quorum: ControllerQuorum, tools: KafkaTools, controller: Controller, *options: str) -> str:
    """Run ``remove-controller`` against the leader."""
    return _command(
        tools,
        quorum.leader(),
        "remove-controller",
        "--controller-id",
        str(controller.node_id),
        "--controller-directory-id",
        directory_of(controller),
        *options,
    )


def change(quorum: ControllerQuorum, *words: str | Path, expected: int = 0) -> str:
    """Run a ``kraft-wire`` command on the quorum without confirming it, and return what it prints."""
    ended = run_command(*words, "--bootstrap-controller", quorum.address_list, "--yes")
    assert ended.returncode == expected, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def _command(tools: KafkaTools, through: Controller, *options: str | Path) -> str:
    return tools.quorum(through.address, *map(str, options))
