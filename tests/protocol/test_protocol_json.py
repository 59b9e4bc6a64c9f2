"""Kafka's JSON form. test_protocol_java.py checks the output of Kafka's own converters for every message."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.protocol.errors import DecodeError, EncodeError, UnsupportedVersion
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.client_quota_record import ClientQuotaRecord
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraft_wire.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraft_wire.protocol.messages.fetch_snapshot_response import (
    FetchSnapshotResponse,
    PartitionSnapshot,
    TopicSnapshot,
)
from kraft_wire.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.messages.vote_request import PartitionData as VotePartition
from kraft_wire.protocol.messages.vote_request import TopicData, VoteRequest
from kraft_wire.protocol.uuid import Uuid
from tests.support.schema_samples import field, generated, message

ELECTION: dict[str, Any] = {
    "electionType": 1,
    "topicPartitions": [{"topic": "a", "partitions": [1, 2]}],
    "timeoutMs": 5,
}


def test_the_json_form_of_a_message() -> None:
    request = ElectLeadersRequest(1, [TopicPartitions("a", (1, 2))], 5)
    assert request.to_json(2) == ELECTION
    assert ElectLeadersRequest.from_json(ELECTION, 2) == request


def test_fields_that_the_version_lacks_are_not_shown() -> None:
    assert list(ElectLeadersRequest().to_json(0)) == ["topicPartitions", "timeoutMs"]


def test_tagged_defaults_are_not_shown() -> None:
    assert PartitionChangeRecord(leader=3).to_json(0) == {
        "partitionId": -1,
        "topicId": "AAAAAAAAAAAAAAAAAAAAAA",
        "leader": 3,
    }


def test_unknown_tags_are_not_shown() -> None:
    record = TopicRecord("a", Uuid.ONE, ((9, b"x"),))
    assert record.to_json(0) == {"name": "a", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ"}


def test_bytes_are_base64_with_padding() -> None:
    request = SaslAuthenticateRequest(b"\xfb\xff")
    assert request.to_json(2) == {"authBytes": "+/8="}
    assert SaslAuthenticateRequest.from_json({"authBytes": "+/8="}, 2) == request


def test_records_are_shown_empty() -> None:
    data = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=b"abc")])])
    assert data.to_json(17)["responses"][0]["partitions"][0]["records"] == ""


def test_null_is_shown_even_where_the_version_has_none() -> None:
    topic = MetadataResponseTopic(name=None)
    assert MetadataResponse(topics=[topic]).to_json(9)["topics"][0]["name"] is None


def test_null_where_no_version_has_it() -> None:
    topic = TopicPartitions("a", None)  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match=r"\.topic_partitions\[0\]\.partitions: is None"):
        ElectLeadersRequest(1, [topic]).to_json(2)
    topic = TopicPartitions("a", (1, None))  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match=r"\.topic_partitions\[0\]\.partitions\[1\]: is None"):
        ElectLeadersRequest(1, [topic]).to_json(2)


def test_strings_and_records_that_must_not_be_null_are_shown_as_java_does() -> None:
    assert TopicRecord(None).to_json(0)["name"] is None  # type: ignore[arg-type]
    snapshot = FetchSnapshotResponse(topics=[TopicSnapshot(partitions=[PartitionSnapshot()])]).to_json(1)
    assert snapshot["topics"][0]["partitions"][0]["unalignedRecords"] == ""


def test_the_names_that_java_prints_for_numbers_without_a_form_in_json_are_not_read() -> None:
    with pytest.raises(DecodeError, match="value: is a string instead of a number with a fraction"):
        ClientQuotaRecord.from_json({"entity": [], "key": "", "value": "NaN", "remove": False}, 0)


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("kind", ["string", "bytes", "[]int8", "Part", "[]Part"])
@pytest.mark.parametrize("nullable", ["0-1", "2+"])
def test_null_where_only_other_versions_have_it(kind: str, nullable: str, version: int) -> None:
    part = [field(type="int8")] if kind.endswith("Part") else None
    node = field(type=kind, nullableVersions=nullable, fields=part)
    sample = generated(message(fields=[node])).SampleRequest(None)
    assert sample.to_json(version) == {"first": None}


@pytest.mark.parametrize("kind", ["bytes", "[]int8", "Part", "[]Part"])
def test_null_where_it_must_not_be_as_long_as_the_field_has_its_place(kind: str) -> None:
    part = [field(type="int8")] if kind.endswith("Part") else None
    node = field(type=kind, nullableVersions="3+", tag=0, taggedVersions="3+", fields=part)
    sample = generated(message(fields=[node])).SampleRequest(None)
    assert sample.to_json(3) == {"first": None}
    with pytest.raises(EncodeError, match=r"SampleRequest\.first: is None, and must not be"):
        sample.to_json(2)


def test_a_null_string_is_shown_unless_it_is_tagged() -> None:
    sample = generated(message(fields=[field(type="string", tag=0, taggedVersions="3+")])).SampleRequest(None)
    assert sample.to_json(2) == {"first": None}
    with pytest.raises(EncodeError, match=r"SampleRequest\.first: is None, and must not be"):
        sample.to_json(3)


def test_a_value_that_the_version_lacks() -> None:
    with pytest.raises(UnsupportedVersion, match=r"BrokerHeartbeatRequest\.offline_log_dirs version 0"):
        BrokerHeartbeatRequest(offline_log_dirs=(Uuid.ONE,)).to_json(0)


def test_unknown_keys_are_ignored() -> None:
    assert ElectLeadersRequest.from_json(ELECTION | {"more": 1}, 2).timeout_ms == 5


@pytest.mark.parametrize(("given", "read"), [(127, 127), (128, 0), (200, 72), (256, -128), (-128, -128)])
def test_small_integers_above_their_range_are_read_as_java_does(given: int, read: int) -> None:
    assert ElectLeadersRequest.from_json(ELECTION | {"electionType": given}, 2).election_type == read


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"electionType": 257}, "electionType: 257 does not fit int8"),
        ({"electionType": "1"}, "electionType: is a string instead of an integer"),
        ({"electionType": True}, "electionType: is True instead of an integer"),
        ({"electionType": 1.0}, "electionType: is 1.0 instead of an integer"),
        ({"timeoutMs": 2**31}, "timeoutMs: 2147483648 does not fit int32"),
        ({"timeoutMs": None}, "timeoutMs: is null instead of an integer"),
        ({"topicPartitions": {}}, "topicPartitions: is an object instead of an array"),
        (
            {"topicPartitions": [{}]},
            "topicPartitions[0].topic: is missing, and mandatory at version 2",
        ),
        (
            {"topicPartitions": [5]},
            "topicPartitions[0]: is 5 instead of an object",
        ),
        (
            {"topicPartitions": [{"topic": "a", "partitions": [1, None]}]},
            "topicPartitions[0].partitions[1]: is null instead of an integer",
        ),
        (
            {"topicPartitions": [{"topic": ["a"], "partitions": []}]},
            "topicPartitions[0].topic: is an array instead of a string",
        ),
    ],
)
def test_what_is_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(DecodeError) as caught:
        ElectLeadersRequest.from_json(ELECTION | change, 2)
    assert str(caught.value) == f"ElectLeadersRequest.{problem}"


def test_a_struct_that_the_version_lacks_even_where_its_field_is_ignored() -> None:
    shown = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0, "responses": [], "nodeEndpoints": []}
    assert FetchResponse.from_json(shown, 8) == FetchResponse()
    with pytest.raises(
        UnsupportedVersion, match=r"nodeEndpoints\[0\] version 8: NodeEndpoint exists at versions 16"
    ):
        FetchResponse.from_json(shown | {"nodeEndpoints": [{}]}, 8)


def test_a_missing_field() -> None:
    with pytest.raises(DecodeError, match="electionType: is missing"):
        ElectLeadersRequest.from_json({}, 1)
    assert (
        ElectLeadersRequest.from_json({"topicPartitions": None, "timeoutMs": 1}, 0).topic_partitions is None
    )


@pytest.mark.parametrize("text", ["AQI", "A*I=", "-_8=", "A QI=", "AQI= =", "AQI\u00e4", "AQ=", "===="])
def test_text_that_is_not_base64(text: str) -> None:
    with pytest.raises(DecodeError, match=r"authBytes: is not base64"):
        SaslAuthenticateRequest.from_json({"authBytes": text}, 2)


@pytest.mark.parametrize(
    ("text", "raw"), [("", b""), (" AQI=\n", b"\1\2"), ("AQ==Ag==", b"\1\2"), ("AQ==\t\0AgME", b"\1\2\3\4")]
)
def test_base64_as_jackson_reads_it(text: str, raw: bytes) -> None:
    assert SaslAuthenticateRequest.from_json({"authBytes": text}, 2).auth_bytes == raw


def test_text_that_is_not_an_id() -> None:
    with pytest.raises(DecodeError, match=r"topicId: id 'AAAA' holds 3 bytes"):
        TopicRecord.from_json({"name": "a", "topicId": "AAAA"}, 0)


@pytest.mark.parametrize(("given", "shown"), [([], "an array"), ("x", "a string"), (None, "null"), (5, "5")])
def test_json_that_is_not_an_object(given: Any, shown: str) -> None:
    for cls, version in ((VoteRequest, 2), (NoOpRecord, 0)):
        with pytest.raises(DecodeError) as caught:
            cls.from_json(given, version)
        assert str(caught.value) == f"{cls.NAME}: is {shown} instead of an object"
        assert caught.value.offset == -1


VOTE = {
    "cluster_id": 5,
    "voter_id": "x",
    "topics": 5,
    "topics[0]": None,
    "topics[1]": VotePartition(),
    "topics[0].topic_name": b"t",
    "topics[0].partitions": "x",
    "topics[0].partitions[1].pre_vote": "no",
    "topics[0].partitions[1].last_offset": 1.5,
    "topics[0].partitions[0].replica_directory_id": b"123",
    "topics[0].partitions[0].voter_directory_id": "AAAA",
}


@pytest.mark.parametrize(("path", "value"), VOTE.items(), ids=VOTE)
def test_wrong_contents_are_named_with_their_path(path: str, value: Any) -> None:
    message: Any = VoteRequest(topics=[TopicData("t", [VotePartition(), VotePartition()]), TopicData()])
    *steps, last = path.replace("[", ".[").split(".")
    holder = message
    for step in steps:
        holder = holder[int(step[1:-1])] if step[0] == "[" else getattr(holder, step)
    if last[0] == "[":
        holder[int(last[1:-1])] = value
    else:
        setattr(holder, last, value)
    with pytest.raises(EncodeError) as caught:
        message.to_json(2)
    assert caught.value.field == path


def test_an_id_of_plain_bytes_is_shown_as_an_id() -> None:
    assert TopicRecord("t", bytes(16)).to_json(0)["topicId"] == str(Uuid.ZERO)  # type: ignore[arg-type]


def test_values_that_are_not_bytes_are_not_shown() -> None:
    with pytest.raises(EncodeError, match="auth_bytes: is a str instead of bytes"):
        SaslAuthenticateRequest("x").to_json(2)  # type: ignore[arg-type]
