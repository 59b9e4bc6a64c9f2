"""The harness works with Java alone; if a test fails here, the harness is wrong, not our controller."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.harness import clients, kcat
from compat.harness.kafka.cluster import Cluster
from compat.harness.kafka.jars import find_jars, schema_judge_class_path, tool_server_classes
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools, segments
from compat.harness.paths import MissingComponent
from compat.harness.processes import ProcessFailed, Workspace


def test_a_java_cluster_serves_kcat_confluent_and_tools(workspace: Workspace, tools: KafkaTools) -> None:
    cluster = Cluster(workspace, tools.server, "java", "4.3.1")
    cluster.start(log_dir_counts=[1])
    cluster.create_topic("greetings", partitions=2, replicas=1)

    kcat.produce(cluster.bootstrap, "greetings", [f"kcat {n}" for n in range(100)])
    clients.produce(
        cluster.bootstrap, "greetings", [b"confluent %d" % n for n in range(100)], idempotent=True
    )

    expected = {f"{client} {n}" for client in ("kcat", "confluent") for n in range(100)}
    assert set(kcat.consume(cluster.bootstrap, "greetings")) == expected
    assert {value.decode() for value in clients.consume(cluster.bootstrap, "greetings", 2)} == expected
    assert tools.cluster_id(cluster.bootstrap) == cluster.cluster_id
    records = tools.metadata_records(*segments(cluster.controller.data_folder))
    assert "greetings" in [record.data["name"] for record in records if record.type == "TOPIC_RECORD"]

    cluster.brokers[1].stop()
    cluster.controller.stop()
    tools.wait_for_shell(
        segments(cluster.controller.data_folder)[0],
        "ls",
        "/image/topics/byName",
        expected=lambda printed: "greetings" in printed.split(),
    )


def test_a_tool_that_fails_says_why(tool_server: ToolServer, tools: KafkaTools, tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match="--snapshot"):
        tools.run("org.apache.kafka.shell.MetadataShell", []).check()
    missing = tools.run("org.apache.kafka.shell.MetadataShell", ["--snapshot", tmp_path / "none", "ls"])
    assert missing.exit_code == 1
    assert "none" in missing.stderr


def test_a_missing_component_names_the_command_that_gets_it(tmp_path: Path) -> None:
    with pytest.raises(MissingComponent, match="make kafka"):
        find_jars("4.4.0", tmp_path)
    with pytest.raises(MissingComponent, match="make kafka"):
        tool_server_classes(tmp_path)
    with pytest.raises(MissingComponent, match="make kafka"):
        schema_judge_class_path(tmp_path)


def test_a_process_that_ends_early_fails_the_wait_with_its_log(workspace: Workspace) -> None:
    process = workspace.start("short", ["sh", "-c", "echo cannot bind; exit 3"])
    with pytest.raises(ProcessFailed, match=r"(?s)short ended with 3.*cannot bind"):
        process.wait_for_log("never logged")


def test_leaving_a_workspace_kills_its_processes(tmp_path: Path) -> None:
    with Workspace(tmp_path) as workspace:
        process = workspace.start("long", ["sleep", "1000"])
        assert process.running
    assert process.exit_code == -9
