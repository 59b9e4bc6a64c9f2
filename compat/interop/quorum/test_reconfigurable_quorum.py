"""The scenarios of Kafka's ReconfigurableQuorumIntegrationTest, by name, on quorums of ours.

As there, administrators ask a broker, which forwards what they ask. ``three`` is shared: each of its tests
leaves the voters as they were.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from compat.conftest import make_workspace
from compat.harness.kafka.quorum import Controller, ControllerQuorum, Voters
from compat.harness.kafka.reconfiguration import (
    describe,
    directory_of,
    wait_for_directories,
    wait_until_caught_up,
)
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools, until_read
from compat.harness.processes import Workspace
from compat.harness.waiting import wait_until
from compat.harness.wire import WireClient
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kraft_wire.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kraft_wire.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraft_wire.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraft_wire.protocol.uuid import Uuid

AUTO_JOIN = {"controller.quorum.auto.join.enable": "true"}
COMMAND = "MetadataQuorumCommand"
FIRST = 100


@pytest.fixture(scope="module")
def three(tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerQuorum]:
    """Three voters and a broker."""
    for workspace in make_workspace(tmp_path_factory.mktemp("three")):
        quorum = ControllerQuorum(workspace, tool_server, ["ours"] * 3)
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.start_brokers(1)
        yield quorum


# Clusters that are made and ended.


def _alone(workspace: Workspace, tools: ToolServer, voters: Voters, *options: str) -> ControllerQuorum:
    """Start one controller, whose folder is formatted with these options, and a broker."""
    quorum = ControllerQuorum(workspace, tools, ["ours"], voters)
    for controller in quorum.controllers.values():
        controller.format(quorum.cluster_id, *options)
    quorum.start()
    quorum.leader()
    quorum.start_brokers(1)
    return quorum


def _kraft_version(quorum: ControllerQuorum, tools: KafkaTools) -> tuple[int, int, int]:
    """Return the lowest and the highest level that are supported, and the one that is in force."""
    described = tools.features(quorum.bootstrap, "describe").splitlines()
    (words,) = [line.split() for line in described if "kraft.version" in line]
    names = ("SupportedMinVersion:", "SupportedMaxVersion:", "FinalizedVersionLevel:")
    lowest, highest, level = (int(words[words.index(name) + 1]) for name in names)
    return lowest, highest, level


def _end(quorum: ControllerQuorum) -> None:
    """Stop all nodes, which must be graceful."""
    for node in (*quorum.brokers.values(), *quorum.controllers.values()):
        node.stop()


def test_create_and_destroy_non_reconfigurable_cluster(
    workspace: Workspace, tool_server: ToolServer, tools: KafkaTools
) -> None:
    quorum = _alone(workspace, tool_server, "static")
    assert _kraft_version(quorum, tools) == (0, 1, 0)
    _end(quorum)


def test_create_and_destroy_reconfigurable_cluster(
    workspace: Workspace, tool_server: ToolServer, tools: KafkaTools
) -> None:
    quorum = _alone(workspace, tool_server, "dynamic", "--standalone")
    assert _kraft_version(quorum, tools) == (0, 1, 1)
    _end(quorum)


# Voters are removed and added by a broker.


def _remove(quorum: ControllerQuorum, tools: KafkaTools, controller: Controller) -> None:
    words = ("--controller-id", str(controller.node_id), "--controller-directory-id")
    tools.admin(COMMAND, quorum.bootstrap, "remove-controller", *words, directory_of(controller))


def _add(quorum: ControllerQuorum, tools: KafkaTools, controller: Controller) -> None:
    """Add a controller, as soon as the leader lets it."""
    words = ("--command-config", controller.properties_file, "add-controller")
    until_read(lambda: tools.admin(COMMAND, quorum.bootstrap, *words))


def test_remove_controller(three: ControllerQuorum, tools: KafkaTools) -> None:
    gone, *others = three.controllers.values()
    wait_for_directories(three, gone, *others)
    _remove(three, tools, gone)
    wait_for_directories(three, *others)
    _add(three, tools, gone)


def test_remove_and_add_same_controller(three: ControllerQuorum, tools: KafkaTools) -> None:
    """The leader is removed, too."""
    voters = list(three.controllers.values())
    for gone in (three.followers()[0], three.leader()):
        wait_for_directories(three, *voters)
        _remove(three, tools, gone)
        wait_for_directories(three, *(each for each in voters if each is not gone))
        _add(three, tools, gone)
    wait_for_directories(three, *voters)
    three.wait_until_equal()


def test_add_new_controller_formatted_with_full_voter_set(three: ControllerQuorum, tools: KafkaTools) -> None:
    """Its folder says that it is one of four voters. It observes until it is added."""
    voters = list(three.controllers.values())
    newcomer = three.new_controller("ours")
    shutil.rmtree(newcomer.data_folder)
    three.format_again(newcomer)
    newcomer.start()
    wait_until_caught_up(three, newcomer)
    wait_for_directories(three, *voters)
    observers = {observer.replica_id for observer in describe(three).observers}
    assert observers == {newcomer.node_id, *three.brokers}
    _add(three, tools, newcomer)
    wait_for_directories(three, *voters, newcomer)
    three.wait_until_equal()
    _remove(three, tools, newcomer)
    newcomer.stop()
    del three.controllers[newcomer.node_id], three.ports[newcomer.node_id]


# Requests that name the cluster.


def _ask_to_remove(quorum: ControllerQuorum, controller: Controller, cluster_id: str) -> ErrorCode:
    directory_id = Uuid.parse(directory_of(controller))
    request = RemoveRaftVoterRequest(cluster_id, controller.node_id, directory_id)
    with WireClient(quorum.brokers[1].port) as client:
        return ErrorCode.of(client.call(request, 0, RemoveRaftVoterResponse).error_code)


def _ask_to_add(quorum: ControllerQuorum, controller: Controller, cluster_id: str) -> ErrorCode:
    request = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=10_000,
        voter_id=controller.node_id,
        voter_directory_id=Uuid.parse(directory_of(controller)),
        listeners=[Listener(name="CONTROLLER", host=controller.place.host, port=controller.port)],
    )
    with WireClient(quorum.brokers[1].port) as client:
        return ErrorCode.of(client.call(request, 0, AddRaftVoterResponse).error_code)


def test_remove_and_add_voter_with_valid_cluster_id(three: ControllerQuorum) -> None:
    gone, *others = three.controllers.values()
    wait_for_directories(three, gone, *others)
    assert _ask_to_remove(three, gone, three.cluster_id) is ErrorCode.NONE
    wait_for_directories(three, *others)

    def is_added() -> bool:
        return _ask_to_add(three, gone, three.cluster_id) is ErrorCode.NONE

    wait_until(is_added, "the leader to add the controller again")
    wait_for_directories(three, gone, *others)


def test_remove_and_add_voter_with_inconsistent_cluster_id(three: ControllerQuorum) -> None:
    voters = list(three.controllers.values())
    for ask in (_ask_to_remove, _ask_to_add):
        assert ask(three, voters[0], "inconsistent") is ErrorCode.INCONSISTENT_CLUSTER_ID
    wait_for_directories(three, *voters)


# Controllers join by themselves.


def test_controllers_auto_join_standalone_voter(workspace: Workspace, tool_server: ToolServer) -> None:
    quorum = ControllerQuorum(workspace, tool_server, ["ours"] * 3, properties=AUTO_JOIN)
    for id, controller in quorum.controllers.items():
        controller.format(quorum.cluster_id, "--standalone" if id == FIRST else "--no-initial-controllers")
    quorum.start()
    wait_for_directories(quorum, *quorum.controllers.values())
    quorum.wait_until_equal()


def test_new_voter_auto_removes_and_adds(workspace: Workspace, tool_server: ToolServer) -> None:
    """The voters that all folders name have another directory id for one controller."""
    quorum = ControllerQuorum(workspace, tool_server, ["ours"] * 3, properties=AUTO_JOIN)
    quorum.format()
    _change_directory_id(quorum.controllers[FIRST])
    quorum.start()
    wait_for_directories(quorum, *quorum.controllers.values())
    quorum.wait_until_equal()


def _change_directory_id(controller: Controller) -> None:
    """Write a folder's meta.properties with another directory id, as Java does: without a checksum."""
    file = controller.data_folder / "meta.properties"
    text = file.read_text().replace(directory_of(controller), str(Uuid.from_random(bytes(range(16)))))
    file.write_text("".join(line for line in text.splitlines(keepends=True) if not line.startswith("#")))
