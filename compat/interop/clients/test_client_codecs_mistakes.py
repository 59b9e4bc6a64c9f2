"""Mistakes of other clients' codecs, compared with Kafka and ours on the same bytes.

If a test fails here, a codec was corrected, and the workarounds for its mistake can be deleted.
"""

from __future__ import annotations

import signal
import struct
import subprocess
import sys

import pytest
from kio.serial.errors import InvalidUnicode, UnexpectedNull

from compat.judges.client_codecs import aiokafka_codec, kafka_protocol_codec, kafka_python_codec, kio_codec
from kraft_wire.protocol.errors import DecodeError, EncodeError
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.create_topics_request import CreateTopicsRequest
from kraft_wire.protocol.messages.describe_acls_request import DescribeAclsRequest
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from kraft_wire.protocol.messages.fetch_request import FetchRequest, ReplicaState
from kraft_wire.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraft_wire.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.uuid import Uuid

HEARTBEAT = BrokerHeartbeatRequest(broker_id=1, broker_epoch=2, current_metadata_offset=3)
LET_KIO_READ = """
import resource, sys
from compat.judges.client_codecs import kio_codec
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))
kio_codec.decode("BrokerHeartbeatRequest", 1, bytes.fromhex(sys.argv[1]))
"""
BEFORE_FLAGS = slice(None, -3)  # the end of a heartbeat: two flags and the number of tagged fields


def test_kio_raises_on_an_unknown_tagged_field() -> None:
    extended = BrokerHeartbeatRequest(1, 2, 3, unknown_tagged_fields=((9, b"new"),))
    data = extended.encode(1)
    with pytest.raises(KeyError, match="Unknown tagged field tag: 9"):
        kio_codec.decode("BrokerHeartbeatRequest", 1, data)
    assert BrokerHeartbeatRequest.decode(data, 1) == extended


def test_kio_raises_on_a_bool_above_1() -> None:
    data = HEARTBEAT.encode(1)[BEFORE_FLAGS] + b"\x02\x00\x00"
    with pytest.raises(ValueError, match="Invalid boolean value"):
        kio_codec.decode("BrokerHeartbeatRequest", 1, data)
    assert BrokerHeartbeatRequest.decode(data, 1).want_fence is True


def test_kio_raises_on_malformed_utf_8() -> None:
    data = VoteRequest(cluster_id="~").encode(2).replace(b"~", b"\xff")
    with pytest.raises(InvalidUnicode):
        kio_codec.decode("VoteRequest", 2, data)
    assert VoteRequest.decode(data, 2).cluster_id == "\N{REPLACEMENT CHARACTER}"


def test_kio_takes_only_minus_1_for_a_null_structure() -> None:
    data = DescribeTopicPartitionsRequest(cursor=None).encode(0)
    assert data.endswith(b"\xff\x00")
    changed = data[:-2] + b"\xfe\x00"
    with pytest.raises(UnexpectedNull):
        kio_codec.decode("DescribeTopicPartitionsRequest", 0, changed)
    assert DescribeTopicPartitionsRequest.decode(changed, 0).cursor is None


def test_kio_writes_strings_that_nobody_may_read() -> None:
    long = "x" * 32768
    kio_codec.encode(kio_codec.entity_class("VoteRequest", 2)(cluster_id=long, topics=()))
    with pytest.raises(EncodeError, match="cluster_id"):
        VoteRequest(cluster_id=long).encode(2)


def test_kio_ends_the_process_on_a_length_that_it_believes() -> None:
    """kio allocates what a length in 30 bytes claims; this process is limited to 4 GB, so that it always
    fails."""
    data = HEARTBEAT.encode(1)[:-1] + bytes.fromhex("010005 ffffffff0f")
    assert len(data) == 30
    ended = subprocess.run([sys.executable, "-c", LET_KIO_READ, data.hex()], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGABRT
    with pytest.raises(DecodeError, match="offline_log_dirs"):
        BrokerHeartbeatRequest.decode(data, 1)


def test_kafka_python_drops_unknown_tagged_fields() -> None:
    extended = DescribeClusterRequest(unknown_tagged_fields=((9, b"new"),))
    data = extended.encode(1)
    decoded = kafka_python_codec.decode("DescribeClusterRequest", 1, data)
    assert kafka_python_codec.encode(decoded) == DescribeClusterRequest().encode(1)
    assert DescribeClusterRequest.decode(data, 1).encode(1) == data


def test_kafka_python_writes_tagged_fields_as_they_are_declared() -> None:
    """kafka-python's messages of 4.4.0 all declare their tags in order, so this uses a schema of our own."""
    declared = [
        {"name": name, "type": "int8", "versions": "0+", "taggedVersions": "0+", "tag": tag}
        for name, tag in (("second", 1), ("first", 0))
    ]
    assert kafka_python_codec.encode_structure(declared, second=2, first=1) == bytes.fromhex(
        "02 010102 000101"
    )


def test_kafka_python_expects_no_tagged_field_inside_a_tagged_structure() -> None:
    extended = FetchRequest(replica_state=ReplicaState(1, 2, unknown_tagged_fields=((9, b"new"),)))
    data = extended.encode(15)
    with pytest.raises(AssertionError):
        kafka_python_codec.decode("FetchRequest", 15, data)
    assert FetchRequest.decode(data, 15) == extended


def test_kafka_python_starts_on_an_array_that_cannot_be_there() -> None:
    """kafka-python notices only at the end of the bytes."""
    data = b"\x81\x01" + bytes(20)  # 128 topics in 20 bytes
    with pytest.raises((IndexError, struct.error)):
        kafka_python_codec.decode("CreateTopicsRequest", 7, data)
    with pytest.raises(DecodeError, match=r"topics .*array of 128 elements in 20 remaining bytes"):
        CreateTopicsRequest.decode(data, 7)


def test_kafka_python_reads_version_0_after_any_error() -> None:
    """Kafka answers in version 0 only if it doesn't support the requested version."""
    data = ApiVersionsResponse(error_code=42, throttle_time_ms=5).encode(3)
    with pytest.raises(struct.error):
        kafka_python_codec.decode("ApiVersionsResponse", 3, data)
    assert ApiVersionsResponse.decode(data, 3).throttle_time_ms == 5


def test_aiokafka_has_a_flexible_request_that_is_not_flexible() -> None:
    data = DescribeAclsRequest(resource_name_filter="some topic").encode(2)
    decode = aiokafka_codec.messages()["DescribeAclsRequest", 2].decode
    with pytest.raises(ValueError, match="Buffer underrun"):
        decode(data)
    assert DescribeAclsRequest.decode(data, 2).resource_name_filter == "some topic"


def test_aiokafka_has_a_leader_epoch_of_eight_bytes() -> None:
    request = ListOffsetsRequest(topics=[ListOffsetsTopic("t", [ListOffsetsPartition(0, 5, timestamp=-1)])])
    data = request.encode(4)
    with pytest.raises(ValueError):
        aiokafka_codec.messages()["ListOffsetsRequest", 4].decode(data)
    assert ListOffsetsRequest.decode(data, 4) == request


def test_kafka_protocol_reads_a_compact_null_as_the_rest_of_the_message() -> None:
    response = MetadataResponse(brokers=[MetadataResponseBroker(1, "host", 9092, rack=None)])
    data = response.encode(9)
    with pytest.raises(ValueError, match="Data short"):
        kafka_protocol_codec.decode("MetadataResponse", 9, data)
    assert MetadataResponse.decode(data, 9) == response


def test_kafka_protocol_writes_a_compact_null_in_five_bytes() -> None:
    request = kafka_protocol_codec.message_class("MetadataRequest", 9)(None, True, False, False, {})
    written = kafka_protocol_codec.encode(request)
    assert written.startswith(b"\xff\xff\xff\xff\x0f")
    # Kafka reads the length as -1 minus one, and takes every negative length for null.
    assert MetadataRequest.decode(written, 9).topics is None


def test_kafka_protocol_cuts_ids_to_a_byte() -> None:
    topic_id = Uuid(bytes(range(16)))
    response = MetadataResponse(cluster_id="c", topics=[MetadataResponseTopic(name="t", topic_id=topic_id)])
    data = response.encode(10)
    [topic] = kafka_protocol_codec.decode("MetadataResponse", 10, data).topics
    assert topic.topic_id == topic_id[0]
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id, "t")])
    decoded = kafka_protocol_codec.decode("MetadataRequest", 10, request.encode(10))
    with pytest.raises(struct.error, match="expected 16 items"):
        kafka_protocol_codec.encode(decoded)
