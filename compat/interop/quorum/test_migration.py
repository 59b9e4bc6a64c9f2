"""Java's controllers make way for ours, one node at a time on its own folder, and come back, while clients
produce and consume."""

from __future__ import annotations

import pytest

from compat.conftest import make_workspace
from compat.harness import clients
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.migration import check_until_free, node_of
from compat.harness.kafka.offline import offline_partitions
from compat.harness.kafka.quorum import ControllerQuorum, Voters
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.traffic import Traffic

JAVA: tuple[ControllerKind, ...] = ("java", "java", "java")
TARGETS: dict[ControllerKind, str] = {"java": "java", "ours": "kraft-wire"}
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
    """Replace the controllers in the order of ``quorum migrate --check``: all others before the leader."""
    for left in reversed(range(len(quorum.controllers))):
        report = check_until_free(quorum, TARGETS[kind])
        assert [node["state"] for node in report["nodes"]].count("to do") == left + 1
        replaced = node_of(quorum, report["next"]["node"])
        assert replaced.node_id != report["leader_id"] or left == 0
        assert report["next"]["commands"][-1].endswith(f" {replaced.properties_file}")
        quorum.replace(replaced.node_id, kind)
        quorum.leader()
        clients.create_topic(quorum.admin(), f"{kind}-{replaced.node_id}", 1, REPLICAS)
        quorum.wait_until_equal()
    assert check_until_free(quorum, TARGETS[kind])["is_reached"]
