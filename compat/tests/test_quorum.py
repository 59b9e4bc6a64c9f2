"""Three controllers: ours alone, and ours with Java's in one quorum, whoever leads; brokers go on working.

The tests of one quorum share it, in this order; each leaves all three controllers running.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from compat.conftest import make_workspace
from compat.harness import clients
from compat.harness.cluster import ControllerKind
from compat.harness.controllers import Controller, ControllerQuorum, Voters
from compat.harness.nodes import OurController
from compat.harness.tool_server import ToolServer
from compat.harness.tools import KafkaTools, segments, snapshots
from compat.harness.waiting import wait_until

SETTINGS = {"metadata.log.max.record.bytes.between.snapshots": "4000"}
QUORUMS: list[tuple[Sequence[ControllerKind], Voters]] = [
    (("ours", "ours", "ours"), "dynamic"),
    (("ours", "ours", "ours"), "static"),
    (("ours", "ours", "java"), "static"),
    (("ours", "java", "java"), "dynamic"),
]


def _name(kinds: Sequence[ControllerKind], voters: Voters) -> str:
    return f"{'-'.join(kinds)}-{voters}"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(params, marks=pytest.mark.xdist_group(_name(*params)), id=_name(*params))
        for params in QUORUMS
    ],
)
def quorum(
    request: pytest.FixtureRequest, tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControllerQuorum]:
    kinds, voters = request.param
    for workspace in make_workspace(tmp_path_factory.mktemp("quorum")):
        quorum = ControllerQuorum(workspace, tool_server, kinds, voters, SETTINGS)
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.start_brokers(2)
        yield quorum


def _topics(quorum: ControllerQuorum, tools: KafkaTools) -> list[set[str]]:
    """The topics in each controller's log, by Kafka's own reader."""
    return [
        {
            record.data["name"]
            for record in tools.metadata_records(*segments(controller.data_folder))
            if record.type == "TOPIC_RECORD"
        }
        for controller in quorum.controllers.values()
    ]


def _leader_that_is_not(quorum: ControllerQuorum, former: Controller) -> Controller:
    def other() -> Controller | None:
        leader = quorum.leader()
        return None if leader is former else leader

    found = wait_until(other, f"another leader than {former.name}")
    assert found is not None
    return found


def test_every_controller_is_a_voter_and_registered(quorum: ControllerQuorum, tools: KafkaTools) -> None:
    leader = quorum.leader()
    status = tools.quorum(leader.address, "describe", "--status")
    assert f"LeaderId:               {leader.node_id}" in status
    for id in quorum.controllers:
        assert str(id) in status
    replication = tools.quorum(leader.address, "describe", "--replication")
    assert replication.count("Follower") == 2
    assert replication.count("Observer") == 2, "the brokers"

    def registered() -> bool:
        records = tools.metadata_records(*segments(leader.data_folder))
        known = {r.data["controllerId"] for r in records if r.type == "REGISTER_CONTROLLER_RECORD"}
        return known == set(quorum.controllers)

    wait_until(registered, "every controller to be registered")


def test_whoever_leads_and_is_killed_loses_nothing_that_was_acknowledged(
    quorum: ControllerQuorum, tools: KafkaTools
) -> None:
    created = set()
    led: set[int] = set()
    for round_number in range(6):
        leader = quorum.leader()
        led.add(leader.node_id)
        for number in range(3):
            name = f"before-kill-{round_number}-{number}"
            quorum.create_topic_quickly(name)
            created.add(name)
        leader.kill()
        name = f"after-kill-{round_number}"
        quorum.create_topic_quickly(name)
        created.add(name)
        leader.start()
        quorum.wait_until_equal()
        if led == set(quorum.controllers):
            break
    quorum.wait_until_equal()
    for topics in _topics(quorum, tools):
        assert created <= topics
    assert len(led) > 1


def test_a_leader_that_is_told_to_stop_hands_over(quorum: ControllerQuorum) -> None:
    for round_number in range(3):
        leader = quorum.leader()
        leader.stop()
        _leader_that_is_not(quorum, leader)
        quorum.create_topic_quickly(f"after-stop-{round_number}")
        leader.start()
        quorum.wait_until_equal()


def test_a_paused_leader_is_deposed_and_follows_when_it_wakes(quorum: ControllerQuorum) -> None:
    leader = quorum.leader()
    leader.running_process.send_signal(signal.SIGSTOP)
    others = [controller for controller in quorum.running if controller is not leader]

    def deposed() -> Controller | None:
        return quorum.leader_among(others)

    wait_until(deposed, "another leader")
    leader.running_process.send_signal(signal.SIGCONT)
    quorum.create_topic_quickly("while-it-slept")
    quorum.wait_until_equal()


def test_brokers_produce_and_consume_through_all_of_it(quorum: ControllerQuorum) -> None:
    clients.create_topic(quorum.admin(), "messages", 2, 2)
    values = [b"%d" % number for number in range(1000)]
    for part in range(4):
        clients.produce(quorum.bootstrap, "messages", values[part * 250 : (part + 1) * 250], idempotent=True)
        leader = quorum.leader()
        leader.kill()
        quorum.leader()
        leader.start()
    assert sorted(clients.consume(quorum.bootstrap, "messages", 2)) == sorted(values)
    quorum.wait_until_equal()


def test_a_voter_with_an_empty_folder_begins_with_the_leaders_snapshot(
    quorum: ControllerQuorum, tools: KafkaTools
) -> None:
    """Of every kind, from a leader of every kind that there is."""
    for number in range(40):
        quorum.create_topic_quickly(f"fills-the-log-{number}")
    done: set[tuple[type[Controller], type[Controller]]] = set()
    for follower in quorum.followers():
        leader = quorum.leader()
        if leader is follower or (type(leader), type(follower)) in done:
            continue
        done.add((type(leader), type(follower)))
        wait_until(partial(_taken, leader), f"{leader.name} to take a snapshot")
        follower.stop()
        shutil.rmtree(follower.data_folder)
        quorum.format_again(follower)
        follower.start()
        _wait_for_topic(quorum, tools, follower, "fills-the-log-39")
        assert _taken(follower), f"{follower.name} has the snapshot of {leader.name}"
    assert done


def _taken(controller: Controller) -> list[str]:
    """Its snapshots, the one of format left out."""
    return [path.name for path in snapshots(controller.data_folder) if not path.name.startswith("0" * 20)]


def _wait_for_topic(quorum: ControllerQuorum, tools: KafkaTools, controller: Controller, name: str) -> None:
    """Wait until a controller's files, snapshot and log, have a topic."""

    def there() -> bool:
        files = [*snapshots(controller.data_folder), *segments(controller.data_folder)]
        return any(
            record.type == "TOPIC_RECORD" and record.data["name"] == name
            for record in tools.metadata_records(*files)
        )

    wait_until(there, f"topic {name} on {controller.name}")


def test_our_standby_knows_and_says_who_leads(quorum: ControllerQuorum) -> None:
    for controller in quorum.running:
        if isinstance(controller, OurController):
            wait_until(partial(_knows_the_leader, quorum, controller), f"{controller.name} to say who leads")


def _knows_the_leader(quorum: ControllerQuorum, controller: Controller) -> bool:
    return quorum.controller_id_by(controller) == quorum.leader().node_id
