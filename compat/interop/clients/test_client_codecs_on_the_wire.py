"""Other clients' codecs send requests of every API to our controller and read its responses.

For each version that a codec has, the codec encodes the request and its header, sends it over a socket, and
must read the same values in the response as our codec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import kafkaprotocol
import pytest

from compat.conftest import make_workspace
from compat.harness.kafka.cluster import CONTROLLER_ID, random_cluster_id
from compat.harness.kafka.nodes import OurController
from compat.harness.kafka.pretend_broker import PretendBroker
from compat.harness.wire import FrameClient
from compat.judges.client_codecs import kafka_protocol_codec
from compat.judges.client_codecs.client_codec import CLIENT_CODECS, ClientCodec
from compat.judges.client_codecs.values import flat, plain
from kraft_wire.controller.apis import CONTROLLER_APIS, OUR_CONTROLLER_APIS
from kraft_wire.controller.decision.api_table import Api
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import (
    alter_partition_request,
    api_versions_request,
    create_partitions_request,
    create_topics_request,
    delete_topics_request,
    describe_cluster_request,
    describe_configs_request,
    describe_quorum_request,
    elect_leaders_request,
    fetch_request,
    incremental_alter_configs_request,
    list_offsets_request,
    metadata_request,
)
from kraft_wire.protocol.registry import request_class, response_class
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.wire.framing import frame
from kraft_wire.wire.headers import decode_response

LOG = "__cluster_metadata"
ABSENT = "absent"
BROKER = 4
CONTROLLERS = 2
LATEST = -1
BY_ID = 13
BY_STRUCTURE = 6
TIMEOUT_MS = 60_000


def _fetch(version: int) -> Message:
    partition = fetch_request.FetchPartition(partition=0, fetch_offset=3, partition_max_bytes=1 << 20)
    topic = fetch_request.FetchTopic(partitions=[partition])
    if version < BY_ID:
        topic.topic = LOG
    else:
        topic.topic_id = Uuid.ONE
    return fetch_request.FetchRequest(max_wait_ms=0, topics=[topic])


def _delete_topics(version: int) -> Message:
    if version < BY_STRUCTURE:
        return delete_topics_request.DeleteTopicsRequest(topic_names=(ABSENT,), timeout_ms=TIMEOUT_MS)
    return delete_topics_request.DeleteTopicsRequest(
        topics=[delete_topics_request.DeleteTopicState(ABSENT)], timeout_ms=TIMEOUT_MS
    )


def _describe_cluster(version: int) -> Message:
    return describe_cluster_request.DescribeClusterRequest(endpoint_type=CONTROLLERS if version else 1)


def _list_offsets(version: int) -> Message:
    partition = list_offsets_request.ListOffsetsPartition(0, timestamp=LATEST)
    return list_offsets_request.ListOffsetsRequest(
        topics=[list_offsets_request.ListOffsetsTopic(LOG, [partition])]
    )


# Requests with meaningful responses, by version; other APIs get a request with default values.
REQUESTS: dict[str, Callable[[int], Message]] = {
    "AlterPartition": lambda version: alter_partition_request.AlterPartitionRequest(broker_id=1),
    "ApiVersions": lambda version: api_versions_request.ApiVersionsRequest("codec", "1"),
    "CreatePartitions": lambda version: create_partitions_request.CreatePartitionsRequest(
        topics=[create_partitions_request.CreatePartitionsTopic(ABSENT, 3, None)],
        timeout_ms=TIMEOUT_MS,
        validate_only=True,
    ),
    "CreateTopics": lambda version: create_topics_request.CreateTopicsRequest(
        topics=[
            create_topics_request.CreatableTopic(
                "new",
                num_partitions=2,
                replication_factor=1,
                configs=[create_topics_request.CreatableTopicConfig("retention.ms", "1")],
            )
        ],
        validate_only=True,
    ),
    "DeleteTopics": _delete_topics,
    "DescribeCluster": _describe_cluster,
    "DescribeConfigs": lambda version: describe_configs_request.DescribeConfigsRequest(
        resources=[describe_configs_request.DescribeConfigsResource(BROKER, "", None)]
    ),
    "DescribeQuorum": lambda version: describe_quorum_request.DescribeQuorumRequest(
        topics=[describe_quorum_request.TopicData(LOG, [describe_quorum_request.PartitionData(0)])]
    ),
    "ElectLeaders": lambda version: elect_leaders_request.ElectLeadersRequest(
        topic_partitions=[elect_leaders_request.TopicPartitions(ABSENT, (0, 1))]
    ),
    "Fetch": _fetch,
    "IncrementalAlterConfigs": lambda version: (
        incremental_alter_configs_request.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs_request.AlterConfigsResource(
                    BROKER,
                    "",
                    [incremental_alter_configs_request.AlterableConfig("background.threads", 0, "2")],
                )
            ],
            validate_only=True,
        )
    ),
    "ListOffsets": _list_offsets,
    "Metadata": lambda version: metadata_request.MetadataRequest(
        topics=[metadata_request.MetadataRequestTopic(name=LOG)]
    ),
}

# A refusal has the times -1, as Kafka's has, and kio can't read a time before 1970.
UNREADABLE = {
    ("kio", "CreateDelegationToken"),
    ("kio", "RenewDelegationToken"),
    ("kio", "ExpireDelegationToken"),
}


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurController]:
    for workspace in make_workspace(tmp_path_factory.mktemp("clients")):
        controller = OurController(workspace, CONTROLLER_ID)
        cluster_id = random_cluster_id()
        controller.format(cluster_id, "--standalone")
        controller.start()
        controller.wait_until_ready()
        broker = PretendBroker(1, cluster_id, controller.port)
        yield controller
        broker.close()


def _served() -> list[tuple[ClientCodec, Api]]:
    """Return each codec with each of our APIs of which it has a version, and whose answers it can read."""
    return [
        (codec, api)
        for codec in CLIENT_CODECS
        for api in CONTROLLER_APIS
        if _shared(codec, api) and (codec.name, api.name) not in UNREADABLE
    ]


def _shared(codec: ClientCodec, api: Api) -> list[int]:
    return [version for version in codec.versions(request_class(api.key).NAME) if api.supports(version)]


@pytest.mark.parametrize(("codec", "api"), _served(), ids=lambda value: value.name)
def test_a_client_codecs_request_is_answered_and_the_answer_read(
    controller: OurController, codec: ClientCodec, api: Api
) -> None:
    request, answered_by = request_class(api.key), response_class(api.key).NAME
    with FrameClient(controller.port) as client:
        for version in _shared(codec, api):
            asked = REQUESTS[api.name](version) if api.name in REQUESTS else request()
            body = asked.encode(version)
            client.send_bytes(frame(codec.request(request.NAME, version, body, version + 100)))
            payload = client.receive_frame()

            correlation_id, values = codec.answer(answered_by, version, payload)

            assert correlation_id == version + 100
            _, ours = decode_response(api.key, version, payload)
            tagged = codec.name in ("kio", "kafka-python")
            assert values == list(flat(plain(ours, version, tagged=tagged))), f"version {version}"


@pytest.mark.parametrize("version", range(4))
def test_kafka_protocol_as_it_is_asks_for_versions(controller: OurController, version: int) -> None:
    request = kafkaprotocol.ApiVersionsRequest[version]()
    if version == 3:
        request = kafkaprotocol.ApiVersionsRequest[version]("kafka-protocol", "0.1", {})
    answer = _ask_as_it_is(controller, "ApiVersionsRequest", version, request)
    assert answer.error_code == 0
    assert [entry.api_key for entry in answer.api_keys] == [api.key for api in OUR_CONTROLLER_APIS]


@pytest.mark.parametrize("version", range(9))
def test_kafka_protocol_as_it_is_asks_for_metadata(controller: OurController, version: int) -> None:
    """Only versions up to 8: from 9 on kafka-protocol can't read a broker without a rack."""
    asked = [{"name": LOG}]
    request = kafkaprotocol.MetadataRequest[version](topics=asked, allow_auto_topic_creation=True)
    if version >= 8:
        request.include_cluster_authorized_operations = request.include_topic_authorized_operations = False
    answer = _ask_as_it_is(controller, "MetadataRequest", version, request)
    [broker] = answer.brokers
    assert (broker.node_id, broker.port) == (CONTROLLER_ID, controller.port)
    [topic] = answer.topics
    assert (topic.error_code, topic.name) == (0, LOG)
    assert [partition.leader_id for partition in topic.partitions] == [CONTROLLER_ID]


def _ask_as_it_is(controller: OurController, message: str, version: int, request: Any) -> Any:
    """Send a request with the library's own functions; it can read frames but not write them."""
    with FrameClient(controller.port) as client:
        client.send_bytes(frame(kafka_protocol_codec.encode_request(message, version, request, 7, "old")))
        framed = frame(client.receive_frame())
    api_key = {"ApiVersionsRequest": 18, "MetadataRequest": 3}[message]
    header, answer = kafkaprotocol.read_network_response(api_key, version, framed)
    assert header.correlation_id == 7
    return answer
