"""Quorums of three controllers, ours alone or with Java's, serve brokers whichever controller leads.

The tests of one quorum share it and run in this order. Each leaves all three controllers running.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from compat.conftest import make_workspace
from compat.harness import clients
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.nodes import OurController
from compat.harness.kafka.quorum import Controller, ControllerQuorum, Voters, log_start
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools, segments, snapshots
from compat.harness.waiting import wait_until

SETTINGS = {"metadata.log.max.record.bytes.between.snapshots": "4000"}
KINDS: list[Sequence[ControllerKind]] = [
    ("ours", "ours", "ours"),
    ("ours", "ours", "java"),
    ("ours", "java", "java"),
]
VOTERS: list[Voters] = ["dynamic", "static"]
PARTITIONS = 2
# Three suffice if each leader stays, which it may not on a busy machine.
TURNS = 6


def _param(kinds: Sequence[ControllerKind], voters: Voters) -> object:
    name = f"{'-'.join(kinds)}-{voters}"
    return pytest.param((kinds, voters), marks=pytest.mark.xdist_group(name), id=name)


class UsedQuorum:
    """A quorum, and the topics and messages that its clients' requests created."""

    def __init__(self, quorum: ControllerQuorum) -> None:
        self.controllers = quorum
        self.replicas = len(quorum.brokers)
        self.topics: set[str] = set()
        self.messages: list[bytes] = []
        clients.create_topic(quorum.admin(), "messages", PARTITIONS, self.replicas)

    def use(self) -> None:
        """Create a topic and produce messages through the brokers."""
        name = f"topic-{len(self.topics)}"
        clients.create_topic(self.controllers.admin(), name, 1, self.replicas)
        self.topics.add(name)
        values = [b"%s: %d" % (name.encode(), number) for number in range(100)]
        clients.produce(self.controllers.bootstrap, "messages", values, idempotent=True)
        self.messages += values

    def fill_the_log(self, leader: Controller) -> None:
        """Create topics until the leader has made a newer snapshot than the one at its log start."""
        while not _made_snapshots(leader):
            name = f"topic-{len(self.topics)}"
            self.controllers.create_topic_quickly(name)
            self.topics.add(name)


@pytest.fixture(scope="module", params=[_param(kinds, voters) for voters in VOTERS for kinds in KINDS])
def used(
    request: pytest.FixtureRequest, tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[UsedQuorum]:
    kinds, voters = request.param
    for workspace in make_workspace(tmp_path_factory.mktemp("quorum")):
        quorum = ControllerQuorum(workspace, tool_server, kinds, voters, SETTINGS)
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.start_brokers(2 if "java" in kinds else 1)
        yield UsedQuorum(quorum)


@pytest.fixture
def quorum(used: UsedQuorum) -> ControllerQuorum:
    return used.controllers


def test_every_controller_is_a_voter_and_registered(quorum: ControllerQuorum, tools: KafkaTools) -> None:
    leader = quorum.leader()
    status = tools.quorum(leader.address, "describe", "--status")
    assert f"LeaderId:               {leader.node_id}" in status
    for id in quorum.controllers:
        assert str(id) in status
    replication = tools.quorum(leader.address, "describe", "--replication")
    assert replication.count("Follower") == 2
    assert replication.count("Observer") == len(quorum.brokers)
    readable = tools.quorum(leader.address, "describe", "--replication", "--human-readable")
    assert readable.count("ms ago") >= 2 * len(quorum.controllers)

    def registered() -> bool:
        records = tools.metadata_records(*segments(leader.data_folder))
        known = {r.data["controllerId"] for r in records if r.type == "REGISTER_CONTROLLER_RECORD"}
        return known == set(quorum.controllers)

    wait_until(registered, "every controller to be registered")


def test_every_controller_leads_until_it_is_killed(used: UsedQuorum, quorum: ControllerQuorum) -> None:
    """Clients of the brokers can work under every leader."""
    due = set(quorum.controllers)
    used.use()
    for _ in range(TURNS):
        killed = quorum.pass_leadership_on(lambda leader: leader.kill())
        due.discard(killed.node_id)
        used.use()
        killed.start()
        quorum.wait_until_equal()
        if not due:
            break
    assert not due
    for controller in quorum.running:
        assert log_start(controller) == 0


def test_a_paused_leader_is_deposed_and_follows_when_it_wakes(
    used: UsedQuorum, quorum: ControllerQuorum
) -> None:
    leader = quorum.leader()
    leader.running_process.send_signal(signal.SIGSTOP)
    others = [controller for controller in quorum.running if controller is not leader]

    def deposed() -> Controller | None:
        return quorum.leader_among(others)

    wait_until(deposed, "another leader")
    leader.running_process.send_signal(signal.SIGCONT)
    used.use()
    quorum.wait_until_equal()


def test_every_controller_resigns_and_restarts_from_its_successors_snapshot(
    used: UsedQuorum, quorum: ControllerQuorum
) -> None:
    """Repeat until each kind of controller has fetched a snapshot from each kind."""
    members = quorum.controllers.values()
    due = {(type(one), type(other)) for one in members for other in members if one is not other}
    for _ in range(TURNS):
        stopped = quorum.pass_leadership_on(lambda leader: leader.stop())
        leader = quorum.leader()
        due.discard((type(stopped), type(leader)))
        used.fill_the_log(leader)
        shutil.rmtree(stopped.data_folder)
        quorum.format_again(stopped)
        stopped.start()
        used.use()
        quorum.wait_until_equal()
        assert log_start(stopped) > 0
        if not due:
            break
    assert not due


def _made_snapshots(controller: Controller) -> list[str]:
    """Return the snapshots that a controller made, without those of format and of its log start."""
    start = log_start(controller)
    return [path.name for path in snapshots(controller.data_folder) if int(path.name[:20]) > start]


def test_nothing_that_was_acknowledged_is_lost(
    used: UsedQuorum, quorum: ControllerQuorum, tools: KafkaTools
) -> None:
    assert sorted(clients.consume(quorum.bootstrap, "messages", PARTITIONS)) == sorted(used.messages)
    for controller in quorum.controllers.values():
        files = [*snapshots(controller.data_folder), *segments(controller.data_folder)]
        records = tools.metadata_records(*files)
        assert used.topics <= {r.data["name"] for r in records if r.type == "TOPIC_RECORD"}


def test_our_follower_reports_the_leader(quorum: ControllerQuorum) -> None:
    for controller in quorum.running:
        if isinstance(controller, OurController):
            wait_until(
                partial(_knows_the_leader, quorum, controller), f"{controller.name} to report the leader"
            )


def _knows_the_leader(quorum: ControllerQuorum, controller: Controller) -> bool:
    return quorum.controller_id_by(controller) == quorum.leader().node_id
