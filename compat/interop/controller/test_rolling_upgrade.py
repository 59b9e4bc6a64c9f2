"""Brokers of Kafka 3.9 become brokers of 4.0, 4.3 and 4.4, one after the other, and metadata.version follows.
Clients produce and consume all the time. Each step is taken back as far as Java allows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.conftest import make_workspace
from compat.harness.kafka import broker_metadata
from compat.harness.kafka.cluster import Cluster
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools
from compat.harness.traffic import Traffic
from compat.harness.waiting import wait_until
from compat.harness.wire import WireClient
from kraft_wire.metadata.features.metadata_version import (
    VERSIONS,
    metadata_changed_between,
    parse_release_version,
)
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse

RELEASES = ("3.9.2", "4.0.2", "4.3.1", "4.4.0")
BROKERS = (1, 2, 3)
TOPIC = "orders"
PARTITIONS = 3


@pytest.fixture(scope="module")
def cluster(tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    for workspace in make_workspace(tmp_path_factory.mktemp("upgrade")):
        made = Cluster(workspace, tool_server, "ours", RELEASES[0])
        made.start([1] * len(BROKERS))
        made.create_topic(TOPIC, PARTITIONS, len(BROKERS), {"min.insync.replicas": "2"})
        yield made


def test_metadata_version_goes_from_3_9_to_4_4_with_the_brokers(cluster: Cluster, tools: KafkaTools) -> None:
    assert level_of(cluster) == level(RELEASES[0])
    with Traffic(cluster.bootstrap, TOPIC, PARTITIONS) as traffic:
        for version in RELEASES[1:]:
            refuses_while_a_broker_is_older(cluster, tools, version)
            replace_brokers(cluster, version)
            upgrade(cluster, tools, version)
            go_back_as_far_as_java(cluster, tools)
            upgrade(cluster, tools, version)
    assert not traffic.failures
    assert traffic.consumed >= traffic.acknowledged
    cluster.wait_for_isr(TOPIC, BROKERS)


def level(version: str) -> int:
    """Return the metadata.version of a release."""
    return parse_release_version(version.rpartition(".")[0])


def level_of(cluster: Cluster) -> int:
    """Return the finalized metadata.version, as a broker tells it."""
    request = ApiVersionsRequest(client_software_name="compat", client_software_version="1")
    with WireClient(cluster.brokers[1].port) as client:
        response = client.call(request, 3, ApiVersionsResponse)
    levels = {each.name: each.max_version_level for each in response.finalized_features}
    return levels["metadata.version"]


def wait_for_level(cluster: Cluster, wanted: int) -> None:
    wait_until(lambda: level_of(cluster) == wanted, f"a broker to know metadata.version {wanted}")


def change(way: str, wanted: int) -> tuple[str, ...]:
    """Return the options of FeatureCommand. Level numbers, because the newest levels have no name there."""
    return way, "--feature", f"metadata.version={wanted}"


def refuses_while_a_broker_is_older(cluster: Cluster, tools: KafkaTools, version: str) -> None:
    before = level_of(cluster)
    assert not tools.try_features(cluster.bootstrap, *change("upgrade", level(version)))
    assert level_of(cluster) == before


def replace_brokers(cluster: Cluster, version: str) -> None:
    """Restart the brokers with another version, one after the other, when all replicas are in sync."""
    for broker in cluster.brokers.values():
        broker.stop()
        broker.change_version(find_jars(version))
        broker.start()
        broker.wait_until_ready()
        cluster.wait_for_brokers(BROKERS)
        broker_metadata.wait_for_isr(cluster.running, TOPIC, BROKERS)


def upgrade(cluster: Cluster, tools: KafkaTools, version: str) -> None:
    if level_of(cluster) != level(version):
        tools.features(cluster.bootstrap, *change("upgrade", level(version)))
    wait_for_level(cluster, level(version))


def go_back_as_far_as_java(cluster: Cluster, tools: KafkaTools) -> None:
    """Lower the level while the format of the metadata is the same. The next lower one is refused."""
    present = level_of(cluster)
    for version in reversed(VERSIONS):
        if version.level >= present:
            continue
        down = change("downgrade", version.level)
        if metadata_changed_between(present, version.level):
            assert not tools.try_features(cluster.bootstrap, *down)
            break
        tools.features(cluster.bootstrap, *down)
        present = version.level
        wait_for_level(cluster, present)
