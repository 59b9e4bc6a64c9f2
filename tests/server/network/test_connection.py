"""A connection keeps the order of responses, limits memory, and closes on bad requests."""

from __future__ import annotations

import logging
import os
import socket
import struct
import threading
from typing import cast

import pytest
import trio
import trio.testing

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.describe_configs_request import DescribeConfigsRequest
from kraft_wire.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraft_wire.protocol.messages.elect_leaders_response import ElectLeadersResponse
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraft_wire.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraft_wire.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kraft_wire.server.network import connection as connection_module
from kraft_wire.server.network.shared import Limits, Shared
from kraft_wire.wire.framing import FrameReader, frame
from kraft_wire.wire.headers import decode_response, encode_request
from kraft_wire.wire.large_responses import LARGE
from kraft_wire.wire.server_side import MAX_IN_FLIGHT, DecodedFrame, ServerSide
from tests.server.network.peer import (
    HEARTBEAT,
    HEARTBEAT_REQUEST,
    MAX_ENTRIES,
    MAX_FRAME_BYTES,
    connected,
    passes_to_serve,
    until,
)


async def test_responses_leave_in_the_order_of_requests() -> None:
    async with connected() as peer:
        await peer.heartbeats(3)
        await peer.wait_for_requests(3)
        for number in (2, 0, 1):
            peer.answer(number, BrokerHeartbeatResponse(throttle_time_ms=number))
        received = [await peer.receive() for _ in range(3)]
    assert [cast(BrokerHeartbeatResponse, body).throttle_time_ms for body in received] == [0, 1, 2]


async def test_requests_past_the_pipeline_wait_for_a_response_to_leave() -> None:
    async with connected() as peer:
        await peer.heartbeats(MAX_IN_FLIGHT + 10)
        await peer.wait_for_requests(MAX_IN_FLIGHT)
        await trio.testing.wait_all_tasks_blocked()
        assert len(peer.submitted) == MAX_IN_FLIGHT
        peer.answer(0, BrokerHeartbeatResponse())
        await peer.wait_for_requests(MAX_IN_FLIGHT + 1)
        await trio.testing.wait_all_tasks_blocked()
        assert len(peer.submitted) == MAX_IN_FLIGHT + 1


def _large_response() -> FetchResponse:
    """More than the sockets' buffers hold."""
    records = PartitionData(partition_index=0, high_watermark=0, records=bytes(32 * 1024 * 1024))
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[records])])


async def test_requests_wait_while_too_many_bytes_of_responses_have_not_left() -> None:
    async with connected() as peer:
        await peer.send(FetchRequest(), 12)
        await peer.wait_for_requests(1)
        peer.answer(0, _large_response())
        await peer.heartbeats(2)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert len(peer.submitted) == 1
        await peer.receive()
        await peer.wait_for_requests(3)


async def test_a_peer_that_reads_nothing_of_its_response_is_dropped() -> None:
    async with connected(max_idle_ms=30) as peer:
        await peer.send(FetchRequest(), 12)
        await peer.heartbeats(1)
        await peer.wait_for_requests(2)
        peer.answer(0, _large_response())
        await peer.is_dropped()


async def test_a_response_that_can_not_be_encoded_closes_its_connection_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with connected() as peer:
        await peer.send(MetadataRequest(), 11)
        await peer.wait_for_requests(1)
        peer.answer(0, MetadataResponse(topics=[MetadataResponseTopic(name=None)]))
        assert await peer.is_closed()
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "MetadataResponse.topics[0].name" in record.__dict__["fields"]["error"]


async def test_a_frame_may_come_byte_by_byte() -> None:
    async with connected() as peer:
        request = BrokerHeartbeatRequest(broker_id=7)
        for byte in frame(encode_request(HEARTBEAT, 1, 5, "peer", request)):
            await peer.stream.send_all(bytes([byte]))
        await peer.wait_for_requests(1)
    assert cast(BrokerHeartbeatRequest, peer.submitted[0].request).broker_id == 7
    assert peer.submitted[0].caller.client_id == "peer"
    assert peer.submitted[0].caller.listener == "CONTROLLER"


async def test_api_versions_of_the_future_is_answered_at_version_0() -> None:
    async with connected() as peer:
        await peer.send(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4)
        future = bytearray(frame(encode_request(18, 4, 10, "peer", ApiVersionsRequest())))
        future[6:8] = (99).to_bytes(2, "big")
        await peer.stream.send_all(future)
        await peer.wait_for_requests(2)
        assert peer.submitted[1].version == 99
        peer.answer(0, ApiVersionsResponse())
        await peer.receive()
        peer.answer(1, ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
        correlation_id, body = decode_response(18, 0, await _next_frame(peer.stream))
    assert correlation_id == 10
    assert cast(ApiVersionsResponse, body).error_code == ErrorCode.UNSUPPORTED_VERSION


async def _next_frame(stream: trio.SocketStream) -> bytes:
    frames = FrameReader(1 << 20)
    while (whole := frames.next_frame()) is None:
        frames.feed(await stream.receive_some())
    return whole


def _request_of(api_key: int, version: int, body: bytes = b"") -> bytes:
    header = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\x00\x01x\x00"
    return frame(header + body)


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        ((MAX_FRAME_BYTES + 1).to_bytes(4, "big"), str(MAX_FRAME_BYTES)),
        ((-1).to_bytes(4, "big", signed=True), "-1"),
        (frame(b""), "RequestHeader"),
        (frame(b"\x00\x3f"), "RequestHeader"),
        (_request_of(32_000, 0), "32000"),
        (_request_of(HEARTBEAT, 57), "57"),
        (_request_of(HEARTBEAT, 1, b"\x00"), "BrokerHeartbeatRequest"),
        (frame(b"\xff" * 64), "-1"),
    ],
    ids=[
        "oversized frame",
        "negative frame",
        "empty frame",
        "cut header",
        "unknown API",
        "unknown version",
        "cut body",
        "garbage",
    ],
)
async def test_a_bad_request_closes_its_connection_and_is_logged_with_the_peer(
    sent: bytes, complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with connected() as peer:
        await peer.stream.send_all(sent)
        assert await peer.is_closed()
        assert peer.submitted == []
        address = "{}:{}".format(*peer.stream.socket.getsockname())
    (record,) = caplog.records
    fields = record.__dict__["fields"]
    assert fields["peer"] == address
    assert complaint in fields["error"]


async def test_requests_before_a_bad_one_are_abandoned_with_the_connection() -> None:
    async with connected() as peer:
        await peer.heartbeats(2)
        await peer.wait_for_requests(2)
        peer.answer(1, BrokerHeartbeatResponse())
        await peer.stream.send_all(_request_of(32_000, 0))
        assert await peer.is_closed()
        assert peer.abandoned == [peer.submitted[0].token]


async def test_a_peer_that_leaves_abandons_its_requests() -> None:
    async with connected() as peer:
        await peer.heartbeats(1)
        await peer.wait_for_requests(1)
        await peer.stream.aclose()
        await until(lambda: bool(peer.abandoned))
        assert peer.abandoned == [peer.submitted[0].token]
        peer.answer(0, BrokerHeartbeatResponse())


async def test_a_peer_that_resets_its_connection_abandons_its_requests() -> None:
    """Here the socket is broken, not at its end."""
    async with connected() as peer:
        await peer.heartbeats(1)
        await peer.wait_for_requests(1)
        peer.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await peer.stream.aclose()
        await peer.is_dropped()
        assert peer.abandoned == [peer.submitted[0].token]


async def test_a_silent_connection_is_closed() -> None:
    async with connected(max_idle_ms=30) as peer:
        assert await peer.is_closed()


async def test_a_peer_that_reads_nothing_is_dropped_although_it_sends() -> None:
    records = PartitionData(partition_index=0, high_watermark=0, records=bytes(512 * 1024))
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[records])])
    async with connected(max_idle_ms=300, buffer_bytes=4096) as peer:
        peer.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await peer.send(FetchRequest(), 12)
        await peer.wait_for_requests(1)
        peer.answer(0, response)
        await peer.stream.send_all((MAX_FRAME_BYTES - 1).to_bytes(4, "big"))
        with pytest.raises(trio.BrokenResourceError):
            while True:
                await peer.stream.send_all(b"a")
                await trio.sleep(0.05)
        await peer.is_dropped()


async def test_an_idle_time_of_0_does_not_keep_the_loop_busy() -> None:
    async with connected(max_idle_ms=0) as peer:
        os.write(peer.stream.socket.fileno(), HEARTBEAT_REQUEST)
        await peer.wait_for_requests(1)
        await trio.testing.wait_all_tasks_blocked(0.01)


async def test_an_idle_time_below_0_is_no_limit() -> None:
    async with connected(max_idle_ms=-1) as peer:
        await trio.testing.wait_all_tasks_blocked()
        await peer.heartbeats(1)
        await peer.wait_for_requests(1)


async def test_a_connection_that_waits_for_its_answer_is_not_idle() -> None:
    async with connected(max_idle_ms=30) as peer:
        await peer.heartbeats(1)
        await peer.wait_for_requests(1)
        await trio.sleep(0.1)
        peer.answer(0, BrokerHeartbeatResponse())
        await peer.receive()
        assert await peer.is_closed()


async def test_a_client_with_many_requests_lets_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_module, "TURN_S", 0.0)
    async with connected() as peer:
        await peer.stream.send_all(HEARTBEAT_REQUEST * 50)
        assert await passes_to_serve(peer, 50) > 20, "all were served in a few passes of the event loop"


async def test_a_request_with_too_many_entries_is_refused_and_the_next_one_is_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with connected() as peer:
        await peer.send(ElectLeadersRequest(0, [TopicPartitions("t", tuple(range(MAX_ENTRIES)))]), 2)
        await peer.heartbeats(1)
        refused = await peer.receive()
        assert isinstance(refused, ElectLeadersResponse)
        assert ErrorCode(refused.error_code) is ErrorCode.POLICY_VIOLATION
        await peer.wait_for_requests(1)
    (record,) = caplog.records
    assert record.__dict__["fields"]["client_id"] == "peer"
    assert record.__dict__["fields"]["reason"] == (
        f"ElectLeadersRequest has {MAX_ENTRIES + 1} entries or more in all its arrays, and "
        f"{MAX_ENTRIES} are allowed: split the request, or raise kraft.wire.max.request.entries"
    )


async def test_a_refused_request_whose_response_has_no_error_of_its_own_closes_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with connected() as peer:
        partitions = [ListOffsetsPartition(partition_index=each) for each in range(MAX_ENTRIES)]
        topics = [ListOffsetsTopic(name="t", partitions=partitions)]
        await peer.send(ListOffsetsRequest(replica_id=-1, topics=topics), 7)
        assert await peer.is_closed()
        assert not peer.submitted
    (record,) = caplog.records
    assert f"ListOffsetsRequest has {MAX_ENTRIES + 1} entries or more" in record.__dict__["fields"]["error"]


async def test_a_refused_request_whose_response_has_errors_of_items_only_is_answered_with_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with connected() as peer:
        names = [MetadataRequestTopic(name=f"{number}") for number in range(MAX_ENTRIES + 1)]
        await peer.send(MetadataRequest(topics=names), 8)
        await peer.heartbeats(1)
        refused = await peer.receive()
        assert isinstance(refused, MetadataResponse)
        assert [topic.name for topic in refused.topics] == [topic.name for topic in names]
        assert {topic.error_code for topic in refused.topics} == {ErrorCode.POLICY_VIOLATION}
        await peer.wait_for_requests(1)
    (record,) = caplog.records
    assert "kraft.wire.max.request.entries" in record.__dict__["fields"]["reason"]


async def test_a_large_response_arrives_whole_and_before_those_after_it() -> None:
    results = [
        DescribeConfigsResult(
            resource_name=f"topic-{n}", configs=[DescribeConfigsResourceResult(name="key")] * 30
        )
        for n in range(2 * LARGE // 30)
    ]
    async with connected() as peer:
        await peer.send(DescribeConfigsRequest(), 4)
        await peer.heartbeats(1)
        await peer.wait_for_requests(1)
        peer.answer(0, DescribeConfigsResponse(results=results))
        await peer.wait_for_requests(2)
        peer.answer(1, BrokerHeartbeatResponse(throttle_time_ms=5))
        assert await peer.receive() == DescribeConfigsResponse(results=results)
        assert await peer.receive() == BrokerHeartbeatResponse(throttle_time_ms=5)


async def test_a_large_response_that_can_not_be_encoded_closes_its_connection_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    results = [DescribeConfigsResult(resource_name="x" * 40_000) for _ in range(LARGE + 1)]
    async with connected() as peer:
        await peer.send(DescribeConfigsRequest(), 4)
        await peer.wait_for_requests(1)
        peer.answer(0, DescribeConfigsResponse(results=results))
        assert await peer.is_closed()
    (record,) = caplog.records
    assert record.levelno == logging.ERROR


async def test_a_large_response_counts_before_it_is_encoded() -> None:
    results = [DescribeConfigsResult(resource_name=f"{n}") for n in range(LARGE + 1)]
    shared = Shared.of(Limits(MAX_FRAME_BYTES, 60_000, MAX_ENTRIES), CONTROLLER_APIS)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shared.turns.run)
        async with connected(shared=shared) as peer:
            await peer.send(DescribeConfigsRequest(), 4)
            await peer.wait_for_requests(1)
            peer.answer(0, DescribeConfigsResponse(results=results))
            assert shared.held.total > LARGE
            assert isinstance(await peer.receive(), DescribeConfigsResponse)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert shared.held.total == 0
        nursery.cancel_scope.cancel()


async def test_a_client_that_exceeds_a_quota_gets_its_answer_at_once_and_has_to_wait() -> None:
    async with connected() as peer:
        await peer.send(MetadataRequest(), 11)
        await peer.wait_for_requests(1)
        peer.answer(0, MetadataResponse(throttle_time_ms=3_600_000))
        body = cast(MetadataResponse, await peer.receive())
        assert body.throttle_time_ms == 3_600_000
        await peer.send(MetadataRequest(), 11)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert len(peer.submitted) == 1


async def test_a_client_that_had_to_wait_goes_on_afterwards() -> None:
    async with connected() as peer:
        await peer.send(MetadataRequest(), 11)
        await peer.wait_for_requests(1)
        peer.answer(0, MetadataResponse(throttle_time_ms=20))
        await peer.receive()
        for count in (2, 3):
            await peer.send(MetadataRequest(), 11)
            await peer.wait_for_requests(count)
            peer.answer(count - 1, MetadataResponse())
            await peer.receive()


async def test_a_client_that_goes_while_it_has_to_wait_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "MUTED_CLIENT_S", 0.01)
    async with connected() as peer:
        await peer.send(MetadataRequest(), 11)
        await peer.wait_for_requests(1)
        peer.answer(0, MetadataResponse(throttle_time_ms=3_600_000))
        await peer.receive()
        await peer.send(MetadataRequest(), 11)
        await peer.stream.send_eof()
        await peer.is_dropped()
        assert len(peer.submitted) == 1


@pytest.mark.parametrize("limit", [0, MAX_FRAME_BYTES])
async def test_a_large_request_is_decoded_in_a_thread_and_the_next_one_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    threads = []
    decode = ServerSide.decode

    def decoded(server: ServerSide, whole: bytes) -> DecodedFrame:
        threads.append(threading.current_thread())
        return decode(server, whole)

    monkeypatch.setattr(ServerSide, "decode", decoded)
    monkeypatch.setattr(connection_module, "DECODED_HERE_BYTES", limit)
    async with connected() as peer:
        await peer.heartbeats(3)
        await peer.wait_for_requests(3)
    ids = [cast(BrokerHeartbeatRequest, each.request).broker_id for each in peer.submitted]
    assert ids == [0, 1, 2]
    assert [each is threading.current_thread() for each in threads] == [limit > 0] * 3


async def test_a_request_that_is_decoded_when_its_connection_is_closed_is_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, may_end = threading.Event(), threading.Event()
    decode = ServerSide.decode

    def decoded(server: ServerSide, whole: bytes) -> DecodedFrame:
        began.set()
        may_end.wait(10)
        return decode(server, whole)

    monkeypatch.setattr(ServerSide, "decode", decoded)
    monkeypatch.setattr(connection_module, "DECODED_HERE_BYTES", 0)
    async with connected() as peer:
        await peer.heartbeats(1)
        await until(began.is_set)
        peer.connection.drop("for a test")
        may_end.set()
        await peer.is_dropped()
    assert not peer.submitted


async def test_a_large_request_that_is_malformed_costs_its_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection_module, "DECODED_HERE_BYTES", 0)
    async with connected() as peer:
        await peer.stream.send_all(HEARTBEAT_REQUEST[:4] + b"\x7f" * (len(HEARTBEAT_REQUEST) - 4))
        assert await peer.is_closed()
    assert [record.getMessage() for record in caplog.records] == ["connection dropped"]
