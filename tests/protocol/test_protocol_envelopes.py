"""Headers, metadata records in their frames, coordinators' records, and the registry."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kraft_wire.protocol.coordinator_record import (
    decode_coordinator_record,
    encode_coordinator_key,
    encode_coordinator_value,
)
from kraft_wire.protocol.errors import DecodeError, EncodeError, UnsupportedVersion
from kraft_wire.protocol.messages import COORDINATOR_RECORDS, MODULES
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraft_wire.protocol.messages.offset_commit_key import OffsetCommitKey
from kraft_wire.protocol.messages.offset_commit_value import OffsetCommitValue
from kraft_wire.protocol.messages.request_header import RequestHeader
from kraft_wire.protocol.messages.share_snapshot_key import ShareSnapshotKey
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record, encode_metadata_record
from kraft_wire.protocol.registry import (
    API_KEYS,
    METADATA_RECORD_KEYS,
    api_listeners,
    message_class,
    metadata_record_class,
    request_class,
    response_class,
    stable_versions,
)
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.wire.headers import (
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    header_version,
)
from tests.support.schema_samples import generated, message


class TestHeaders:
    BODY = CreateTopicsRequest([CreatableTopic("a", 1, 1)])

    @pytest.mark.parametrize("version", [2, 4, 5, 7])
    @pytest.mark.parametrize("client_id", ["me", ""])
    def test_requests(self, version: int, client_id: str) -> None:
        frame = encode_request(19, version, 42, client_id, self.BODY)
        header, end = decode_request_header(frame)
        assert header == RequestHeader(19, version, 42, client_id)
        assert CreateTopicsRequest.decode_from(frame, version, end) == (self.BODY, len(frame))

    def test_bytes_of_both_header_versions(self) -> None:
        old = encode_request(18, 2, 1, "ab", ApiVersionsRequest())
        assert old == bytes.fromhex("0012 0002 00000001 0002 6162")
        new = encode_request(18, 3, 1, "ab", ApiVersionsRequest())
        assert new[:13] == bytes.fromhex("0012 0003 00000001 0002 6162 00")

    def test_a_client_without_a_name(self) -> None:
        header, _ = decode_request_header(encode_request(18, 3, 1, None, ApiVersionsRequest()))
        assert header.client_id == ""

    def test_an_unknown_version_of_a_known_api(self) -> None:
        frame = bytes.fromhex("0012 0063 00000007 ffff 00")
        header, end = decode_request_header(frame)
        assert (header.request_api_version, header.correlation_id, end) == (99, 7, len(frame))

    @pytest.mark.parametrize("frame", [b"", b"\0", b"\0\x12\0"])
    def test_too_short_a_frame(self, frame: bytes) -> None:
        with pytest.raises(DecodeError, match=f"a frame of {len(frame)} bytes holds no header"):
            decode_request_header(frame)

    def test_a_frame_that_ends_in_the_header(self) -> None:
        with pytest.raises(DecodeError, match=r"RequestHeader\.correlation_id at offset 4: needs 4 bytes"):
            decode_request_header(bytes.fromhex("0012 0003 0000"))

    def test_an_api_that_there_is_none_of(self) -> None:
        with pytest.raises(EncodeError, match=r"RequestHeader\.request_api_key: there is no API 999"):
            encode_request(999, 0, 1, None, ApiVersionsRequest())
        with pytest.raises(EncodeError, match="ResponseHeader: there is no API 999"):
            encode_response(999, 0, 1, ApiVersionsResponse())
        with pytest.raises(DecodeError, match="ResponseHeader at offset 0: there is no API 999"):
            decode_response(999, 0, bytes(10))

    def test_an_unknown_api(self) -> None:
        with pytest.raises(DecodeError, match="there is no API 999"):
            decode_request_header(bytes.fromhex("03e7 0000 00000000 ffff"))

    def test_an_api_without_versions(self) -> None:
        with pytest.raises(UnsupportedVersion, match="API 7 has no version left"):
            decode_request_header(bytes.fromhex("0007 0000 00000000 ffff"))

    @pytest.mark.parametrize("version", [2, 4, 5, 7])
    def test_responses(self, version: int) -> None:
        body = CreateTopicsResponse(topics=[CreatableTopicResult("a", error_code=36)])
        frame = encode_response(19, version, 42, body)
        assert decode_response(19, version, frame) == (
            42,
            CreateTopicsResponse.decode(body.encode(version), version),
        )

    def test_api_versions_responses_have_the_old_header(self) -> None:
        body = ApiVersionsResponse()
        assert encode_response(18, 4, 9, body) == b"\0\0\0\x09" + body.encode(4)


class TestHeaderVersions:
    @pytest.mark.parametrize(("version", "request_header", "response_header"), [(1, 1, 0), (2, 2, 1)])
    def test_the_first_flexible_version_changes_both(
        self, version: int, request_header: int, response_header: int
    ) -> None:
        sample = message(name="PokeRequest", flexibleVersions="2+")
        assert header_version(generated(sample).PokeRequest, version) == request_header
        sample = message(name="PokeResponse", type="response", flexibleVersions="2+")
        assert header_version(generated(sample).PokeResponse, version) == response_header

    def test_a_message_that_is_never_flexible(self) -> None:
        sample = message(name="PokeRequest", flexibleVersions="none")
        assert header_version(generated(sample).PokeRequest, 3) == 1

    def test_api_versions_responses_have_header_0_at_every_version(self) -> None:
        versions = range(ApiVersionsResponse.MIN_VERSION, ApiVersionsResponse.MAX_VERSION + 1)
        assert {header_version(ApiVersionsResponse, version) for version in versions} == {0}
        assert header_version(ApiVersionsRequest, 3) == 2

    def test_the_first_controlled_shutdown_of_kafka_3_has_header_0(self) -> None:
        old = message(apiKey=7, name="ControlledShutdownRequest", validVersions="0-3", flexibleVersions="3+")
        request = generated(old).ControlledShutdownRequest
        assert [header_version(request, version) for version in range(4)] == [0, 1, 1, 2]
        old = message(apiKey=7, name="ControlledShutdownResponse", type="response", flexibleVersions="3+")
        response = generated(old).ControlledShutdownResponse
        assert [header_version(response, version) for version in range(4)] == [0, 0, 0, 1]

    def test_the_client_id_is_never_compact(self) -> None:
        header = RequestHeader(18, 3, 1, "me")
        assert header.encode(1) == bytes.fromhex("0012 0003 00000001 0002 6d65")
        assert header.encode(2) == header.encode(1) + b"\0"
        assert RequestHeader(18, 3, 1, None).encode(2)[8:] == b"\xff\xff\0"
        assert RequestHeader.decode(header.encode(2), 2) == header

    def test_other_messages_have_no_header(self) -> None:
        with pytest.raises(ValueError, match="TopicRecord is neither a request nor a response"):
            header_version(TopicRecord, 0)


class TestMetadataRecords:
    RECORD = TopicRecord("a", Uuid.ONE)

    def test_bytes(self) -> None:
        raw = encode_metadata_record(self.RECORD, 0)
        assert raw == b"\x01\x02\x00" + b"\x02a" + bytes(15) + b"\x01" + b"\x00"
        assert decode_metadata_record(raw) == (self.RECORD, 0)

    def test_every_record(self) -> None:
        assert len(METADATA_RECORD_KEYS) == 27
        for key in METADATA_RECORD_KEYS:
            record = metadata_record_class(key)()
            assert (key, "metadata") == (record.API_KEY, record.KIND)
            for version in range(record.MIN_VERSION, record.MAX_VERSION + 1):
                assert decode_metadata_record(encode_metadata_record(record, version)) == (record, version)

    def test_prefixes_may_be_longer_than_needed(self) -> None:
        raw = encode_metadata_record(self.RECORD, 0)
        assert decode_metadata_record(b"\x81\x00\x82\x00\x80\x00" + raw[3:]) == (self.RECORD, 0)

    @pytest.mark.parametrize(
        ("raw", "problem"),
        [
            (b"", "frame version at offset 0: the record ends here"),
            (b"\x01", "type at offset 1: the record ends here"),
            (b"\x01\x02", "version at offset 2: the record ends here"),
            (b"\x00\x02\x00", "frame version at offset 0: is 0 instead of 1"),
            (b"\x02\x02\x00\x00", "frame version at offset 0: is 2 instead of 1"),
            (b"\x01\x63\x00\x00", "type at offset 1: there is no record 99"),
            (b"\x01\x80\x80\x02\x00", "type at offset 1: 32768 is above 32767"),
            (b"\x01\xff\xff\xff\xff\xff", "type at offset 1: varint has no end within 5 bytes"),
            (b"\x01\x02\x80\x80\x02", "version at offset 2: 32768 is above 32767"),
            (b"\x01\x02\x00\x02a", "TopicRecord.topic_id at offset 5: needs 16 bytes, 0 remain"),
        ],
    )
    def test_malformed_records(self, raw: bytes, problem: str) -> None:
        with pytest.raises(DecodeError) as caught:
            decode_metadata_record(raw)
        assert str(caught.value).endswith(problem)

    def test_trailing_bytes(self) -> None:
        with pytest.raises(DecodeError, match="TopicRecord at offset 22: 1 bytes follow the record"):
            decode_metadata_record(encode_metadata_record(self.RECORD, 0) + b"\0")

    def test_an_unknown_version(self) -> None:
        with pytest.raises(UnsupportedVersion, match="TopicRecord version 9"):
            decode_metadata_record(b"\x01\x02\x09" + b"\x02a" + bytes(17))


class TestCoordinatorRecords:
    KEY = OffsetCommitKey("g", "t", 2)
    VALUE = OffsetCommitValue(7, metadata="m", commit_timestamp=9)

    def test_a_key_follows_its_type(self) -> None:
        raw = encode_coordinator_key(self.KEY)
        assert raw == bytes.fromhex("0001 0001 67 0001 74 00000002")
        assert decode_coordinator_record("group", raw, None) == (self.KEY, None, -1)

    def test_a_value_follows_its_version(self) -> None:
        raw = encode_coordinator_value(self.VALUE, 3)
        assert raw == bytes.fromhex("0003 0000000000000007 ffffffff 0001 6d 0000000000000009")
        key = encode_coordinator_key(self.KEY)
        assert decode_coordinator_record("group", key, raw) == (self.KEY, self.VALUE, 3)

    def test_a_tombstone_has_no_value(self) -> None:
        assert encode_coordinator_value(None, 3) is None

    def test_types_belong_to_a_coordinator(self) -> None:
        key = ShareSnapshotKey("g", Uuid.ONE, 1)
        raw = encode_coordinator_key(key)
        assert raw[:2] == b"\0\0"
        assert decode_coordinator_record("share", raw, None)[0] == key

    def test_every_record(self) -> None:
        assert {name: len(records) for name, records in COORDINATOR_RECORDS.items()} == {
            "group": 22,
            "share": 2,
            "transaction": 1,
        }
        for coordinator, records in COORDINATOR_RECORDS.items():
            for key_name, value_name in records.values():
                key, value = message_class(key_name)(), message_class(value_name)()
                for version in range(value.MIN_VERSION, value.MAX_VERSION + 1):
                    raw = encode_coordinator_key(key), encode_coordinator_value(value, version)
                    assert decode_coordinator_record(coordinator, *raw) == (key, value, version)

    def test_bytes_after_either_are_ignored(self) -> None:
        key = encode_coordinator_key(self.KEY) + b"more"
        value = (encode_coordinator_value(self.VALUE, 4) or b"") + b"more"
        assert decode_coordinator_record("group", key, value) == (self.KEY, self.VALUE, 4)

    @pytest.mark.parametrize(
        ("key", "value", "problem"),
        [
            (b"\0", None, "CoordinatorRecord.type at offset 0: needs 2 bytes, 1 remain"),
            (b"\0\x63", None, "CoordinatorRecord.type at offset 0: there is no group record 99"),
            (b"\xff\xff", None, "CoordinatorRecord.type at offset 0: there is no group record -1"),
            (b"\0\x02\0\x05g", None, "GroupMetadataKey.group at offset 4: needs 5 bytes, 1 remain"),
            (b"\0\x02\0\x01g", b"", "CoordinatorRecord.value version at offset 0: needs 2 bytes, 0 remain"),
            (b"\0\x02\0\x01g", b"\0\0", "GroupMetadataValue.protocol_type at offset 2: needs 2 bytes"),
        ],
    )
    def test_malformed_records(self, key: bytes, value: bytes | None, problem: str) -> None:
        with pytest.raises(DecodeError) as caught:
            decode_coordinator_record("group", key, value)
        assert str(caught.value).startswith(problem)

    @pytest.mark.parametrize("version", [-1, 5])
    def test_an_unknown_version_of_a_value(self, version: int) -> None:
        raw = version.to_bytes(2, signed=True) + bytes(40)
        with pytest.raises(UnsupportedVersion, match=f"OffsetCommitValue version {version}"):
            decode_coordinator_record("group", encode_coordinator_key(self.KEY), raw)

    def test_other_messages_are_no_coordinator_s(self) -> None:
        with pytest.raises(EncodeError, match="OffsetCommitValue: is not a coordinator's key"):
            encode_coordinator_key(self.VALUE)
        with pytest.raises(EncodeError, match="OffsetCommitKey: is not a coordinator's value"):
            encode_coordinator_value(self.KEY, 0)


class TestRegistry:
    def test_every_message_is_found_by_its_name(self) -> None:
        assert len(MODULES) == 286
        for name in MODULES:
            assert name == message_class(name).NAME

    def test_requests_and_responses_belong_together(self) -> None:
        assert len(API_KEYS) == 95
        for key in API_KEYS:
            request, response = request_class(key), response_class(key)
            assert (key, "request") == (request.API_KEY, request.KIND)
            assert (key, "response") == (response.API_KEY, response.KIND)
            assert request.NAME.removesuffix("Request") == response.NAME.removesuffix("Response")

    def test_who_serves_what(self) -> None:
        assert api_listeners(62) == ("controller",)
        assert api_listeners(0) == ("broker",)
        assert set(api_listeners(18)) == {"broker", "controller"}

    def test_unstable_versions_are_not_advertised(self) -> None:
        request = request_class(22)
        assert stable_versions(22) == (request.MIN_VERSION, request.MAX_VERSION - 1)

    def test_unknown_keys(self) -> None:
        for find in (request_class, response_class, metadata_record_class, api_listeners):
            with pytest.raises(KeyError):
                find(9999)
        with pytest.raises(KeyError):
            message_class("NoSuchMessage")

    def test_messages_are_loaded_when_they_are_asked_for(self) -> None:
        program = (
            "import sys, kraft_wire.protocol.registry as registry\n"
            "loaded = lambda: [m for m in sys.modules if m.startswith('kraft_wire.protocol.messages.')]\n"
            "assert not loaded(), loaded()\n"
            "registry.request_class(19)\n"
            "assert loaded() == ['kraft_wire.protocol.messages.create_topics_request'], loaded()\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
