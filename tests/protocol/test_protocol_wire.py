"""The rules of the wire format one by one, on messages that use them; numbers in bytes are written out."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.protocol.errors import DecodeError, EncodeError, UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
)
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraft_wire.protocol.messages.fetch_request import FetchRequest, ReplicaState
from kraft_wire.protocol.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraft_wire.protocol.messages.metadata_request import MetadataRequest
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kraft_wire.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraft_wire.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.protocol.varint import uvarint
from tests.support.both_codecs import unreadable, written

HEARTBEAT = bytes.fromhex("00000001000000000000000200000000000000030000")


def refused(cls: type[Message], raw: bytes, version: int) -> tuple[str, int, str]:
    with pytest.raises(DecodeError) as caught:
        cls.decode(raw, version)
    assert caught.value.message == cls.NAME
    return caught.value.field, caught.value.offset, caught.value.reason


def test_the_simplest_message() -> None:
    message = BrokerHeartbeatRequest(1, 2, 3, True, False)
    assert message.encode(0) == HEARTBEAT[:-2] + b"\x01\x00\x00"


class TestBool:
    def test_any_byte_but_zero_is_true(self) -> None:
        message = BrokerHeartbeatRequest.decode(HEARTBEAT[:-2] + b"\x02\xff\x00", 0)
        assert (message.want_fence, message.want_shut_down) == (True, True)


class TestStrings:
    def test_null_where_there_is_none(self) -> None:
        assert refused(TopicRecord, bytes(18), 0) == ("name", 0, "is null, and must not be")

    def test_any_negative_size_is_null(self) -> None:
        nullable = b"\xff\xfe"
        assert MetadataRequest.decode(b"\xff\xff\xff\xfe\x00", 4).topics is None
        assert refused(SaslAuthenticateRequest, b"\xff\xff\xff\xf0", 0)[0] == "auth_bytes"
        assert refused(MetadataRequest, b"\0\0\0\x01" + nullable + b"\0", 4)[0] == "topics[0].name"

    def test_32767_bytes_are_the_limit_even_where_compact(self) -> None:
        longest = TopicRecord("x" * 32767)
        assert TopicRecord.decode(longest.encode(0), 0) == longest
        with pytest.raises(EncodeError, match=r"TopicRecord\.name: is a string of 32768 bytes"):
            TopicRecord("x" * 32768).encode(0)
        raw = b"\x81\x80\x02" + b"x" * 32768 + bytes(17)
        assert refused(TopicRecord, raw, 0) == ("name", 3, "string of 32768 bytes, at most 32767 are allowed")

    def test_the_limit_counts_bytes(self) -> None:
        with pytest.raises(EncodeError, match="32768 bytes"):
            TopicRecord("\N{LATIN SMALL LETTER E WITH ACUTE}" * 16384).encode(0)

    def test_the_limit_holds_for_fixed_sizes(self) -> None:
        with pytest.raises(EncodeError, match="32768 bytes"):
            CreateTopicsRequest([CreatableTopic("x" * 32768)]).encode(4)

    def test_malformed_text_is_replaced(self) -> None:
        raw = b"\x04\xed\xa0\x80" + bytes(17)
        assert TopicRecord.decode(raw, 0).name == "\N{REPLACEMENT CHARACTER}"
        assert TopicRecord.decode(b"\x02\xff" + bytes(17), 0).name == "\N{REPLACEMENT CHARACTER}"

    def test_half_a_surrogate_pair_is_written_as_a_question_mark(self) -> None:
        assert TopicRecord.decode(TopicRecord("a\ud83d").encode(0), 0).name == "a?"

    def test_both_halves_are_one_character(self) -> None:
        assert TopicRecord.decode(TopicRecord("\ud83d\ude00").encode(0), 0).name == "\N{GRINNING FACE}"

    def test_lengths_may_be_longer_than_needed(self) -> None:
        raw = b"\x82\x80\x80\x80\x00" + b"x" + bytes(17)
        assert TopicRecord.decode(raw, 0) == TopicRecord("x")

    def test_bits_above_the_32nd_are_dropped(self) -> None:
        raw = b"\x82\x80\x80\x80\x70" + b"x" + bytes(17)
        assert TopicRecord.decode(raw, 0) == TopicRecord("x")

    def test_a_fifth_byte_that_goes_on_is_refused(self) -> None:
        raw = b"\x82\x80\x80\x80\x80\x00" + b"x" + bytes(17)
        assert refused(TopicRecord, raw, 0) == ("name", 0, "varint has no end within 5 bytes")

    def test_the_lowest_integer_wraps_to_the_highest_length(self) -> None:
        raw = b"\x80\x80\x80\x80\x08" + bytes(17)
        assert refused(TopicRecord, raw, 0)[2] == "string of 2147483647 bytes, at most 32767 are allowed"


class TestArrays:
    def test_a_negative_size_in_an_array_of_strings_is_no_large_one(self) -> None:
        raw = b"\0\0" + b"\0\0\0\x01" + b"\x80\0" + b"x" * 32768
        assert refused(SaslHandshakeResponse, raw, 1) == ("mechanisms[0]", 6, "is null, and must not be")

    def test_null(self) -> None:
        assert MetadataRequest.decode(b"\x00\x01\x00\x00", 12).topics is None
        assert refused(CreateTopicsRequest, b"\x00" + bytes(6), 7)[0] == "topics"

    def test_null_only_at_some_versions(self) -> None:
        assert MetadataRequest(topics=None).encode(1) == b"\xff\xff\xff\xff"
        with pytest.raises(EncodeError, match=r"MetadataRequest\.topics: is None"):
            MetadataRequest(topics=None).encode(0)
        assert refused(MetadataRequest, b"\xff\xff\xff\xff", 0)[0] == "topics"

    def test_more_elements_than_bytes(self) -> None:
        assert refused(CreateTopicsRequest, b"\x80\x01" + bytes(9), 7) == (
            "topics",
            2,
            "array of 127 elements in 9 remaining bytes",
        )

    def test_more_elements_than_bytes_in_old_versions(self) -> None:
        assert refused(CreateTopicsRequest, b"\x7f\xff\xff\xff" + bytes(5), 4)[0] == "topics"

    def test_a_million_elements_are_the_limit(self) -> None:
        most = b"\x00\x0f\x42\x40" + b"\xff" * 4
        assert refused(ElectLeadersRequest, b"\x00" + most + bytes(900_000), 1)[2].startswith(
            "array of 1000000"
        )
        more = b"\x00\x00\x0f\x42\x41" + bytes(1_100_000)
        assert refused(ElectLeadersRequest, more, 1) == (
            "topic_partitions",
            5,
            "array of 1000001 elements, at most 1000000 are allowed",
        )

    def test_a_million_numbers_are_the_limit(self) -> None:
        size = b"\xc2\x84\x3d"
        raw = b"\x00\x02\x02x" + size + bytes(4 * 1_000_001) + bytes(8)
        assert refused(ElectLeadersRequest, raw, 2)[0] == "topic_partitions[0].partitions"
        most = ElectLeadersRequest(0, [TopicPartitions("x", tuple(range(1_000_000)))])
        assert ElectLeadersRequest.decode(most.encode(2), 2) == most

    def test_elements_out_of_range(self) -> None:
        with pytest.raises(
            EncodeError, match=r"topic_partitions\[0\]\.partitions\[1\]: 2147483648 does not fit"
        ):
            ElectLeadersRequest(0, [TopicPartitions("x", (1, 2**31))]).encode(2)


class TestStructs:
    def test_null_is_a_negative_byte(self) -> None:
        message = ConsumerGroupHeartbeatResponse(member_id=None, assignment=None)
        raw = message.encode(0)
        assert raw[-2:] == b"\xff\x00"
        assert ConsumerGroupHeartbeatResponse.decode(raw[:-2] + b"\x80\x00", 0).assignment is None

    def test_any_other_byte_is_a_struct(self) -> None:
        raw = ConsumerGroupHeartbeatResponse(assignment=Assignment()).encode(0)
        assert raw[-4:] == b"\x01\x01\x00\x00"
        for present in (b"\x00", b"\x7f"):
            again = ConsumerGroupHeartbeatResponse.decode(raw[:-4] + present + raw[-3:], 0)
            assert again.assignment == Assignment()

    def test_something_else_than_the_struct_is_refused(self) -> None:
        with pytest.raises(EncodeError, match=r"topics\[0\]: is a str instead of a CreatableTopic"):
            CreateTopicsRequest(["x"]).encode(7)  # type: ignore[list-item]


class TestNumbers:
    def test_unsigned_numbers_are_checked(self) -> None:
        record = RegisterBrokerRecord(end_points=[BrokerEndpoint("P", "h", 65535, 0)])
        assert RegisterBrokerRecord.decode(record.encode(3), 3) == record
        for port in (-1, 65536):
            with pytest.raises(EncodeError, match=rf"end_points\[0\]\.port: {port} does not fit uint16"):
                RegisterBrokerRecord(end_points=[BrokerEndpoint("P", "h", port, 0)]).encode(3)

    def test_values_that_are_not_numbers(self) -> None:
        with pytest.raises(EncodeError, match=r"BrokerHeartbeatRequest\.broker_id: 'x' does not fit int32"):
            BrokerHeartbeatRequest("x").encode(1)  # type: ignore[arg-type]

    def test_an_id_of_another_length(self) -> None:
        with pytest.raises(ValueError, match="16 bytes, got 3"):
            Uuid(b"abc")


class TestTruncation:
    def test_field_and_offset_are_named(self) -> None:
        raw = CreateTopicsRequest([CreatableTopic("topic", 1, 1)]).encode(7)
        assert refused(CreateTopicsRequest, raw[:9], 7) == (
            "topics[0].num_partitions",
            7,
            "needs 4 bytes, 2 remain",
        )
        assert refused(CreateTopicsRequest, b"", 7) == ("topics", 0, "ends inside a varint")

    def test_bytes_after_a_message_are_ignored(self) -> None:
        assert BrokerHeartbeatRequest.decode(HEARTBEAT + b"\0" + b"more", 0).broker_id == 1


class TestBinary:
    @pytest.mark.parametrize("following", [b"", bytes(100)])
    @pytest.mark.parametrize("size", [2**bits + more for bits in (7, 14, 21) for more in (-2, -1, 0)])
    def test_sizes_of_one_to_four_bytes(self, size: int, following: bytes) -> None:
        blob = b"x" * size
        part = PartitionData(records=blob)
        for message, version in (
            (SaslAuthenticateRequest(blob), 2),
            (FetchResponse(responses=[FetchableTopicResponse(partitions=[part])]), 17),
        ):
            raw = written(message, version)
            assert uvarint(size + 1) + blob in raw
            assert type(message).decode_from(raw + following, version, 0) == (message, len(raw))
            unreadable(type(message), raw[:-200], version)

    def test_views_are_written(self) -> None:
        data = FetchResponse(
            responses=[FetchableTopicResponse(partitions=[PartitionData(records=memoryview(b"abc"))])]  # type: ignore[arg-type]
        )
        again = FetchResponse.decode(data.encode(17), 17)
        assert again.responses[0].partitions[0].records == b"abc"

    def test_text_is_refused(self) -> None:
        with pytest.raises(EncodeError, match=r"auth_bytes: is a str instead of bytes"):
            SaslAuthenticateRequest("secret").encode(2)  # type: ignore[arg-type]


class TestTaggedFields:
    def test_defaults_are_left_out(self) -> None:
        assert BrokerHeartbeatRequest(1, 2, 3, offline_log_dirs=()).encode(1) == HEARTBEAT + b"\0"
        assert FetchRequest(replica_state=ReplicaState()).encode(17)[-1] == 0

    def test_an_empty_array_is_not_null(self) -> None:
        record = PartitionChangeRecord(replicas=())
        raw = record.encode(0)
        assert raw[-4:] == b"\x01\x02\x01\x01"
        assert PartitionChangeRecord.decode(raw, 0).replicas == ()
        assert PartitionChangeRecord.decode(PartitionChangeRecord().encode(0), 0).replicas is None

    def test_known_tags_ascend_and_unknown_ones_follow(self) -> None:
        state = ReplicaState(7, 8)
        request = FetchRequest(
            cluster_id="c", replica_state=state, unknown_tagged_fields=((2, b"x"), (9, b""))
        )
        raw = request.encode(15)
        tags = b"\x04\x00\x02\x02c\x01\x0d\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x08\x00"
        assert raw.endswith(tags + b"\x02\x01x\x09\x00")
        assert FetchRequest.decode(raw, 15) == request

    def test_unknown_tags_count_in_equality(self) -> None:
        assert TopicRecord("a", unknown_tagged_fields=((5, b""),)) != TopicRecord("a")

    def test_unknown_tags_make_a_struct_something_else_than_its_default(self) -> None:
        state = ReplicaState(unknown_tagged_fields=((0, b"z"),))
        request = FetchRequest(replica_state=state)
        assert FetchRequest.decode(request.encode(17), 17) == request

    def test_unknown_tags_must_ascend_on_the_way_out_only(self) -> None:
        raw = b"\x02x" + bytes(16) + b"\x03\x05\x00\x04\x00\x04\x01a"
        message = TopicRecord.decode(raw, 0)
        assert message.unknown_tagged_fields == ((5, b""), (4, b""), (4, b"a"))
        with pytest.raises(EncodeError, match=r"unknown_tagged_fields: tag 4 follows tag 5"):
            message.encode(0)

    @pytest.mark.parametrize(
        ("tag", "reason"),
        [
            (2**31 - 1, "tag 2147483647 is above 2147483646"),
            (99_999_999_999, "tag 99999999999 is above 2147483646"),
            pytest.param(10**5000, "tag an integer of 16610 bits is above 2147483646", id="huge"),
            (-1, "tag -1 is negative"),
            (3, "tag 3 follows tag 3, but tags must ascend"),
        ],
    )
    def test_the_reason_why_a_tag_is_refused(self, tag: int, reason: str) -> None:
        tags = ((3, b""), (tag, b""))
        with pytest.raises(EncodeError, match=f"TopicRecord.unknown_tagged_fields: {reason}$"):
            TopicRecord("x", unknown_tagged_fields=tags[tag < 3 :]).encode(0)

    def test_more_than_127_tags(self) -> None:
        many = TopicRecord("x", unknown_tagged_fields=tuple((tag, b"") for tag in range(300)))
        assert TopicRecord.decode(many.encode(0), 0) == many

    def test_unknown_tags_have_no_place_in_old_versions(self) -> None:
        with pytest.raises(UnsupportedVersion, match="no tagged fields at this version") as caught:
            CreateTopicsRequest(unknown_tagged_fields=((0, b""),)).encode(4)
        assert caught.value.field == "unknown_tagged_fields"

    def test_the_last_of_two_equal_tags_wins(self) -> None:
        raw = PartitionChangeRecord(leader=1).encode(0)
        assert raw[-6:] == b"\x01\x04\x00\x00\x00\x01"[-6:]
        tag = b"\x01\x04\x00\x00\x00"
        start = raw[: -len(tag) - 2]
        again = PartitionChangeRecord.decode(start + b"\x02" + tag + b"\x01" + tag + b"\x02", 0)
        assert again.leader == 2

    def test_the_size_of_a_known_tag_does_not_matter(self) -> None:
        raw = BrokerHeartbeatRequest.decode(HEARTBEAT + b"\x01\x00\x63\x02" + bytes(16), 1)
        assert raw.offline_log_dirs == (Uuid.ZERO,)

    def test_a_known_tag_at_a_version_that_lacks_it(self) -> None:
        raw = HEARTBEAT + b"\x01\x00\x01\x01"
        assert refused(BrokerHeartbeatRequest, raw, 0) == (
            "offline_log_dirs",
            len(raw) - 1,
            "tag 0 is not valid at version 0",
        )

    def test_more_tags_than_bytes(self) -> None:
        assert refused(BrokerHeartbeatRequest, HEARTBEAT + b"\x03\x05", 0)[2].startswith(
            "3 tagged fields in 1 bytes"
        )

    def test_ten_thousand_tags_are_the_limit(self) -> None:
        most = TopicRecord("x", unknown_tagged_fields=tuple((tag, b"") for tag in range(10_000)))
        raw = most.encode(0)
        assert TopicRecord.decode(raw, 0) == most
        start = b"\x02x" + bytes(16)
        more = start + b"\x91\x4e" + raw[len(start) + 2 :] + b"\x90\x4e\x00"
        assert refused(TopicRecord, more, 0)[2].startswith("10001 tagged fields")

    def test_a_tag_in_a_tag(self) -> None:
        part = PartitionData(diverging_epoch=EpochEndOffset(3, 4, ((0, b"q"),)), records=b"")
        response = FetchResponse(responses=[FetchableTopicResponse(partitions=[part])])
        assert FetchResponse.decode(response.encode(17), 17) == response


class TestVersions:
    @pytest.mark.parametrize("version", [-1, 3, 32767])
    def test_outside_the_range(self, version: int) -> None:
        known = rf"BrokerHeartbeatRequest version {version}: known are 0 to 2"
        with pytest.raises(UnsupportedVersion, match=known):
            BrokerHeartbeatRequest.decode(HEARTBEAT + b"\0", version)
        with pytest.raises(UnsupportedVersion, match=known):
            BrokerHeartbeatRequest().encode(version)
        with pytest.raises(UnsupportedVersion, match=known):
            BrokerHeartbeatRequest().to_json(version)
        with pytest.raises(UnsupportedVersion, match=known):
            BrokerHeartbeatRequest.from_json({}, version)

    def test_a_field_that_the_version_lacks(self) -> None:
        with pytest.raises(UnsupportedVersion) as caught:
            BrokerHeartbeatRequest(offline_log_dirs=(Uuid.ONE,)).encode(0)
        assert (caught.value.message, caught.value.version, caught.value.field) == (
            "BrokerHeartbeatRequest",
            0,
            "offline_log_dirs",
        )

    def test_an_ignorable_field_is_dropped(self) -> None:
        request = ApiVersionsRequest("client", "1.0")
        assert ApiVersionsRequest.decode(request.encode(0), 0) == ApiVersionsRequest()

    def test_nothing_is_left_behind_by_a_refusal(self) -> None:
        out = [b"before"]
        with pytest.raises(EncodeError):
            CreateTopicsRequest([CreatableTopic("a"), CreatableTopic("x" * 40_000)]).encode_into(out, 7)
        assert out == [b"before"]


class TestErrors:
    def test_error_texts_are_short_for_any_value(self) -> None:
        values: tuple[Any, ...] = (
            10**5000,
            -(10**5000),
            "x" * 10**6,
            [10**5000],
            ["x"] * 10**6,
            b"x" * 10**6,
        )
        for value in values:
            with pytest.raises(EncodeError) as caught:
                PartitionRecord(leader=value).encode(0)
            assert len(str(caught.value)) < 600
