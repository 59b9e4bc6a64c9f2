"""``kraft-wire quorum migrate --check`` from static to dynamic voters, on quorums of ours and of Java's.

``test_migration`` asks it while Java's controllers make way for ours.
"""

from __future__ import annotations

import pytest

from compat.conftest import make_workspace
from compat.harness import clients
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.migration import check, check_until_free, findings, follow
from compat.harness.kafka.quorum import ControllerQuorum
from compat.harness.kafka.reconfiguration import wait_for_registrations
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools
from compat.harness.processes import Workspace

MAX_STEPS = 8
VOTERS = "controller.quorum.voters"


@pytest.mark.parametrize("kinds", [("java", "java", "java"), ("ours", "ours", "java")], ids="-".join)
def test_its_commands_lead_from_static_to_dynamic_voters(
    kinds: tuple[ControllerKind, ...],
    tool_server: ToolServer,
    tools: KafkaTools,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The upgrade comes first, then each controller, the leader last, then the broker."""
    for workspace in make_workspace(tmp_path_factory.mktemp("dynamic")):
        quorum = ControllerQuorum(workspace, tool_server, kinds, "static")
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.start_brokers(1)
        done: list[str] = []
        for _ in range(MAX_STEPS):
            report = check_until_free(quorum, "dynamic")
            if report["is_reached"]:
                break
            leader = f"controller {report['leader_id']}"
            left = [node["name"] for node in report["nodes"] if node["state"] == "to do"]
            assert report["kraft_version"] == int(bool(done))
            assert report["next"]["node"] != leader or left == [leader, "broker 1"]
            follow(quorum, tools, report)
            done.append(report["next"]["node"])
        assert done[0] == ""
        assert sorted(done[1:-1]) == [f"controller {id}" for id in quorum.ports]
        assert done[-1] == "broker 1"
        for node in (*quorum.controllers.values(), *quorum.brokers.values()):
            assert VOTERS not in node.properties_file.read_text()
        quorum.wait_until_brokers_are_ready()
        clients.create_topic(quorum.admin(), "afterwards", 1, 1)
        quorum.wait_until_equal()


@pytest.mark.parametrize("version", ["3.9.2", "4.0.2"])
def test_java_s_older_controllers_must_be_upgraded_first(
    version: str, tool_server: ToolServer, workspace: Workspace
) -> None:
    """Their leader says that it would carry the upgrade out, and doesn't."""
    quorum = ControllerQuorum(workspace, tool_server, ["java"] * 3, "static", jars=find_jars(version))
    quorum.format()
    quorum.start()
    quorum.leader()
    report = check(quorum, "dynamic")
    release = version.rpartition(".")[0]
    problems = {finding["node"]: finding["what"] for finding in findings(report)}
    assert set(problems) >= {f"controller {id}" for id in quorum.ports}
    assert f"it is Kafka {release}: before 4.1" in problems["controller 100"]
    assert report["next"]["commands"] == []


def test_what_kraft_wire_lacks_is_seen_in_the_settings_and_in_the_metadata(
    tool_server: ToolServer, tools: KafkaTools, workspace: Workspace
) -> None:
    """Without the files of the nodes: a Java controller tells the properties that it was started with."""
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
    }
    quorum = ControllerQuorum(workspace, tool_server, ["java"], "static", properties=authorizer)
    quorum.format()
    quorum.start()
    quorum.leader()
    wait_for_registrations(quorum)
    acl = ("--add", "--topic", "orders", "--allow-principal", "User:alice", "--operation", "read")
    tools.controller_acls(quorum.address_list, *acl)
    report = check(quorum, "kraft-wire", with_files=False)
    (problem,) = findings(report)
    assert problem["node"] == "controller 100"
    assert "the settings that it runs with: authorizer.class.name is not supported" in problem["what"]
    notes = [finding["what"] for finding in findings(report, "note")]
    assert any(text.startswith("ACLs: 1; ") for text in notes)
    assert any("CreateAcls" in text and "DeleteAcls" in text for text in notes)
