"""Records that are exported to a topic of the cluster's own broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from compat.harness import clients
from compat.harness.kafka.cluster import NEWEST_KAFKA, Cluster
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools
from compat.harness.processes import Workspace
from compat.harness.waiting import wait_until

TOPIC = "metadata-trail"
P = "kraft.wire.exporter."


def test_a_topic_has_every_record_in_order_though_its_broker_was_killed(
    workspace: Workspace, tool_server: ToolServer
) -> None:
    files = workspace.folder / "audit"
    cluster = Cluster(workspace, tool_server, "ours", NEWEST_KAFKA)
    cluster.format_controller()
    broker = cluster.add_broker(1)
    cluster.controller.change_properties(_exporters(broker.address, files))
    cluster.controller.start()
    broker.start()
    cluster.controller.wait_until_ready()
    broker.wait_until_ready()
    cluster.wait_for_brokers([1])

    cluster.create_topic(TOPIC, 1, 1)
    for number in range(5):
        cluster.create_topic(f"before-{number}", 3, 1)
    broker.kill()
    broker.start()
    broker.wait_until_ready()
    cluster.wait_for_brokers([1])
    for number in range(5):
        cluster.create_topic(f"after-{number}", 3, 1)
    last = max(line["offset"] for line in _lines(files))

    def has_last() -> bool:
        return any(record["offset"] >= last for record in _records(broker.address))

    wait_until(has_last, f"offset {last} in {TOPIC}")
    cluster.controller.stop()
    records, lines = _records(broker.address), _once(_lines(files))
    once = _once(records)
    assert once == lines[: len(once)]
    assert once[-1]["offset"] >= last


def _exporters(broker: str, files: Path) -> dict[str, str]:
    return {
        "kraft.wire.exporters": "topic,files",
        f"{P}topic.type": "kafka",
        f"{P}topic.bootstrap.servers": broker,
        f"{P}topic.topic": TOPIC,
        f"{P}topic.timeout.ms": "2000",
        f"{P}files.type": "jsonl",
        f"{P}files.path": str(files),
    }


def _records(broker: str) -> list[dict[str, Any]]:
    return [msgspec.json.decode(value) for value in clients.consume(broker, TOPIC, 1)]


def _lines(folder: Path) -> list[dict[str, Any]]:
    return [
        msgspec.json.decode(line)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_bytes().splitlines()
    ]


def _once(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records without the repeated ones, in the order of their first appearance."""
    return list({(record["offset"], record["index"]): record for record in records}.values())


def test_kafka_s_tools_pause_and_resume_an_exporter_and_brokers_keep_the_keys(
    workspace: Workspace, tool_server: ToolServer
) -> None:
    files = workspace.folder / "audit"
    cluster = Cluster(workspace, tool_server, "ours", NEWEST_KAFKA)
    cluster.format_controller()
    broker = cluster.add_broker(1)
    cluster.controller.change_properties(
        {
            "kraft.wire.exporters": "files",
            f"{P}files.type": "jsonl",
            f"{P}files.path": str(files),
        }
    )
    cluster.controller.start()
    broker.start()
    cluster.controller.wait_until_ready()
    broker.wait_until_ready()
    cluster.wait_for_brokers([1])
    everyone = ("--alter", "--entity-type", "brokers", "--entity-default")
    tools = KafkaTools(tool_server)
    tools.configs(broker.address, *everyone, "--add-config", f"{P}files.paused=true")
    cluster.controller.running_process.wait_for_log("there are new orders for them")
    cluster.create_topic("paused", 1, 1)
    broker.stop()
    broker.start()
    broker.wait_until_ready()
    assert not _names(files) & {"paused"}
    tools.configs(broker.address, *everyone, "--delete-config", f"{P}files.paused")
    wait_until(lambda: "paused" in _names(files), "the topic that was created meanwhile")


def _names(folder: Path) -> set[str]:
    return {line["data"]["name"] for line in _lines(folder) if line["type"] == "TopicRecord"}
