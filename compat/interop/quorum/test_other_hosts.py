"""Every controller is replaced by one on another host and port while a client produces and consumes."""

from __future__ import annotations

from compat.harness import clients
from compat.harness.kafka.nodes import Place
from compat.harness.kafka.quorum import Controller, ControllerQuorum
from compat.harness.kafka.reconfiguration import (
    addresses,
    change,
    wait_for_voters,
    wait_until_brokers_follow,
)
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import Workspace
from compat.harness.traffic import Traffic
from compat.harness.waiting import wait_until

PARTITIONS = 1


def test_every_controller_is_replaced_by_one_on_another_host(
    workspace: Workspace, tool_server: ToolServer
) -> None:
    """One of the old controllers stays until the broker is started with the new addresses ("Move a quorum to
    other machines" in docs/quorum.md)."""
    quorum = ControllerQuorum(workspace, tool_server, ["ours"] * 3)
    quorum.format()
    quorum.start()
    old = sorted(quorum.controllers.values(), key=lambda each: each is quorum.leader())
    quorum.start_brokers(1)
    clients.create_topic(quorum.admin(), "messages", PARTITIONS, 1)
    with Traffic(quorum.bootstrap, "messages", PARTITIONS) as traffic:
        new = _replace(quorum, old)
        *others, last = old
        for controller in others:
            controller.stop()
        _elect_another(quorum, traffic)
        _restart_broker(quorum, new)
        last.stop()
        _elect_another(quorum, traffic)
    assert traffic.failures == []


def _replace(quorum: ControllerQuorum, old: list[Controller]) -> list[Controller]:
    """Add a controller and remove another one, until all are others. The leader is the last to go."""
    new: list[Controller] = []
    for number, gone in enumerate(old, start=1):
        newcomer = quorum.new_controller("ours", place=Place(f"127.0.0.{1 + number}"))
        newcomer.start()
        change(quorum, "quorum", "add", newcomer.properties_file, "--steady-ms", "200")
        change(quorum, "quorum", "remove", str(gone.node_id), "--keep-registration")
        new.append(newcomer)
        wait_for_voters(quorum, *new, *old[number:])
        wait_until_brokers_follow(quorum)
    assert addresses(quorum) == {controller.address for controller in new}
    assert not {each.place.host for each in new} & {each.place.host for each in old}
    return new


def _elect_another(quorum: ControllerQuorum, traffic: Traffic) -> None:
    """Let another controller lead. The broker finds it, creates a topic there, and traffic goes on."""
    killed = quorum.leader()
    killed.kill()
    wait_until(quorum.leader_now, "another leader")
    wait_until_brokers_follow(quorum)
    killed.start()
    clients.create_topic(quorum.admin(), f"after-{killed.name}", 1, 1)
    count = len(traffic.acknowledged)
    wait_until(lambda: len(traffic.acknowledged) > count, "traffic to go on")
    quorum.wait_until_equal()


def _restart_broker(quorum: ControllerQuorum, controllers: list[Controller]) -> None:
    """Let the broker look for the quorum at these controllers."""
    (broker,) = quorum.brokers.values()
    broker.stop()
    servers = ",".join(controller.address for controller in controllers)
    broker.change_properties({"controller.quorum.bootstrap.servers": servers})
    broker.start()
    quorum.wait_until_brokers_are_ready()
