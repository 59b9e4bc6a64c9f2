"""A new broker fetches a snapshot from our controller in several pieces, because the log was trimmed."""

from __future__ import annotations

from pathlib import Path

from compat.harness.kafka import broker_metadata
from compat.harness.kafka.cluster import Cluster
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import snapshots
from compat.harness.processes import Workspace
from compat.harness.waiting import wait_until

TOPICS = {f"topic-{n}" for n in range(30)}
TRIMMED_EARLY = {
    "metadata.log.max.record.bytes.between.snapshots": "3000",
    "internal.metadata.log.segment.bytes": "3000",
    "metadata.max.retention.bytes": "9000",
}


def _first_segment(folder: Path) -> Path:
    return folder / "__cluster_metadata-0" / "00000000000000000000.log"


def test_a_new_broker_starts_from_a_snapshot_in_pieces(workspace: Workspace, tool_server: ToolServer) -> None:
    cluster = Cluster(workspace, tool_server, "ours", "4.4.0", TRIMMED_EARLY)
    cluster.start(log_dir_counts=[1])
    for topic in TOPICS:
        cluster.create_topic(topic, 2, 1)
    folder = cluster.controller.data_folder
    wait_until(lambda: not _first_segment(folder).exists(), "the log's beginning to be trimmed")

    late = cluster.add_broker(2)
    with late.properties_file.open("a") as file:
        file.write("controller.quorum.fetch.snapshot.max.bytes=700\n")
    late.start()
    late.wait_until_ready()
    cluster.wait_for_brokers({1, 2})

    assert broker_metadata.topics(late) >= TOPICS
    fetched = [path for path in snapshots(late.data_folder) if path.stat().st_size > 2 * 700]
    assert fetched, "the broker fetched no snapshot that took several pieces"
    assert not _first_segment(late.data_folder).exists()
