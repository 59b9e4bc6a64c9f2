"""The server's side of a connection, without a socket: requests in, responses in their order."""

from __future__ import annotations

import pytest

from kraft_wire.protocol.errors import DecodeError, ErrorCode, FrameTooLarge, ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraft_wire.protocol.messages.metadata_request import MetadataRequest
from kraft_wire.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.wire.client_side import ClientSide, Response
from kraft_wire.wire.framing import FrameReader, frame
from kraft_wire.wire.headers import API_VERSIONS_KEY, decode_response
from kraft_wire.wire.refused_items import RequestTooLarge
from kraft_wire.wire.server_side import (
    MAX_IN_FLIGHT,
    MAX_UNSENT_BYTES,
    Request,
    ServedApi,
    ServerSide,
    Slot,
    UnservedApi,
    answer_alike,
)

MAX_FRAME_BYTES = 10_000
SERVED: dict[int, tuple[type[Message], int]] = {
    FetchRequest.API_KEY: (FetchRequest, 17),
    MetadataRequest.API_KEY: (MetadataRequest, 13),
    API_VERSIONS_KEY: (ApiVersionsRequest, 4),
    BrokerHeartbeatRequest.API_KEY: (BrokerHeartbeatRequest, 1),
}
"""Each API's request and newest version."""
MAX_ENTRIES = 1_000
HEARTBEAT = BrokerHeartbeatRequest.API_KEY
LARGEST_HEARTBEAT = 100


def served(api_key: int, version: int) -> ServedApi | None:
    request, newest = SERVED.get(api_key, (Message, -1))
    if not 0 <= version <= newest:
        return None
    return ServedApi(request, MAX_ENTRIES, max_bytes=LARGEST_HEARTBEAT if api_key == HEARTBEAT else 10_000)


class Connection:
    """A server's side, a client's side that sends valid requests, and what the server reported."""

    def __init__(self) -> None:
        self.server = ServerSide(served, MAX_FRAME_BYTES, self._ready, self._failed)
        self.client = ClientSide("me", 1 << 26)
        self.wakes = 0
        self.failures: list[tuple[Slot, ProtocolError]] = []

    def _ready(self) -> None:
        self.wakes += 1

    def _failed(self, slot: Slot, error: ProtocolError) -> None:
        self.failures.append((slot, error))

    def receive(self, *pieces: bytes) -> list[Request]:
        """The requests in bytes that arrive in these pieces."""
        requests = []
        for piece in pieces:
            self.server.receive(piece)
            while (whole := self.server.next_frame()) is not None:
                requests.append(self.server.take(whole))
        return requests

    def has_room(self) -> bool:
        return self.server.has_room

    def heartbeats(self, count: int) -> bytes:
        return b"".join(
            self.client.send(BrokerHeartbeatRequest(broker_id=number), 1, request_id=number)
            for number in range(count)
        )

    def responses(self) -> list[tuple[int, Message]]:
        """The request id and body of each response that may leave, as a client reads them."""
        while data := self.server.take_ready():
            self.client.receive(data)
            self.server.sent(len(data))
        found = []
        while (event := self.client.next_event()) is not None:
            assert isinstance(event, Response)
            found.append((event.request_id, event.message))
        return found


@pytest.fixture
def connection() -> Connection:
    return Connection()


def heartbeat(throttle_time_ms: int = 0) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(throttle_time_ms=throttle_time_ms)


def large(size_bytes: int) -> FetchResponse:
    records = PartitionData(partition_index=0, high_watermark=0, records=bytes(size_bytes))
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[records])])


# Requests.


def test_a_request_is_decoded_with_its_header(connection: Connection) -> None:
    (request,) = connection.receive(connection.heartbeats(1))
    assert (request.api_key, request.version, request.client_id) == (HEARTBEAT, 1, "me")
    assert request.message == BrokerHeartbeatRequest(broker_id=0)
    assert (request.slot.correlation_id, request.slot.version, request.slot.payload) == (0, 1, None)


def test_a_request_that_is_too_large_for_its_api_is_not_decoded(connection: Connection) -> None:
    request = BrokerHeartbeatRequest(broker_id=1, offline_log_dirs=(Uuid.ONE,) * 10)
    text = f"BrokerHeartbeat request of .* bytes, at most {LARGEST_HEARTBEAT} are allowed"
    with pytest.raises(RequestTooLarge, match=text):
        connection.receive(connection.client.send(request, 1, request_id=1))


def test_bytes_may_be_cut_at_every_position() -> None:
    stream = Connection().heartbeats(3)
    for at in range(len(stream) + 1):
        requests = Connection().receive(stream[:at], stream[at:])
        assert [request.message for request in requests] == [
            BrokerHeartbeatRequest(broker_id=number) for number in range(3)
        ]


def test_bytes_may_come_one_by_one(connection: Connection) -> None:
    stream = connection.heartbeats(3)
    requests = connection.receive(*(stream[at : at + 1] for at in range(len(stream))))
    assert [request.slot.correlation_id for request in requests] == [0, 1, 2]


def test_a_null_client_id_is_empty(connection: Connection) -> None:
    header = HEARTBEAT.to_bytes(2) + b"\0\1" + bytes(4) + b"\xff\xff\0"
    (request,) = connection.receive(frame(header + BrokerHeartbeatRequest().encode(1)))
    assert request.client_id == ""


def test_too_many_requests_in_flight_leave_no_room(connection: Connection) -> None:
    requests = connection.receive(connection.heartbeats(MAX_IN_FLIGHT - 1))
    assert connection.has_room()
    requests += connection.receive(connection.heartbeats(1))
    assert not connection.has_room()
    requests[1].slot.answer(heartbeat())
    assert not connection.has_room()
    requests[0].slot.answer(heartbeat())
    connection.server.take_ready()
    assert connection.has_room()


def test_too_many_unsent_bytes_leave_no_room(connection: Connection) -> None:
    fetch, other = connection.receive(
        connection.client.send(FetchRequest(), 17) + connection.client.send(FetchRequest(), 17)
    )
    other.slot.answer(large(MAX_UNSENT_BYTES))
    assert not connection.has_room()
    fetch.slot.answer(large(0))
    data = connection.server.take_ready()
    assert not connection.has_room()
    connection.server.sent(len(data) - MAX_UNSENT_BYTES)
    assert not connection.has_room()
    connection.server.sent(1)
    assert connection.has_room()


# Bad requests.


def _raw(api_key: int, version: int, body: bytes = b"") -> bytes:
    header = api_key.to_bytes(2, signed=True) + version.to_bytes(2, signed=True) + bytes(4) + b"\0\1x\0"
    return frame(header + body)


@pytest.mark.parametrize(
    ("sent", "error", "complaint"),
    [
        (frame(b""), DecodeError, "a frame of 0 bytes holds no header"),
        (frame(b"\0\x3f"), DecodeError, "a frame of 2 bytes holds no header"),
        (_raw(32_000, 0), DecodeError, "there is no API 32000"),
        (_raw(-1, -1), DecodeError, "there is no API -1"),
        (_raw(0, 9), UnservedApi, r"Produce \(api key 0\) version 9 is not served here"),
        (_raw(HEARTBEAT, 57), UnservedApi, r"BrokerHeartbeat \(api key 63\) version 57 is not served here"),
        (_raw(API_VERSIONS_KEY, -1), UnservedApi, r"ApiVersions \(api key 18\) version -1 is not served"),
        (_raw(HEARTBEAT, 1, b"\0"), DecodeError, "BrokerHeartbeatRequest"),
    ],
)
def test_a_bad_request_is_an_error_and_gets_no_slot(
    connection: Connection, sent: bytes, error: type[ProtocolError], complaint: str
) -> None:
    with pytest.raises(error, match=complaint):
        connection.receive(sent)
    assert not connection.server.has_slots


@pytest.mark.parametrize("size", [MAX_FRAME_BYTES + 1, -1, 2**31 - 1])
def test_a_frame_that_is_too_large_is_an_error_before_it_has_come(connection: Connection, size: int) -> None:
    connection.server.receive(size.to_bytes(4, signed=True))
    with pytest.raises(FrameTooLarge, match=f"frame of {size} bytes"):
        connection.server.next_frame()


def test_requests_before_a_bad_one_keep_their_slots(connection: Connection) -> None:
    connection.server.receive(connection.heartbeats(2) + frame(b""))
    for _ in range(2):
        whole = connection.server.next_frame()
        assert whole is not None
        connection.server.take(whole)
    bad = connection.server.next_frame()
    assert bad is not None
    with pytest.raises(DecodeError):
        connection.server.take(bad)
    assert [slot.correlation_id for slot in connection.server.unanswered()] == [0, 1]


# Responses.


def test_responses_leave_in_the_order_of_requests(connection: Connection) -> None:
    requests = connection.receive(connection.heartbeats(4))
    taken = []
    for number in (2, 0, 3, 1):
        requests[number].slot.answer(heartbeat(number))
        taken.append([request_id for request_id, _ in connection.responses()])
    assert taken == [[], [0], [], [1, 2, 3]]
    assert connection.wakes == 4
    assert not connection.server.has_slots


def test_a_response_has_the_version_of_its_request(connection: Connection) -> None:
    data = connection.client.send(FetchRequest(), 4, request_id=4)
    data += connection.client.send(FetchRequest(), 17, request_id=17)
    for request in connection.receive(data):
        request.slot.answer(FetchResponse(throttle_time_ms=request.version))
    assert connection.responses() == [
        (4, FetchResponse(throttle_time_ms=4)),
        (17, FetchResponse(throttle_time_ms=17)),
    ]


def test_the_server_knows_which_responses_are_ready_and_which_requests_wait(connection: Connection) -> None:
    first, second = connection.receive(connection.heartbeats(2))
    second.slot.answer(heartbeat())
    assert (connection.server.has_ready, connection.server.unanswered()) == (False, [first.slot])
    assert connection.server.take_ready() == b""
    first.slot.answer(heartbeat())
    assert (connection.server.has_ready, connection.server.unanswered()) == (True, [])
    assert connection.server.take_ready()
    assert (connection.server.has_ready, connection.server.has_slots) == (False, False)


def test_a_response_that_its_version_can_not_express_is_reported_with_its_slot(
    connection: Connection,
) -> None:
    (request,) = connection.receive(connection.client.send(MetadataRequest(), 11))
    request.slot.answer(MetadataResponse(topics=[MetadataResponseTopic(name=None)]))
    ((slot, error),) = connection.failures
    assert slot is request.slot
    assert "MetadataResponse.topics[0].name" in str(error)
    assert connection.server.unanswered() == [slot]
    assert connection.wakes == 0


def test_a_response_after_the_end_is_harmless(connection: Connection) -> None:
    (request,) = connection.receive(connection.heartbeats(1))
    (abandoned,) = connection.server.unanswered()
    assert abandoned is request.slot
    request.slot.answer(heartbeat())
    assert connection.server.unanswered() == []


def test_api_versions_of_the_future_is_answered_at_version_0(connection: Connection) -> None:
    """KIP-511: any client can read version 0."""
    (request,) = connection.receive(_raw(API_VERSIONS_KEY, 99, b"whatever the future holds"))
    assert (request.version, request.slot.version) == (99, 0)
    assert request.message == ApiVersionsRequest()
    request.slot.answer(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    frames = FrameReader(1 << 20)
    frames.feed(connection.server.take_ready())
    whole = frames.next_frame()
    assert whole is not None
    assert decode_response(API_VERSIONS_KEY, 0, whole) == (
        0,
        ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION),
    )


# Several requests with the same answer.


def asked(version: int, request_id: int) -> tuple[Connection, Slot]:
    connection = Connection()
    sent = connection.client.send(FetchRequest(), version, request_id=request_id)
    (request,) = connection.receive(sent)
    return connection, request.slot


def test_the_same_answer_is_encoded_once_for_each_version(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    encode = FetchResponse.encode_into

    def count(self: FetchResponse, out: list[bytes], version: int) -> None:
        encoded.append(version)
        encode(self, out, version)

    monkeypatch.setattr(FetchResponse, "encode_into", count)
    askers = [asked(version, request_id) for request_id, version in enumerate((17, 16, 17, 17))]
    answer_alike([slot for _, slot in askers], large(10))
    assert sorted(encoded) == [16, 17]
    assert [connection.responses() for connection, _ in askers] == [
        [(request_id, large(10))] for request_id in range(4)
    ]


def test_the_same_answer_that_a_version_cannot_express_ends_the_connections_of_that_version() -> None:
    response = large(10)
    response.responses[0].partitions[0].error_code = 1 << 20
    askers = [asked(17, 1), asked(17, 2)]
    answer_alike([slot for _, slot in askers], response)
    assert [len(connection.failures) for connection, _ in askers] == [1, 1]


def test_a_large_answer_to_several_is_encoded_in_pieces() -> None:
    response = MetadataResponse(brokers=[MetadataResponseBroker(node_id=number) for number in range(6_000)])
    askers = []
    for request_id in range(2):
        connection = Connection()
        (request,) = connection.receive(connection.client.send(MetadataRequest(), 12, request_id=request_id))
        askers.append((connection, request.slot))
    answer_alike([slot for _, slot in askers], response)
    for connection, slot in askers:
        assert slot.unencoded is response
        assert list(slot.encode_in_pieces())
        ((_, received),) = connection.responses()
        assert received == response


def metadata_with_long_racks() -> tuple[Connection, Slot, int]:
    """A client that gets 6,000 brokers with racks of 500 characters; and how many bytes they have."""
    rack = "r" * 500
    brokers = [MetadataResponseBroker(node_id=number, rack=rack) for number in range(6_000)]
    response = MetadataResponse(brokers=brokers)
    connection = Connection()
    (request,) = connection.receive(connection.client.send(MetadataRequest(), 12))
    request.slot.answer(response)
    return connection, request.slot, len(response.encode(12))


def test_a_large_answer_is_held_as_far_as_it_is_encoded() -> None:
    connection, slot, size_bytes = metadata_with_long_racks()
    held_bytes = [connection.server.held_bytes for _ in slot.encode_in_pieces()]
    assert held_bytes == sorted(held_bytes)
    assert held_bytes[0] < 0.2 * size_bytes and held_bytes[-2] > 0.8 * size_bytes
    assert size_bytes < connection.server.held_bytes < 1.01 * size_bytes
    assert len(connection.responses()) == 1
    assert connection.server.held_bytes == 0


def test_a_large_answer_leaves_in_pieces() -> None:
    connection, slot, size_bytes = metadata_with_long_racks()
    assert list(slot.encode_in_pieces())
    first = connection.server.take_ready()
    assert len(first) < 0.2 * size_bytes
    connection.client.receive(first)
    connection.server.sent(len(first))
    assert len(connection.responses()) == 1


def test_a_large_answer_is_encoded_no_further_when_the_connection_is_closed() -> None:
    connection, slot, _ = metadata_with_long_racks()
    pieces = slot.encode_in_pieces()
    next(pieces)
    connection.server.close()
    assert list(pieces) == []
