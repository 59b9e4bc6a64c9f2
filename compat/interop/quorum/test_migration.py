"""Java's controllers make way for ours, one node at a time on its own folder, and come back, while clients
produce and consume."""

from __future__ import annotations

import pytest

from compat.conftest import make_workspace
from compat.harness import clients
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.offline import offline_partitions
from compat.harness.kafka.quorum import ControllerQuorum, Voters
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.traffic import Traffic

JAVA: tuple[ControllerKind, ...] = ("java", "java", "java")
ORDERS = "orders"
PARTITIONS = 4
REPLICAS = 2


@pytest.mark.parametrize("voters", ["dynamic", "static"])
def test_java_controllers_make_way_for_ours_and_come_back(
    voters: Voters, tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for workspace in make_workspace(tmp_path_factory.mktemp("migration")):
        quorum = ControllerQuorum(workspace, tool_server, JAVA, voters)
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.start_brokers(REPLICAS)
        clients.create_topic(quorum.admin(), ORDERS, PARTITIONS, REPLICAS)
        with Traffic(quorum.bootstrap, ORDERS, PARTITIONS) as traffic:
            _replace_all(quorum, "ours")
            _replace_all(quorum, "java")
        assert not traffic.failures
        assert traffic.consumed >= traffic.acknowledged
        quorum.wait_until_equal()
        assert not offline_partitions(quorum.leader())


def _replace_all(quorum: ControllerQuorum, kind: ControllerKind) -> None:
    for id in list(quorum.controllers):
        quorum.replace(id, kind)
        quorum.leader()
        clients.create_topic(quorum.admin(), f"{kind}-{id}", 1, REPLICAS)
        quorum.wait_until_equal()
