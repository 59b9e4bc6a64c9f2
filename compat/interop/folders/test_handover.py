"""Java's controller and ours take turns on one folder while the brokers keep running."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from compat.harness import clients
from compat.harness.kafka.cluster import Cluster, ControllerKind
from compat.harness.kafka.tools import KafkaTools, MetadataRecord, segments
from compat.harness.processes import Workspace
from kraft_wire.exporters.resync.bases import BASES
from kraft_wire.log.files import PARTITION_FOLDER, QUORUM_STATE
from kraft_wire.log.snapshot import SnapshotId, snapshot_file_name

ENTITY = ("--entity-type", "topics", "--entity-name")


@pytest.mark.parametrize(
    "turns",
    [("java", "ours", "java"), ("ours", "java", "ours")],
    ids="-".join,
)
def test_a_folder_changes_hands_with_nothing_lost(
    workspace: Workspace, tools: KafkaTools, turns: tuple[ControllerKind, ...]
) -> None:
    cluster = Cluster(workspace, tools.server, turns[0], "4.4.0")
    cluster.start(log_dir_counts=[1, 1])
    broker_pids = {broker.running_process.pid for broker in cluster.brokers.values()}
    _work(cluster, tools, "turn-0")
    written = _log_bytes(cluster)

    for number, kind in enumerate(turns[1:], start=1):
        _leave_a_state_of_an_exporter(cluster)
        cluster.hand_over(to=kind)
        _everything_is_there(cluster, tools, number)
        _work(cluster, tools, f"turn-{number}")
        grown = _log_bytes(cluster)
        assert grown.startswith(written), "the log that was there is the beginning of the log now"
        written = grown

    _everything_is_there(cluster, tools, len(turns))
    assert {broker.running_process.pid for broker in cluster.brokers.values()} == broker_pids
    records = tools.metadata_records(*segments(cluster.controller.data_folder))
    assert len(_of_type(records, "REGISTER_BROKER_RECORD")) == len(cluster.brokers), "each registered once"
    assert not [r for r in _of_type(records, "BROKER_REGISTRATION_CHANGE_RECORD") if r.concerns(fenced=1)]


def _leave_a_state_of_an_exporter(cluster: Cluster) -> None:
    """Neither kind of controller takes it for a snapshot of the log."""
    folder = cluster.controller.data_folder / PARTITION_FOLDER / BASES / "audit"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / snapshot_file_name(SnapshotId(10**9, 0))).write_bytes(b"no snapshot")


def _work(cluster: Cluster, tools: KafkaTools, topic: str) -> None:
    cluster.create_topic(topic, 2, 2)
    clients.produce(cluster.bootstrap, topic, [b"%d" % n for n in range(500)], idempotent=True)
    tools.configs(cluster.bootstrap, "--alter", *ENTITY, topic, "--add-config", "retention.ms=7200000")
    cluster.create_topic(f"{topic}-doomed", 1, 1)
    clients.delete_topic(cluster.admin(), f"{topic}-doomed")


def _everything_is_there(cluster: Cluster, tools: KafkaTools, turn_count: int) -> None:
    """Check that controller and brokers know everything from the earlier turns."""
    for topic in (f"turn-{number}" for number in range(turn_count)):
        with pytest.raises(KafkaException) as refused:
            clients.create_topic(cluster.admin(), topic, 1, 1)
        assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
        cluster.wait_for_isr(topic, cluster.brokers)
        assert len(clients.consume(cluster.bootstrap, topic, 2)) == 500
        described = tools.configs(cluster.bootstrap, "--describe", *ENTITY, topic)
        assert "retention.ms=7200000" in described
        cluster.wait_for_absence(f"{topic}-doomed")


def _log_bytes(cluster: Cluster) -> bytes:
    """Return the bytes of the metadata log as it is now; the last batch may be incomplete."""
    return b"".join(segment.read_bytes() for segment in segments(cluster.controller.data_folder))


def _of_type(records: list[MetadataRecord], record_type: str) -> list[MetadataRecord]:
    return [record for record in records if record.type == record_type]


def test_java_ignores_the_checksum_in_our_quorum_state(workspace: Workspace, tools: KafkaTools) -> None:
    cluster = Cluster(workspace, tools.server, "ours", "4.4.0")
    cluster.start(log_dir_counts=[])
    cluster.controller.stop()
    ours = _quorum_state(cluster)
    assert "crc32c" in ours
    cluster.hand_over(to="java")
    cluster.controller.stop()
    javas = _quorum_state(cluster)
    assert "crc32c" not in javas
    assert javas.keys() | {"crc32c"} == ours.keys()
    assert javas["leaderEpoch"] == ours["leaderEpoch"] + 1, "Java goes on from the epoch in our file"


def _quorum_state(cluster: Cluster) -> dict[str, Any]:
    """The file as any reader of JSON takes it."""
    path = cluster.controller.data_folder / PARTITION_FOLDER / QUORUM_STATE
    state: dict[str, Any] = json.loads(path.read_text())
    return state
