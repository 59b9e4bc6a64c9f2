"""Kafka's own tool changes the voters while brokers work: in quorums of ours and in mixed ones (KIP-853,
KIP-1186)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from compat.conftest import make_workspace
from compat.harness import clients
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.nodes import JvmController
from compat.harness.kafka.quorum import Controller, ControllerQuorum, connect
from compat.harness.kafka.reconfiguration import (
    add_voter,
    directory_of,
    remove_voter,
    voter_ids,
    wait_for_voters,
    wait_until_brokers_follow,
    wait_until_caught_up,
)
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools
from compat.harness.ports import free_port
from compat.harness.processes import ProcessFailed
from compat.harness.waiting import wait_until
from compat.harness.wire import describe_quorum

KINDS: list[tuple[ControllerKind, ...]] = [
    ("ours", "ours", "ours"),
    ("ours", "ours", "java"),
    ("ours", "java", "java"),
]


def _param(kinds: tuple[ControllerKind, ...]) -> object:
    name = "-".join(kinds)
    return pytest.param(kinds, marks=pytest.mark.xdist_group(f"reconfiguration-{name}"), id=name)


@pytest.fixture(params=[_param(kinds) for kinds in KINDS])
def quorum(
    request: pytest.FixtureRequest, tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControllerQuorum]:
    for workspace in make_workspace(tmp_path_factory.mktemp("reconfiguration")):
        quorum = ControllerQuorum(workspace, tool_server, request.param, "dynamic")
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.start_brokers(1)
        yield quorum


def _create_topic(quorum: ControllerQuorum, name: str) -> None:
    clients.create_topic(quorum.admin(), name, 1, 1)


def _start_newcomer(
    quorum: ControllerQuorum, kind: ControllerKind, properties: dict[str, str] | None = None
) -> Controller:
    newcomer = quorum.new_controller(kind, properties)
    newcomer.start()
    return newcomer


def test_voters_are_added_and_removed_one_after_the_other_until_all_are_others(
    quorum: ControllerQuorum, tools: KafkaTools
) -> None:
    """Each controller makes way for one of the other kind, the leader last."""
    old = sorted(quorum.controllers.values(), key=lambda each: each is quorum.leader())
    voters = list(old)
    for number, gone in enumerate(old):
        newcomer = _start_newcomer(quorum, "ours" if isinstance(gone, JvmController) else "java")
        wait_until_caught_up(quorum, newcomer)
        printed = add_voter(tools, newcomer, through=quorum.leader())
        assert f"Added controller {newcomer.node_id} with directory id {directory_of(newcomer)}" in printed
        voters.append(newcomer)
        wait_for_voters(quorum, *voters)
        printed = remove_voter(quorum, tools, gone)
        assert f"KRaft controller {gone.node_id} with directory id {directory_of(gone)}" in printed
        voters.remove(gone)
        wait_for_voters(quorum, *voters)
        wait_until_brokers_follow(quorum)
        gone.stop()
        _create_topic(quorum, f"after-{number}")
    assert not voter_ids(quorum) & {controller.node_id for controller in old}
    quorum.wait_until_equal()


def test_a_controller_with_auto_join_becomes_a_voter_and_comes_back_with_a_new_disk(
    quorum: ControllerQuorum, tools: KafkaTools
) -> None:
    first = list(quorum.controllers.values())
    joined = _start_newcomer(quorum, "ours", {"controller.quorum.auto.join.enable": "true"})
    wait_for_voters(quorum, *first, joined)
    _create_topic(quorum, "joined")
    joined.kill()
    wiped = directory_of(joined)
    shutil.rmtree(joined.data_folder)
    joined.format(quorum.cluster_id, "--no-initial-controllers")
    assert directory_of(joined) != wiped
    joined.start()

    def is_voter_again() -> bool:
        with connect(quorum.leader()) as client:
            voters = describe_quorum(client).topics[0].partitions[0].current_voters
        return directory_of(joined) in {str(voter.replica_directory_id) for voter in voters}

    wait_until(is_voter_again, "the new directory to be a voter")
    assert voter_ids(quorum) == {each.node_id for each in (*first, joined)}
    _create_topic(quorum, "again")
    quorum.wait_until_equal()


def test_a_java_controller_with_auto_join_becomes_a_voter(quorum: ControllerQuorum) -> None:
    first = list(quorum.controllers.values())
    joined = _start_newcomer(quorum, "java", {"controller.quorum.auto.join.enable": "true"})
    wait_for_voters(quorum, *first, joined)


def test_a_voter_that_moves_to_another_port_says_so(quorum: ControllerQuorum) -> None:
    for moved in quorum.followers():
        moved.stop()
        moved.port = quorum.ports[moved.node_id] = free_port()
        moved.change_properties({"listeners": f"CONTROLLER://{moved.address}"})
        moved.start()

        def is_known(moved: Controller = moved) -> bool:
            with connect(quorum.leader()) as client:
                nodes = {node.node_id: node for node in describe_quorum(client).nodes}
            return [each.port for each in nodes[moved.node_id].listeners] == [moved.port]

        wait_until(is_known, f"the voters to name port {moved.port}")
    quorum.wait_until_equal()


@pytest.mark.parametrize("kinds", [_param(("ours", "ours", "java"))])
def test_a_java_voter_with_another_name_for_its_address_goes_on(
    kinds: tuple[ControllerKind, ...], tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It asks a leader of ours in vain for that name. INVALID_REQUEST would end it."""
    for workspace in make_workspace(tmp_path_factory.mktemp("renamed")):
        quorum = ControllerQuorum(workspace, tool_server, kinds, "dynamic")
        quorum.format()
        quorum.start()
        renamed = next(each for each in quorum.controllers.values() if isinstance(each, JvmController))
        renamed.stop()
        leader = quorum.leader()
        renamed.change_properties({"advertised.listeners": f"CONTROLLER://localhost:{renamed.port}"})
        renamed.start()
        leader.running_process.wait_for_log("change of a voter's entry refused")
        quorum.start_brokers(1)
        _create_topic(quorum, "afterwards")
        quorum.wait_until_equal()
        assert renamed.running_process.running


def test_a_dry_run_changes_nothing_and_refusals_reach_the_administrator(
    quorum: ControllerQuorum, tools: KafkaTools
) -> None:
    leader, follower = quorum.leader(), quorum.followers()[0]
    assert "DRY RUN of adding" in add_voter(tools, follower, leader, "--dry-run")
    assert "DRY RUN of removing" in remove_voter(quorum, tools, follower, "--dry-run")
    assert voter_ids(quorum) == set(quorum.controllers)
    with pytest.raises(ProcessFailed, match="DuplicateVoterException"):
        add_voter(tools, follower, through=leader)
    stranger = quorum.new_controller("ours")
    with pytest.raises(ProcessFailed, match="VoterNotFoundException"):
        remove_voter(quorum, tools, stranger)
    with pytest.raises(ProcessFailed, match="TimeoutException"):
        add_voter(tools, stranger, through=leader)
    assert voter_ids(quorum) == set(quorum.controllers) - {stranger.node_id}


@pytest.mark.parametrize("kinds", [_param(kinds) for kinds in KINDS])
def test_kraft_version_is_upgraded_and_then_a_voter_is_added(
    kinds: tuple[ControllerKind, ...],
    tool_server: ToolServer,
    tools: KafkaTools,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    for workspace in make_workspace(tmp_path_factory.mktemp("kraft-version")):
        quorum = ControllerQuorum(workspace, tool_server, kinds, "static")
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.start_brokers(1)
        first = list(quorum.controllers.values())

        def is_upgraded(quorum: ControllerQuorum = quorum) -> bool:
            """Voters describe themselves some seconds after an election: until then the leader refuses."""
            options = ("upgrade", "--feature", "kraft.version=1")
            return tools.try_features(quorum.bootstrap, *options)

        wait_until(is_upgraded, "kraft.version to be 1")
        described = tools.features(quorum.bootstrap, "describe").splitlines()
        (line,) = [line.split() for line in described if "kraft.version" in line]
        assert line[line.index("FinalizedVersionLevel:") + 1] == "1"
        quorum.voters = "dynamic"
        newcomer = _start_newcomer(quorum, "ours")
        wait_until_caught_up(quorum, newcomer)
        add_voter(tools, newcomer, through=quorum.leader())
        wait_for_voters(quorum, *first, newcomer)
        for controller in first:
            controller.stop()
            controller.start()
            quorum.leader()
        quorum.wait_until_equal()
