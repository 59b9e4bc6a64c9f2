"""A broker whose requests kio encodes registers with our controller and administers topics."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from compat.conftest import make_workspace
from compat.harness.kafka.cluster import CONTROLLER_ID, random_cluster_id
from compat.harness.kafka.nodes import OurController
from compat.harness.wire import FrameClient
from compat.judges.client_codecs import kio_codec
from kraft_wire.wire.framing import frame

LOG = "__cluster_metadata"
CAUGHT_UP = 2**40
TOPIC = 2
CONTROLLERS = 2
SET = 0


class KioClient:
    """A connection whose ``call`` sends a request of kio and returns kio's response."""

    def __init__(self, wire: FrameClient) -> None:
        self._wire = wire
        self._correlation_ids = itertools.count(1)

    def call(self, request: Any) -> Any:
        expected = next(self._correlation_ids)
        self._wire.send_bytes(frame(kio_codec.encode_request(request, expected, "kio")))
        answered_by = type(request).__name__.replace("Request", "Response")
        correlation_id, answer = kio_codec.decode_response(
            answered_by, request.__version__, self._wire.receive_frame()
        )
        assert correlation_id == expected
        return answer


@pytest.fixture(scope="module")
def cluster_id() -> str:
    return random_cluster_id()


@pytest.fixture(scope="module")
def client(cluster_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KioClient]:
    """Connect to a controller whose session timeout is longer than these tests."""
    for workspace in make_workspace(tmp_path_factory.mktemp("kio")):
        controller = OurController(workspace, CONTROLLER_ID, {"broker.session.timeout.ms": "600000"})
        controller.format(cluster_id, "--standalone")
        controller.start()
        controller.wait_until_ready()
        with FrameClient(controller.port) as wire:
            yield KioClient(wire)


@pytest.fixture(scope="module")
def broker_epoch(client: KioClient, cluster_id: str) -> int:
    """Register and unfence a broker with kio; return its epoch. It supports the controller's features."""
    software = {"client_software_name": "kio", "client_software_version": "0.6.5"}
    versions = client.call(kio_codec.module("ApiVersionsRequest", 4).ApiVersionsRequest(**software))
    m = kio_codec.module("BrokerRegistrationRequest", 4)
    registered = client.call(
        m.BrokerRegistrationRequest(
            broker_id=1,
            cluster_id=cluster_id,
            incarnation_id=uuid.uuid4(),
            listeners=(m.Listener(name="PLAINTEXT", host="127.0.0.1", port=9092, security_protocol=0),),
            features=tuple(
                m.Feature(
                    name=feature.name,
                    min_supported_version=feature.min_version,
                    max_supported_version=feature.max_version,
                )
                for feature in versions.supported_features
            ),
            rack=None,
            log_dirs=(uuid.uuid4(),),
        )
    )
    assert registered.error_code == ErrorCode.none
    beat = _heartbeat(client, registered.broker_epoch)
    assert (beat.error_code, beat.is_fenced) == (ErrorCode.none, False)
    epoch: int = registered.broker_epoch
    return epoch


def _heartbeat(client: KioClient, epoch: int, *, want_shut_down: bool = False) -> Any:
    request = kio_codec.entity_class("BrokerHeartbeatRequest", 1)(
        broker_id=1,
        broker_epoch=epoch,
        current_metadata_offset=CAUGHT_UP,
        want_fence=False,
        want_shut_down=want_shut_down,
    )
    return client.call(request)


def test_the_cluster_is_described(client: KioClient, cluster_id: str) -> None:
    m = kio_codec.module("DescribeClusterRequest", 1)
    request = m.DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=CONTROLLERS)
    described = client.call(request)
    assert (described.error_code, described.cluster_id) == (ErrorCode.none, cluster_id)
    assert [node.broker_id for node in described.brokers] == [CONTROLLER_ID]


def test_the_quorum_is_described(client: KioClient) -> None:
    m = kio_codec.module("DescribeQuorumRequest", 2)
    topic = m.TopicData(topic_name=LOG, partitions=(m.PartitionData(partition_index=0),))
    described = client.call(m.DescribeQuorumRequest(topics=(topic,)))
    [partition] = described.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.none, CONTROLLER_ID)
    assert [voter.replica_id for voter in partition.current_voters] == [CONTROLLER_ID]
    assert [node.node_id for node in described.nodes] == [CONTROLLER_ID]


@pytest.mark.usefixtures("broker_epoch")
def test_a_topic_is_created_configured_and_deleted(client: KioClient) -> None:
    m = kio_codec.module("CreateTopicsRequest", 7)
    config = m.CreatableTopicConfig(name="retention.ms", value="3600000")
    topic = m.CreatableTopic(
        name="by-kio", num_partitions=3, replication_factor=1, assignments=(), configs=(config,)
    )
    [created] = client.call(m.CreateTopicsRequest(topics=(topic,))).topics
    assert (created.error_code, created.num_partitions) == (ErrorCode.none, 3)
    [again] = client.call(m.CreateTopicsRequest(topics=(topic,))).topics
    assert again.error_code == ErrorCode.topic_already_exists

    m = kio_codec.module("IncrementalAlterConfigsRequest", 1)
    change = m.AlterableConfig(name="retention.ms", config_operation=SET, value="7200000")
    resource = m.AlterConfigsResource(resource_type=TOPIC, resource_name="by-kio", configs=(change,))
    [altered] = client.call(
        m.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    ).responses
    assert altered.error_code == ErrorCode.none
    assert _config(client, "retention.ms") == "7200000"

    m = kio_codec.module("DeleteTopicsRequest", 6)
    by_id = m.DeleteTopicState(name=None, topic_id=created.topic_id)
    request = m.DeleteTopicsRequest(topics=(by_id,), timeout=30 * 1000 * kio_codec.MS)
    [deleted] = client.call(request).responses
    assert (deleted.error_code, deleted.name) == (ErrorCode.none, "by-kio")
    [again] = client.call(request).responses
    assert again.error_code == ErrorCode.unknown_topic_id


def _config(client: KioClient, name: str) -> str | None:
    m = kio_codec.module("DescribeConfigsRequest", 4)
    resource = m.DescribeConfigsResource(
        resource_type=TOPIC, resource_name="by-kio", configuration_keys=(name,)
    )
    [described] = client.call(m.DescribeConfigsRequest(resources=(resource,))).results
    [config] = described.configs
    value: str | None = config.value
    return value


def test_the_heartbeat_of_an_old_epoch_is_refused(client: KioClient, broker_epoch: int) -> None:
    assert _heartbeat(client, broker_epoch - 1).error_code == ErrorCode.stale_broker_epoch


def test_the_broker_shuts_down_and_is_unregistered(client: KioClient, broker_epoch: int) -> None:
    """This test must run last."""
    assert _heartbeat(client, broker_epoch, want_shut_down=True).should_shut_down
    unregister = kio_codec.entity_class("UnregisterBrokerRequest", 0)(broker_id=1)
    assert client.call(unregister).error_code == ErrorCode.none
