"""Kafka's tools and our own read metadata folders that our controller and Java's have written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.conftest import make_workspace
from compat.harness import clients
from compat.harness.kafka.cluster import Cluster, ControllerKind
from compat.harness.kafka.nodes import run_command
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools, segments, snapshots
from compat.harness.waiting import wait_until

TOPICS = [f"topic-{n}" for n in range(20)]

# The shell logs this at level ERROR for control records that every log or snapshot has.
SHELL_ALWAYS_SAYS = re.compile(
    r"ERROR Ignoring control record with type (KRAFT|SNAPSHOT)_(VERSION|VOTERS|HEADER|FOOTER) at offset \d+.*"
)


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=pytest.mark.xdist_group(kind)) for kind in ("ours", "java")],
)
def folder(
    request: pytest.FixtureRequest, tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The folder of a stopped controller at release 4.3, the newest that the shell of 4.3.1 can read."""
    kind: ControllerKind = request.param
    for workspace in make_workspace(tmp_path_factory.mktemp("folder")):
        small = {"metadata.log.max.record.bytes.between.snapshots": "4000"}
        cluster = Cluster(workspace, tool_server, kind, "4.3.1", small)
        cluster.start(log_dir_counts=[1])
        _write_varied_metadata(cluster, KafkaTools(tool_server))
        cluster.brokers[1].stop()
        cluster.controller.stop()
        yield cluster.controller.data_folder


def _write_varied_metadata(cluster: Cluster, tools: KafkaTools) -> None:
    for topic in TOPICS:
        cluster.create_topic(topic, 3, 1, config={"retention.ms": "7200000"})
    cluster.create_topic("doomed", 1, 1)
    clients.delete_topic(cluster.admin(), "doomed")
    bootstrap = cluster.bootstrap
    tools.topics(bootstrap, "--alter", "--topic", "topic-0", "--partitions", "5")
    entity = ("--entity-type", "brokers", "--entity-default")
    tools.configs(bootstrap, "--alter", *entity, "--add-config", "message.max.bytes=2000000")
    clients.produce(bootstrap, "topic-0", [b"value"], idempotent=True)
    folder = cluster.controller.data_folder
    wait_until(lambda: len(snapshots(folder)) > 1, "a snapshot beside the one made by formatting")


def test_kafkas_dump_reads_every_file(folder: Path, tools: KafkaTools) -> None:
    for file in [*segments(folder), *snapshots(folder)]:
        dumped = tools.dump_log(file)
        assert dumped.stderr == ""
        assert "isvalid: true" in dumped.stdout and "isvalid: false" not in dumped.stdout
        assert "Found invalid messages" not in dumped.stdout
    names = {
        record.data["name"]
        for record in tools.metadata_records(*segments(folder))
        if record.type == "TOPIC_RECORD"
    }
    assert {*TOPICS, "doomed"} <= names


def test_kafkas_metadata_shell_reads_the_log(folder: Path, tools: KafkaTools) -> None:
    _assert_shell_lists(tools, segments(folder)[0], set(TOPICS))


def test_kafkas_metadata_shell_reads_the_snapshots(folder: Path, tools: KafkaTools) -> None:
    for snapshot in snapshots(folder)[1:]:  # the first one is made by formatting and knows no topic
        in_snapshot = {
            record.data["name"]
            for record in tools.metadata_records(snapshot)
            if record.type == "TOPIC_RECORD"
        }
        _assert_shell_lists(tools, snapshot, in_snapshot)
        features = ("cat", "/image/features/metadataVersion")
        tools.wait_for_shell(snapshot, *features, expected=lambda printed: "4.3" in printed)


def test_our_dump_is_kafkas_line_by_line(folder: Path, tools: KafkaTools) -> None:
    for file in [*segments(folder), *snapshots(folder)]:
        ours = run_command(
            "dump-log", "--cluster-metadata-decoder", "--skip-record-metadata", "--files", file
        )
        assert ours.returncode == 0, ours.stderr
        assert ours.stdout.splitlines() == tools.dump_log(file).stdout.splitlines()


def test_our_dump_of_several_files_is_kafkas(folder: Path, tools: KafkaTools) -> None:
    files = [*segments(folder), *snapshots(folder)]
    names = ",".join(str(file) for file in files)
    ours = run_command("dump-log", "--cluster-metadata-decoder", "--skip-record-metadata", "--files", names)
    assert ours.stdout.splitlines() == tools.dump_log(*files).stdout.splitlines()


def _assert_shell_lists(tools: KafkaTools, file: Path, topics: set[str]) -> None:
    listed = tools.wait_for_shell(
        file, "ls", "/image/topics/byName", expected=lambda printed: set(printed.split()) == topics
    )
    complaints = [line for line in listed.stderr.splitlines() if not SHELL_ALWAYS_SAYS.fullmatch(line)]
    assert complaints == []
