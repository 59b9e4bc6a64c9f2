"""Values of a wrong type or length: each is an EncodeError with its field, and nothing is written."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.protocol.errors import EncodeError, UnsupportedVersion
from kraft_wire.protocol.messages.broker_registration_request import BrokerRegistrationRequest
from kraft_wire.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse
from kraft_wire.protocol.messages.fetch_response import PartitionData as Fetched
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.remote_log_segment_metadata_record import RemoteLogSegmentMetadataRecord
from kraft_wire.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraft_wire.protocol.uuid import Uuid
from tests.support.both_codecs import unwritable, written


def vote(topics: int = 1, **fields: Any) -> VoteRequest:
    return VoteRequest(topics=[TopicData("t", [PartitionData(**fields)])] * topics)


def refused(message: Any, version: int, field: str) -> str:
    """Return the reason why a message can't be written, by any of the methods."""
    error = unwritable(message, version)
    assert isinstance(error, EncodeError)
    assert error.field == field
    with pytest.raises(EncodeError) as caught:
        message.encode(version)
    assert str(caught.value) == str(error)
    return error.reason


@pytest.mark.parametrize("raw", [b"", b"123", b"1" * 15, b"1" * 17, "1" * 16, None, 5])
class TestIds:
    def test_a_field_of_another_length(self, raw: Any) -> None:
        for topics in (1, 2):
            for version in (1, 2):
                field = "topics[0].partitions[0].replica_directory_id"
                assert (
                    repr(raw) in refused(vote(topics, replica_directory_id=raw), version, field)
                    or raw is None
                )
        refused(vote(voter_directory_id=raw), 2, "topics[0].partitions[0].voter_directory_id")

    def test_in_a_record(self, raw: Any) -> None:
        refused(TopicRecord("t", raw), 0, "topic_id")
        refused(PartitionRecord(topic_id=raw), 2, "topic_id")

    def test_at_some_versions_only(self, raw: Any) -> None:
        refused(BrokerRegistrationRequest(incarnation_id=raw), 0, "incarnation_id")
        refused(FetchRequest(topics=[FetchTopic(topic_id=raw)]), 14, "topics[0].topic_id")

    def test_in_a_tag(self, raw: Any) -> None:
        part = FetchPartition(replica_directory_id=raw)
        for count in (1, 2):
            refused(
                FetchRequest(topics=[FetchTopic(partitions=[part] * count)]),
                17,
                "topics[0].partitions[0].replica_directory_id",
            )


def test_an_id_may_be_plain_bytes() -> None:
    raw = bytes(range(16))
    assert written(vote(replica_directory_id=raw), 2) == written(vote(replica_directory_id=Uuid(raw)), 2)


@pytest.mark.parametrize("records", ["abc", [1, 2], (1,), 5, {1: 2}])
@pytest.mark.parametrize("version", [4, 12, 17])
def test_records_that_are_no_bytes(records: Any, version: int) -> None:
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[Fetched(records=records)])])
    reason = refused(response, version, "responses[0].partitions[0].records")
    assert reason == f"is a {type(records).__name__} instead of bytes"


@pytest.mark.parametrize("version", [0, 2])
def test_values_that_are_not_bytes(version: int) -> None:
    for value in ("abc", [1, 2]):
        refused(SaslAuthenticateRequest(value), version, "auth_bytes")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_bytes_like_objects_are_accepted(kind: Any) -> None:
    for version in (0, 2):
        expected = written(SaslAuthenticateRequest(b"abc"), version)
        assert written(SaslAuthenticateRequest(kind(b"abc")), version) == expected


@pytest.mark.parametrize(
    "tags",
    [
        ((99, "x"),),
        {99: b"x"},
        (("a", b"x"),),
        ((1,),),
        ((1, None),),
        ((1.5, b""),),
        ((1, 5),),
        (5,),
        5,
        "x",
        None,
        ((1, b"", 2),),
    ],
)
class TestUnknownTags:
    def test_of_a_message(self, tags: Any) -> None:
        refused(TopicRecord("t", unknown_tagged_fields=tags), 0, "unknown_tagged_fields")
        refused(PartitionRecord(unknown_tagged_fields=tags), 2, "unknown_tagged_fields")
        for count in (0, 1):
            message = vote(count)
            message.unknown_tagged_fields = tags
            refused(message, 2, "unknown_tagged_fields")

    def test_inside(self, tags: Any) -> None:
        for count in (1, 2):
            message = vote(count, unknown_tagged_fields=tags)
            refused(message, 2, "topics[0].partitions[0].unknown_tagged_fields")

    def test_at_a_version_without_any(self, tags: Any) -> None:
        refused(FetchRequest(unknown_tagged_fields=tags), 4, "unknown_tagged_fields")


def test_no_unknown_tags_may_be_a_list() -> None:
    none: Any = []
    for version in (4, 17):
        expected = written(FetchRequest(), version)
        assert written(FetchRequest(unknown_tagged_fields=none), version) == expected


@pytest.mark.parametrize("tag", [0, 1, 2])
def test_a_known_tag_among_the_unknown_ones(tag: int) -> None:
    record = PartitionRecord(unknown_tagged_fields=((tag, b""), (3, b"")))
    assert f"tag {tag} is known: it is that of " in refused(record, 2, "unknown_tagged_fields")


@pytest.mark.parametrize("value", ["no", None, 1.0, b"", 300])
@pytest.mark.parametrize("topics", [1, 2])
def test_values_that_are_not_bools(value: Any, topics: int) -> None:
    message = vote(topics, pre_vote=value)
    refused(message, 2, "topics[0].partitions[0].pre_vote")


@pytest.mark.parametrize("value", ["", None, (), 1.5])
def test_a_value_that_is_not_a_bool_at_a_version_without_the_field(value: Any) -> None:
    assert isinstance(unwritable(vote(pre_vote=value), 0), EncodeError | UnsupportedVersion)


@pytest.mark.parametrize("value", ["", None, (), 1.5])
def test_a_value_that_is_not_a_bool_in_a_tag(value: Any) -> None:
    refused(RemoteLogSegmentMetadataRecord(txn_index_empty=value), 0, "txn_index_empty")


@pytest.mark.parametrize("value", [0, 1, 5])
def test_an_integer_in_the_place_of_a_tagged_bool(value: Any) -> None:
    raw = written(RemoteLogSegmentMetadataRecord(txn_index_empty=value), 0)
    assert RemoteLogSegmentMetadataRecord.decode(raw, 0).txn_index_empty == bool(value)


@pytest.mark.parametrize("value", [1, 5, -1])
def test_an_integer_that_is_not_0_is_true(value: Any) -> None:
    assert VoteRequest.decode(written(vote(pre_vote=value), 2), 2) == vote(pre_vote=True)


def test_a_wrong_value_in_a_nullable_struct_s_place() -> None:
    message = ConsumerGroupHeartbeatRequest(topic_partitions=5)  # type: ignore[arg-type]
    refused(message, 0, "topic_partitions")
