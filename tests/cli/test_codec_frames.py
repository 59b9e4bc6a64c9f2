"""Captured connections: frames of one direction to lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from kraft_wire.cli.codec.frames import ClientLines, ServerLines, StreamBroken, broken_line, frames_of
from kraft_wire.cli.codec.lines import Answer
from kraft_wire.cli.codec.requests import SentRequests
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraft_wire.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraft_wire.protocol.messages.metadata_request import MetadataRequest
from kraft_wire.protocol.messages.metadata_response import MetadataResponse
from kraft_wire.protocol.messages.produce_request import ProduceRequest
from kraft_wire.protocol.messages.produce_response import ProduceResponse
from kraft_wire.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kraft_wire.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from kraft_wire.wire.framing import frame
from kraft_wire.wire.headers import encode_request, encode_response
from tests.support.odd_wire import mutate

MAX_FRAME_BYTES = 1_000_000
API_VERSIONS, METADATA, PRODUCE, FETCH, SASL_HANDSHAKE = 18, 3, 0, 1, 17

ASK_VERSIONS = encode_request(API_VERSIONS, 3, 1, "me", ApiVersionsRequest("lib", "1.0"))
ASK_METADATA = encode_request(METADATA, 12, 2, None, MetadataRequest(topics=[]))
HANDSHAKE = encode_request(SASL_HANDSHAKE, 0, 7, "me", SaslHandshakeRequest("PLAIN"))
VERSIONS = encode_response(API_VERSIONS, 3, 1, ApiVersionsResponse(api_keys=[ApiVersion(18, 0, 4)]))
METADATA_ANSWER = encode_response(METADATA, 12, 2, MetadataResponse(cluster_id="c"))
HANDSHAKEN = encode_response(SASL_HANDSHAKE, 0, 7, SaslHandshakeResponse(mechanisms=("PLAIN",)))


def stream_of(*payloads: bytes) -> bytes:
    return b"".join(map(frame, payloads))


def client_lines(stream: bytes, chunk_bytes: int = 7) -> list[dict[str, Any]]:
    return lines(stream, ClientLines(), chunk_bytes)


def server_lines(stream: bytes, requests: Iterable[bytes], chunk_bytes: int = 7) -> list[dict[str, Any]]:
    sent = SentRequests()
    for payload in requests:
        sent.add(payload)
    return lines(stream, ServerLines(sent), chunk_bytes)


def lines(stream: bytes, reader: ClientLines | ServerLines, chunk_bytes: int) -> list[dict[str, Any]]:
    chunks = (stream[at : at + chunk_bytes] for at in range(0, len(stream), chunk_bytes))
    found = []
    try:
        for frames in frames_of(chunks, MAX_FRAME_BYTES):
            found += [told(reader.answer(each)) for each in frames]
    except StreamBroken as error:
        found.append(told(broken_line(error)))
    return found


def told(answer: Answer) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.line)
    assert answer.ok == ("error" not in found)
    return found


class TestClient:
    @pytest.mark.parametrize("chunk_bytes", [1, 5, 1000])
    def test_requests_with_their_headers(self, chunk_bytes: int) -> None:
        first, second = client_lines(stream_of(ASK_VERSIONS, ASK_METADATA), chunk_bytes)
        assert first == {
            "offset": 0,
            "header": {
                "requestApiKey": 18,
                "requestApiVersion": 3,
                "correlationId": 1,
                "clientId": "me",
            },
            "message": "ApiVersionsRequest",
            "version": 3,
            "data": {"clientSoftwareName": "lib", "clientSoftwareVersion": "1.0"},
        }
        assert list(first) == ["offset", "header", "message", "version", "data"]
        assert (second["offset"], second["message"]) == (4 + len(ASK_VERSIONS), "MetadataRequest")

    def test_a_frame_that_can_t_be_decoded_costs_its_own_line(self) -> None:
        cut = ASK_METADATA[:-3]
        first, second, third = client_lines(stream_of(ASK_VERSIONS, cut, ASK_METADATA))
        assert "error" not in first | third
        offset = 4 + len(ASK_VERSIONS)
        header_bytes = 8 + 2 + 1
        assert second == {
            "offset": offset,
            "header": {
                "requestApiKey": 3,
                "requestApiVersion": 12,
                "correlationId": 2,
                "clientId": "",
            },
            "message": "MetadataRequest",
            "version": 12,
            "error": "MetadataRequest.allowAutoTopicCreation at offset"
            f" {offset + 4 + header_bytes + 1}: needs 1 bytes, 0 remain",
        }

    @pytest.mark.parametrize(
        ("payload", "error"),
        [
            (b"", "RequestHeader.requestApiKey at offset 4: a frame of 0 bytes holds no header"),
            (
                bytes.fromhex("03e7 0000 00000001 ffff"),
                "RequestHeader.requestApiKey at offset 4: there is no API 999",
            ),
            (
                bytes.fromhex("0003 0000 0000"),
                "RequestHeader.correlationId at offset 8: needs 4 bytes, 2 remain",
            ),
            (
                bytes.fromhex("0007 0000 00000001 ffff"),
                "ControlledShutdownRequest version 0: API 7 has no version left",
            ),
        ],
    )
    def test_frames_without_a_header(self, payload: bytes, error: str) -> None:
        assert client_lines(stream_of(payload)) == [{"offset": 0, "error": error}]

    def test_a_version_that_is_unknown(self) -> None:
        (line,) = client_lines(stream_of(bytes.fromhex("0012 0063 00000001 ffff 00")))
        assert (line["message"], line["version"]) == ("ApiVersionsRequest", 99)
        assert (
            line["error"] == f"ApiVersionsRequest version 99: known are 0 to {ApiVersionsRequest.MAX_VERSION}"
        )

    def test_bytes_behind_a_request_are_counted(self) -> None:
        (line,) = client_lines(stream_of(ASK_METADATA + b"ab"))
        assert line["unread_bytes"] == 2


class TestServer:
    def test_responses_to_requests(self) -> None:
        first, second = server_lines(stream_of(VERSIONS, METADATA_ANSWER), [ASK_VERSIONS, ASK_METADATA])
        assert first["header"] == {"correlationId": 1}
        assert (first["message"], first["version"]) == ("ApiVersionsResponse", 3)
        assert first["data"]["apiKeys"] == [{"apiKey": 18, "minVersion": 0, "maxVersion": 4}]
        assert list(first) == ["offset", "header", "message", "version", "data"]
        assert second["offset"] == 4 + len(VERSIONS)
        assert second["data"]["clusterId"] == "c"

    def test_the_bytes_of_fetched_records(self) -> None:
        fetched = FetchResponse(
            responses=[FetchableTopicResponse(partitions=[PartitionData(records=b"abc")])]
        )
        ask = bytes.fromhex("0001 0011 00000009 ffff 00")
        (line,) = server_lines(stream_of(encode_response(FETCH, 17, 9, fetched)), [ask])
        assert line["data"]["responses"][0]["partitions"][0]["records"] == "YWJj"

    def test_a_version_that_the_server_does_not_know_is_answered_in_version_0(self) -> None:
        refusal = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(18, 0, 2)])
        answer = encode_response(API_VERSIONS, 0, 1, refusal)
        for asked in (ASK_VERSIONS, bytes.fromhex("0012 0063 00000001 ffff 00")):
            (line,) = server_lines(stream_of(answer), [asked])
            assert (line["message"], line["version"]) == ("ApiVersionsResponse", 0)
            assert line["data"]["errorCode"] == 35

    def test_an_answer_to_api_versions_that_is_none_keeps_its_first_error(self) -> None:
        (line,) = server_lines(stream_of(VERSIONS[:7]), [ASK_VERSIONS])
        assert (line["version"], line["header"]) == (3, {"correlationId": 1})
        assert (
            line["error"]
            == "ApiVersionsResponse.apiKeys at offset 11: array of 1 elements in 0 remaining bytes"
        )

    def test_a_produce_request_without_acknowledgement_has_no_response(self) -> None:
        silent = encode_request(PRODUCE, 9, 1, "me", ProduceRequest(acks=0))
        loud = encode_request(PRODUCE, 9, 1, "me", ProduceRequest(acks=1))
        answer = encode_response(PRODUCE, 9, 1, ProduceResponse())
        (line,) = server_lines(stream_of(answer), [silent, loud])
        assert line["message"] == "ProduceResponse"
        (line,) = server_lines(stream_of(answer), [silent])
        assert line == {
            "offset": 0,
            "header": {"correlationId": 1},
            "error": "no request with this correlation id is left unanswered",
        }

    def test_equal_correlation_ids_are_answered_in_order(self) -> None:
        again = encode_request(METADATA, 12, 1, "me", MetadataRequest(topics=[]))
        answer = encode_response(METADATA, 12, 1, MetadataResponse())
        found = server_lines(stream_of(VERSIONS, answer), [ASK_VERSIONS, again])
        assert [line["message"] for line in found] == ["ApiVersionsResponse", "MetadataResponse"]

    def test_a_response_without_a_request(self) -> None:
        found = server_lines(stream_of(VERSIONS, VERSIONS, METADATA_ANSWER), [ASK_VERSIONS, ASK_METADATA])
        assert ["error" in line for line in found] == [False, True, False]

    def test_an_answer_to_an_api_that_nobody_knows(self) -> None:
        asked = bytes.fromhex("03e7 0000 00000005 ffff")
        (line,) = server_lines(stream_of(b"\0\0\0\x05\0"), [asked])
        assert line["error"] == "it answers a request of API 999, which doesn't exist"

    @pytest.mark.parametrize("payload", [b"", b"\0\0\0"])
    def test_frames_without_a_header(self, payload: bytes) -> None:
        (line,) = server_lines(stream_of(payload), [ASK_METADATA])
        assert line == {"offset": 0, "error": f"a frame of {len(payload)} bytes holds no header"}

    def test_a_frame_that_can_t_be_decoded_costs_its_own_line(self) -> None:
        cut = METADATA_ANSWER[:-3]
        broken, fine = server_lines(stream_of(cut, VERSIONS), [ASK_VERSIONS, ASK_METADATA])
        assert broken["header"] == {"correlationId": 2}
        assert broken["error"].startswith("MetadataResponse.")
        assert fine["message"] == "ApiVersionsResponse"

    def test_frames_that_are_no_requests_are_passed_over(self) -> None:
        (line,) = server_lines(stream_of(VERSIONS), [b"abc", ASK_VERSIONS])
        assert line["message"] == "ApiVersionsResponse"


class TestSaslWithoutHeaders:
    TOKEN = b"\0alice\0secret"

    def test_tokens_follow_a_handshake_of_version_0(self) -> None:
        found = client_lines(stream_of(ASK_VERSIONS, HANDSHAKE, self.TOKEN, ASK_METADATA))
        assert found[2] == {
            "offset": 8 + len(ASK_VERSIONS) + len(HANDSHAKE),
            "sasl_token_bytes": len(self.TOKEN),
        }
        assert [line.get("message") for line in found] == [
            "ApiVersionsRequest",
            "SaslHandshakeRequest",
            None,
            "MetadataRequest",
        ]

    def test_there_may_be_several_and_empty_ones(self) -> None:
        tokens = [b"n,,n=alice,r=x", b"", b"\x60\x82"]
        found = client_lines(stream_of(HANDSHAKE, *tokens, ASK_METADATA))
        assert [line.get("sasl_token_bytes") for line in found] == [None, 14, 0, 2, None]

    def test_the_server_s_tokens(self) -> None:
        requests = [HANDSHAKE, self.TOKEN, b"more", ASK_METADATA]
        found = server_lines(stream_of(HANDSHAKEN, b"", b"r=xyz", METADATA_ANSWER), requests)
        assert [line.get("sasl_token_bytes") for line in found] == [None, 0, 5, None]
        assert found[-1]["message"] == "MetadataResponse"

    def test_the_server_may_say_nothing_to_a_token(self) -> None:
        found = server_lines(stream_of(HANDSHAKEN, METADATA_ANSWER), [HANDSHAKE, self.TOKEN, ASK_METADATA])
        assert [line["message"] for line in found] == ["SaslHandshakeResponse", "MetadataResponse"]

    def test_a_handshake_of_version_1_has_no_tokens_behind_it(self) -> None:
        newer = encode_request(SASL_HANDSHAKE, 1, 7, "me", SaslHandshakeRequest("PLAIN"))
        found = client_lines(stream_of(newer, self.TOKEN))
        assert ["error" in line for line in found] == [False, True]


class TestBrokenStreams:
    @pytest.mark.parametrize("left", [1, 4, 5, 12])
    def test_a_stream_that_breaks_off(self, left: int) -> None:
        whole = stream_of(ASK_METADATA)
        found = client_lines(whole + stream_of(ASK_VERSIONS)[:left])
        assert found[1:] == [
            {"offset": len(whole), "error": f"the stream breaks off, {left} bytes into this frame"}
        ]

    def test_nothing_is_no_stream_that_breaks_off(self) -> None:
        assert client_lines(b"") == []

    @pytest.mark.parametrize(
        ("start", "error"),
        [
            (
                "ffffffff",
                "frame of -1 bytes, allowed are 0 to 1000000; a stream must start where its connection",
            ),
            ("000f4241", "frame of 1000001 bytes"),
            ("1603010200", "it looks like TLS, which only the two ends can decrypt"),
            ("d4c3b2a10200", "it is a pcap file"),
            ("a1b2c3d40002", "it is a pcap file"),
            ("0a0d0d0a1c00", "it is a pcapng file"),
        ],
    )
    def test_a_stream_that_is_none(self, start: str, error: str) -> None:
        (line,) = client_lines(bytes.fromhex(start))
        assert line["offset"] == 0
        assert error in line["error"]

    def test_a_stream_that_is_none_any_more(self) -> None:
        whole = stream_of(ASK_METADATA)
        found = client_lines(whole + bytes.fromhex("d4c3b2a1") + whole)
        assert [line["offset"] for line in found] == [0, len(whole)]
        assert "pcap" not in found[1]["error"]


@pytest.mark.parametrize("seed", range(4))
def test_any_stream_has_lines(seed: int) -> None:
    random = Random(seed)
    clients = stream_of(ASK_VERSIONS, HANDSHAKE, b"\0a\0b", ASK_METADATA, ASK_METADATA)
    servers = stream_of(VERSIONS, HANDSHAKEN, b"", METADATA_ANSWER)
    for _ in range(500):
        asked, answered = (mutate(random, stream, (clients, servers)) for stream in (clients, servers))
        client_lines(asked, random.choice((3, 50, 1000)))
        sent = SentRequests()
        try:
            for frames in frames_of(iter((asked,)), MAX_FRAME_BYTES):
                for each in frames:
                    sent.add(each.payload)
        except StreamBroken:
            pass
        lines(answered, ServerLines(sent), 100)
