"""Prometheus sets off an alarm at lost brokers, strange nodes, other releases and failing exporters, and ends
it afterwards."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from compat.campaigns.exporters.hooks import OK, Hook, steady
from compat.harness.kafka.pretend_broker import PretendBroker
from compat.harness.kafka.quorum import Controller, connect
from compat.harness.ports import HOST
from compat.harness.waiting import wait_until
from compat.interop.monitoring.watched import Alarms, Site, of_ours, sets_off, write
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_cluster_response import DescribeClusterResponse
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraft_wire.protocol.messages.elect_leaders_response import ElectLeadersResponse
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import ReplicaKey
from tests.support.forged_requests import fetch
from tests.support.newer_release import PACKAGE, newer_release

# Brokers.

UNCLEAN = 1


@sets_off("KraftWireBrokersFenced", "KraftWireOfflinePartitions", "KraftWireUncleanElections")
def test_the_last_replica_in_sync_is_lost(site: Site, alarms: Alarms) -> None:
    fenced, offline, unclean = alarms
    with site.led("brokers", 1) as quorum:
        (controller,) = quorum.running
        first, second = (PretendBroker(id, quorum.cluster_id, controller.port) for id in (1, 2))
        _create_topic(controller, "orders", 1, 2)
        second.close()
        site.prometheus.wait_for("brokers", fenced)
        second = PretendBroker(2, quorum.cluster_id, controller.port, directory=second.directory)
        site.prometheus.wait_until_over("brokers", fenced)
        first.close()
        site.prometheus.wait_for("brokers", fenced, offline)
        assert not site.is_set_off("brokers", unclean)
        _elect_unclean(controller, "orders")
        site.prometheus.wait_for("brokers", unclean)
        site.prometheus.wait_until_over("brokers", offline, unclean)
        second.close()


def _create_topic(controller: Controller, name: str, *replicas: int) -> None:
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)
    topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment])
    with connect(controller) as client:
        response = client.call(CreateTopicsRequest(topics=[topic], timeout_ms=5000), 7, CreateTopicsResponse)
    assert response.topics[0].error_code == ErrorCode.NONE, response


def _elect_unclean(controller: Controller, topic: str) -> None:
    partitions = [TopicPartitions(topic=topic, partitions=(0,))]
    request = ElectLeadersRequest(election_type=UNCLEAN, topic_partitions=partitions, timeout_ms=5000)
    with connect(controller) as client:
        response = client.call(request, 2, ElectLeadersResponse)
    results = [partition for each in response.replica_election_results for partition in each.partition_result]
    assert [result.error_code for result in results] == [ErrorCode.NONE], response


# Nodes and releases.


@sets_off("KraftWireWrongNodes")
def test_a_node_of_another_cluster_fetches(site: Site, alarms: Alarms) -> None:
    with site.led("wrong", 1) as quorum:
        (controller,) = quorum.running
        request = fetch(1, ReplicaKey(77, Uuid(bytes([7] * 16))), 0, 0, version=17, cluster_id="A" * 22)
        with connect(controller) as client:
            client.call(request, 17, FetchResponse)
        site.prometheus.wait_for("wrong", *alarms)
        controller.stop()
        controller.start()
        site.prometheus.wait_until_over("wrong", *alarms)


@sets_off("KraftWireInternalErrors")
def test_a_release_has_a_bug(site: Site, alarms: Alarms, tmp_path: Path) -> None:
    release = _copy(tmp_path, "controller/cluster/describe_cluster.py", "def handle(*given): 1 / 0\n")
    with site.led("buggy", 1, environment=release) as quorum:
        with connect(quorum.leader()) as client:
            answer = client.call(DescribeClusterRequest(), 1, DescribeClusterResponse)
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        site.prometheus.wait_for("buggy", *alarms)
        site.prometheus.wait_until_over("buggy", *alarms)


@sets_off("KraftWireLevelNotSupported")
def test_a_release_is_older_than_the_finalized_level(site: Site, alarms: Alarms, tmp_path: Path) -> None:
    release = _copy(tmp_path, "metadata/features/supported.py", OLDER)
    with site.led("older", 1, environment=release) as quorum:
        (controller,) = quorum.running
        site.prometheus.wait_for("older", *alarms)
        controller.stop()
        of_ours(controller).environment = {}
        controller.start()
        site.prometheus.wait_until_over("older", *alarms)


OLDER = """
_newest_ranges = supported_ranges

def supported_ranges(*, unstable=False):
    ranges = dict(_newest_ranges(unstable=unstable))
    if not unstable:
        lowest, highest = ranges["metadata.version"]
        ranges["metadata.version"] = (lowest, highest - 1)
    return ranges
"""


def _copy(folder: Path, module: str, addition: str) -> dict[str, str]:
    """Copy the package, with more lines at the end of a module. Returns the environment that runs it."""
    copy = folder / "release"
    shutil.copytree(PACKAGE, copy / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    file = copy / PACKAGE.name / module
    file.write_text(file.read_text() + addition)
    return {"PYTHONPATH": str(copy)}


@sets_off("KraftWireReplayStopped", "KraftWireStateLags")
def test_a_newer_release_writes_what_the_others_do_not_know(
    site: Site, alarms: Alarms, tmp_path: Path
) -> None:
    release = {"PYTHONPATH": str(newer_release(tmp_path))}
    with site.led("upgraded", properties={"metadata.max.idle.interval.ms": "500"}) as quorum:
        upgraded = of_ours(quorum.leader())
        upgraded.stop()
        upgraded.environment = release
        upgraded.start()
        while (leader := quorum.leader()) is not upgraded:
            leader.stop()
            quorum.leader()
            leader.start()
        site.prometheus.wait_for("upgraded", *alarms)
        for other in quorum.followers():
            other.stop()
            of_ours(other).environment = release
            other.start()
        site.prometheus.wait_until_over("upgraded", *alarms)


@sets_off("KraftWireStaticVotersIgnored")
def test_the_file_still_names_voters(site: Site, alarms: Alarms) -> None:
    with site.led("static", 1) as quorum:
        (controller,) = quorum.running
        key = "controller.quorum.voters"
        controller.stop()
        controller.change_properties({key: f"{controller.node_id}@{controller.address}"})
        controller.start()
        site.prometheus.wait_for("static", *alarms)
        controller.stop()
        lines = controller.properties_file.read_text().splitlines(keepends=True)
        controller.properties_file.write_text("".join(line for line in lines if not line.startswith(key)))
        controller.start()
        site.prometheus.wait_until_over("static", *alarms)


# Exporters.

PREFIX = "kraft.wire.exporter.audit."


@sets_off("KraftWireExporterFails")
def test_the_folder_of_an_exporter_is_a_file(site: Site, alarms: Alarms, tmp_path: Path) -> None:
    path = tmp_path / "audit"
    path.touch()
    with site.led("failing", 1, {**_exporter("jsonl"), f"{PREFIX}path": str(path)}):
        site.prometheus.wait_for("failing", *alarms)
        path.unlink()
        site.prometheus.wait_until_over("failing", *alarms)


@sets_off("KraftWireExporterLags")
def test_a_receiver_leaves_records_without_an_answer(site: Site, alarms: Alarms) -> None:
    answering = threading.Event()
    answering.set()

    def answer(_number: int) -> int:
        answering.wait()
        return OK

    with Hook(HOST, answer) as hook:
        hook.listen()
        keys = {**_exporter("http"), f"{PREFIX}url": hook.url, f"{PREFIX}timeout.ms": "600000"}
        with site.led("slow", 1, keys) as quorum:
            wait_until(lambda: any(each.is_acknowledged for each in hook.deliveries), "the first records")
            answering.clear()
            write(quorum.leader(), 200)
            site.prometheus.wait_for("slow", *alarms)
            answering.set()
            site.prometheus.wait_until_over("slow", *alarms)


@sets_off("KraftWireExporterRestarted")
def test_a_receiver_is_away_until_the_log_was_trimmed(site: Site, alarms: Alarms) -> None:
    with Hook(HOST, steady) as hook:
        keys = {**_exporter("http"), **TRIMMED, f"{PREFIX}url": hook.url, f"{PREFIX}start": "0"}
        with site.led("away", 1, keys) as quorum:
            (controller,) = quorum.running
            write(controller, 100, 1_000)
            controller.running_process.wait_for_log('"log trimmed"')
            hook.listen()
            site.prometheus.wait_for("away", *alarms)
            site.prometheus.wait_until_over("away", *alarms)


TRIMMED = {
    "metadata.log.max.record.bytes.between.snapshots": "5000",
    "internal.metadata.log.segment.bytes": "5000",
    "metadata.max.retention.bytes": "20000",
    "kraft.wire.exporters.max.log.bytes": "30000",
}


def _exporter(kind: str) -> dict[str, str]:
    return {"kraft.wire.exporters": "audit", f"{PREFIX}type": kind}
