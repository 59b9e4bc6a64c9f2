"""Headers, metadata records in their frames, and the registry."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kraft_wire.protocol.errors import DecodeError, UnsupportedVersion
from kraft_wire.protocol.headers import (
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from kraft_wire.protocol.messages import MODULES
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraft_wire.protocol.messages.request_header import RequestHeader
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
