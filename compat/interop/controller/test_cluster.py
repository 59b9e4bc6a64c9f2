"""Clusters of real brokers of each version work on our controller, and on Java's for comparison.
The tests of one version share one cluster: broker 1 has one log folder, broker 2 has two. Each test leaves
both brokers unfenced and in every ISR.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from compat.conftest import make_workspace
from compat.harness import clients, kcat
from compat.harness.kafka import broker_metadata
from compat.harness.kafka.cluster import Cluster, ControllerKind
from compat.harness.kafka.nodes import run_command
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools, MetadataRecord, segments
from compat.harness.waiting import wait_until

BROKERS = {1, 2}
SESSION_TIMEOUT_S = 3.0
RESERVED_DIRECTORIES = ("AAAAAAAAAAAAAAAAAAAAA",)  # the ids 0 to 99 have this prefix

CLUSTERS: list[tuple[ControllerKind, str]] = [
    ("ours", "4.4.0"),
    ("ours", "4.3.1"),
    ("ours", "4.0.2"),
    ("java", "4.4.0"),
]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(params, marks=pytest.mark.xdist_group("-".join(params)), id="-".join(params))
        for params in CLUSTERS
    ],
)
def cluster(
    request: pytest.FixtureRequest, tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    controller_kind, broker_version = request.param
    for workspace in make_workspace(tmp_path_factory.mktemp("cluster")):
        cluster = Cluster(workspace, tool_server, controller_kind, broker_version)
        cluster.start(log_dir_counts=[1, 2])
        yield cluster


@pytest.fixture(autouse=True)
def all_running(cluster: Cluster) -> None:
    """Restart the nodes that a failed test left stopped, so that the next tests don't fail too."""
    for node in (cluster.controller, *cluster.brokers.values()):
        if not node.running_process.running:
            node.start()
            node.wait_until_ready()


@pytest.fixture
def records(cluster: Cluster, tools: KafkaTools) -> Callable[[str], list[MetadataRecord]]:
    """Return a function that reads the records of one type that are now in the controller's log."""

    def read(record_type: str) -> list[MetadataRecord]:
        written = tools.metadata_records(*segments(cluster.controller.data_folder))
        return [record for record in written if record.type == record_type]

    return read


Records = Callable[[str], list[MetadataRecord]]


def test_brokers_register_fenced_and_are_unfenced(cluster: Cluster, records: Records) -> None:
    registrations = records("REGISTER_BROKER_RECORD")
    assert {record.data["brokerId"] for record in registrations} == BROKERS
    assert all(record.concerns(fenced=True) for record in registrations)
    unfencings = [
        record for record in records("BROKER_REGISTRATION_CHANGE_RECORD") if record.concerns(fenced=-1)
    ]
    assert {record.data["brokerId"] for record in unfencings} == BROKERS
    cluster.wait_for_brokers(BROKERS)


def test_a_topic_has_its_replicas_on_two_brokers(cluster: Cluster, records: Records) -> None:
    cluster.create_topic("pairs", partitions=4, replicas=2)

    described = broker_metadata.partitions(cluster.brokers[1], "pairs")
    assert set(described) == {0, 1, 2, 3}
    assert all(set(partition.replicas) == BROKERS for partition in described.values())
    assert broker_metadata.leaders(cluster.brokers[1], "pairs") == BROKERS, "leaders are spread"
    assert "pairs" in [record.data["name"] for record in records("TOPIC_RECORD")]


def test_replicas_are_assigned_to_directories(cluster: Cluster, records: Records) -> None:
    """A broker with two log dirs reports the directory of each replica (AssignReplicasToDirs)."""
    cluster.create_topic_on("placed", [[2, 1], [1, 2]])
    topic_id = _topic_id(records, "placed")

    def directories() -> dict[int, list[str]]:
        latest = {}
        for record_type in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
            for record in records(record_type):
                if record.concerns(topicId=topic_id) and record.data.get("directories"):
                    latest[record.data["partitionId"]] = record.data["directories"]
        return latest

    def all_assigned() -> bool:
        latest = directories()
        return len(latest) == 2 and not any(
            directory.startswith(RESERVED_DIRECTORIES)
            for assigned in latest.values()
            for directory in assigned
        )

    wait_until(all_assigned, "every replica of `placed` to have a directory")


def test_ten_thousand_messages_through_kcat(cluster: Cluster) -> None:
    cluster.create_topic("by-kcat", partitions=3, replicas=2)
    lines = [f"message {n}" for n in range(10_000)]
    kcat.produce(cluster.bootstrap, "by-kcat", lines)
    assert sorted(kcat.consume(cluster.bootstrap, "by-kcat")) == sorted(lines)


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_ten_thousand_messages_through_confluent_kafka(
    cluster: Cluster, records: Records, idempotent: bool
) -> None:
    topic = f"by-confluent-{'idempotent' if idempotent else 'plain'}"
    cluster.create_topic(topic, partitions=3, replicas=2)
    values = [b"message %d" % n for n in range(10_000)]
    clients.produce(cluster.bootstrap, topic, values, idempotent=idempotent)
    assert sorted(clients.consume(cluster.bootstrap, topic, 3)) == sorted(values)
    if idempotent:
        blocks = [record.data["nextProducerId"] for record in records("PRODUCER_IDS_RECORD")]
        assert blocks == sorted(set(blocks)) and blocks, "producer id blocks are handed out once"


@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_restarted_controller_keeps_its_state_and_its_brokers(
    cluster: Cluster, records: Records, stop_signal: signal.Signals
) -> None:
    topic = f"kept-over-{stop_signal.name.lower()}"
    cluster.create_topic(topic, 2, 2, config={"retention.ms": "7200000"})
    registrations = records("REGISTER_BROKER_RECORD")
    status_changes = records("BROKER_REGISTRATION_CHANGE_RECORD")
    topics = broker_metadata.topics(cluster.brokers[1])

    if stop_signal == signal.SIGTERM:
        cluster.controller.stop()
    else:
        cluster.controller.kill()
    cluster.controller.start()
    cluster.controller.wait_until_ready()

    with pytest.raises(KafkaException) as refused:
        clients.create_topic(cluster.admin(), topic, 2, 2)
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    cluster.create_topic(f"{topic}-and-after", 2, 2)
    _produce_for(cluster, topic, SESSION_TIMEOUT_S * 1.5)
    assert records("REGISTER_BROKER_RECORD") == registrations, "no broker registered again"
    assert records("BROKER_REGISTRATION_CHANGE_RECORD") == status_changes, "no broker was fenced meanwhile"
    assert broker_metadata.topics(cluster.brokers[1]) == topics | {f"{topic}-and-after"}


def test_a_killed_broker_is_fenced_and_comes_back_into_the_isr(cluster: Cluster, records: Records) -> None:
    cluster.create_topic_on("survives", [[1, 2], [2, 1]])
    before = [b"before %d" % n for n in range(1000)]
    clients.produce(cluster.bootstrap, "survives", before)

    cluster.brokers[1].kill()
    cluster.wait_for_brokers({2})
    cluster.wait_for_isr("survives", {2})
    assert broker_metadata.leaders(cluster.brokers[2], "survives") == {2}
    assert any(
        record.concerns(brokerId=1, fenced=1) for record in records("BROKER_REGISTRATION_CHANGE_RECORD")
    )
    meanwhile = [b"meanwhile %d" % n for n in range(1000)]
    clients.produce(cluster.brokers[2].address, "survives", meanwhile)

    cluster.brokers[1].start()
    cluster.brokers[1].wait_until_ready()
    cluster.wait_for_isr("survives", BROKERS)
    consumed = clients.consume(cluster.brokers[1].address, "survives", 2)
    assert sorted(consumed) == sorted(before + meanwhile)


def test_a_broker_that_shuts_down_leaves_no_partition_offline(cluster: Cluster, records: Records) -> None:
    cluster.create_topic_on("steady", [[1, 2], [2, 1]])
    topic_id = _topic_id(records, "steady")
    broker = cluster.brokers[2]

    process = broker.running_process
    process.send_signal(signal.SIGTERM)
    produced = 0
    while process.running:
        values = [b"%d" % n for n in range(produced, produced + 100)]
        clients.produce(cluster.brokers[1].address, "steady", values, idempotent=True)
        produced += 100
    broker.stop()

    assert process.find_in_log("The controller has asked us to exit controlled shutdown")
    assert any(
        record.concerns(brokerId=2, inControlledShutdown=1)
        for record in records("BROKER_REGISTRATION_CHANGE_RECORD")
    )
    changes = [record for record in records("PARTITION_CHANGE_RECORD") if record.concerns(topicId=topic_id)]
    assert changes
    assert not any(record.concerns(leader=-1) for record in changes), "a partition was offline"
    cluster.wait_for_brokers({1})
    cluster.wait_for_isr("steady", {1})
    assert len(clients.consume(cluster.brokers[1].address, "steady", 2)) == produced
    # The cluster's kept client may believe that the broker that left takes its requests.
    clients.create_topic(clients.admin(cluster.brokers[1].address), "made-meanwhile", 4, len(BROKERS))

    broker.start()
    broker.wait_until_ready()
    cluster.wait_for_isr("steady", BROKERS)
    cluster.wait_for_isr("made-meanwhile", BROKERS)
    cluster.wait_for_brokers(BROKERS)


def test_a_deleted_topic_can_be_created_again(cluster: Cluster, records: Records) -> None:
    cluster.create_topic("phoenix", 2, 2)
    first_id = _topic_id(records, "phoenix")
    clients.produce(cluster.bootstrap, "phoenix", [b"old %d" % n for n in range(100)])

    clients.delete_topic(cluster.admin(), "phoenix")
    cluster.wait_for_absence("phoenix")
    cluster.create_topic("phoenix", 2, 2)

    second_id = _topic_id(records, "phoenix")
    assert second_id != first_id
    new = [b"new %d" % n for n in range(100)]
    clients.produce(cluster.bootstrap, "phoenix", new)
    assert sorted(clients.consume(cluster.bootstrap, "phoenix", 2)) == sorted(new)
    folders = [cluster.brokers[1].data_folder / f"phoenix-{index}" for index in range(2)]
    files = [folder / "partition.metadata" for folder in folders]
    wait_until(
        lambda: all(file.exists() and second_id in file.read_text() for file in files),
        "the folders to be the second topic's",
    )


def test_kafkas_admin_tools_work_through_the_brokers(cluster: Cluster, tools: KafkaTools) -> None:
    bootstrap = cluster.bootstrap
    tools.topics(bootstrap, "--create", "--topic", "tooled", "--replica-assignment", "1:2,2:1")
    broker_metadata.wait_for_topic(cluster.running, "tooled", 2)
    tools.topics(bootstrap, "--alter", "--topic", "tooled", "--partitions", "4")
    broker_metadata.wait_for_topic(cluster.running, "tooled", 4)
    described = tools.topics(bootstrap, "--describe", "--topic", "tooled")
    assert "PartitionCount: 4" in described and "ReplicationFactor: 2" in described

    entity = ("--entity-type", "topics", "--entity-name", "tooled")
    tools.configs(
        bootstrap, "--alter", *entity, "--add-config", "retention.ms=3600000,cleanup.policy=compact"
    )
    tools.configs(bootstrap, "--alter", *entity, "--delete-config", "cleanup.policy")

    def configured() -> bool:
        described = tools.configs(bootstrap, "--describe", *entity)
        return "retention.ms=3600000" in described and "cleanup.policy=compact" not in described

    wait_until(configured, "the topic to have retention.ms alone")

    status = tools.quorum(cluster.controller.address, "describe", "--status")
    assert f"ClusterId:              {cluster.cluster_id}" in status
    assert f"LeaderId:               {cluster.controller.node_id}" in status
    assert "metadata.version" in tools.features(bootstrap, "describe")
    assert tools.cluster_id(bootstrap) == cluster.cluster_id


def test_leadership_returns_to_the_preferred_replica(cluster: Cluster, tools: KafkaTools) -> None:
    cluster.create_topic_on("preferred", [[2, 1]])
    cluster.brokers[2].restart()
    cluster.wait_for_isr("preferred", BROKERS)
    assert broker_metadata.leaders(cluster.brokers[1], "preferred") == {1}

    options = ("--election-type", "preferred", "--topic", "preferred", "--partition", "0")
    tools.leader_election(cluster.bootstrap, *options)
    wait_until(
        lambda: broker_metadata.leaders(cluster.brokers[1], "preferred") == {2}, "broker 2 to lead again"
    )


def test_describe_shows_what_kafka_s_tools_show(cluster: Cluster, tools: KafkaTools) -> None:
    cluster.create_topic_on("shown", [[2, 1], [1, 2], [2, 1]])
    rows = _described(cluster, "topics", "shown")
    assert [_as_kafka_shows(row) for row in rows] == [
        [cell.partition(":")[2].strip() for cell in line.strip().split("\t")[:5]]
        for line in tools.topics(cluster.bootstrap, "--describe", "--topic", "shown").splitlines()
        if "Partition: " in line
    ]
    leads = {row["broker"]: row["leads"] for row in _described(cluster, "brokers")}
    described = tools.topics(cluster.bootstrap, "--describe")
    assert leads == {broker: described.count(f"Leader: {broker}\t") for broker in BROKERS}
    levels = {row["feature"]: row for row in _described(cluster, "features")}
    features = tools.features(cluster.bootstrap, "describe")
    for feature, level in re.findall(r"Feature: (\S+) .* FinalizedVersionLevel: (\S+)", features):
        newer_than_the_tool = {"UNKNOWN"} if feature == "metadata.version" else set()
        assert level in {
            levels[feature]["version"] or str(levels[feature]["finalized"]),
            *newer_than_the_tool,
        }
    assert [row["role"] for row in _described(cluster, "quorum")] == ["leader"]


def test_our_dump_of_the_log_is_kafkas(cluster: Cluster, tools: KafkaTools, tmp_path: Path) -> None:
    """This test must run last, when the log holds the records of all tests before it."""
    for segment in segments(cluster.controller.data_folder):
        copy = tmp_path / segment.name
        shutil.copy(segment, copy)
        ours = run_command(
            "dump-log", "--cluster-metadata-decoder", "--skip-record-metadata", "--files", copy
        )
        assert ours.returncode == 0, ours.stderr
        assert ours.stdout.splitlines() == tools.dump_log(copy).stdout.splitlines()


def _described(cluster: Cluster, screen: str, *topics: str) -> list[dict[str, Any]]:
    """Return the rows of a screen of `kraft-wire describe`."""
    done = run_command(
        "describe", screen, *topics, "--json", "--bootstrap-controller", cluster.controller.address
    )
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)[screen]
    return rows


def _as_kafka_shows(row: dict[str, Any]) -> list[str]:
    """Return the name, partition, leader, replicas and ISR as kafka-topics.sh prints them."""
    lists = (",".join(map(str, row[name])) for name in ("replicas", "isr"))
    return [row["topic"], str(row["partition"]), str(row["leader"]), *lists]


def _topic_id(records: Records, name: str) -> str:
    """Return the id of the newest topic with this name."""
    ids = [record.data["topicId"] for record in records("TOPIC_RECORD") if record.concerns(name=name)]
    latest: str = ids[-1]
    return latest


def _produce_for(cluster: Cluster, topic: str, seconds: float) -> None:
    """Produce for ``seconds`` without an error; a broker that was fenced meanwhile would cause one."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        clients.produce(cluster.bootstrap, topic, [b"alive" for _ in range(100)])
