"""The client's side of a connection, without a socket: requests, responses and what isn't one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from kraft_wire.protocol.errors import (
    DecodeError,
    EncodeError,
    ErrorCode,
    FrameTooLarge,
    ProtocolError,
    UnsupportedVersion,
)
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.heartbeat_request import HeartbeatRequest
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import NodeEndpoint, VoteResponse
from kraft_wire.protocol.registry import request_class
from kraft_wire.wire.client_side import (
    CORRELATION_ID_LIMIT,
    ClientSide,
    Event,
    Ready,
    Response,
    ToSend,
    UnexpectedResponse,
)
from kraft_wire.wire.entry_count import TooManyEntries
from kraft_wire.wire.framing import FrameReader, frame
from kraft_wire.wire.headers import API_VERSIONS_KEY, decode_request_header, encode_response
from kraft_wire.wire.served_versions import VersionsRefused
from tests.server.network.outgoing import vote

MAX_FRAME_BYTES = 10_000
VOTE, FETCH = 52, 1
SERVED: Mapping[int, tuple[int, int]] = {FETCH: (4, 17), API_VERSIONS_KEY: (0, 4), VOTE: (0, 1)}


def versions(ranges: Mapping[int, tuple[int, int]] = SERVED, error_code: int = 0) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=error_code, api_keys=[ApiVersion(key, low, high) for key, (low, high) in ranges.items()]
    )


def response(api_key: int, version: int, correlation_id: int, message: Message) -> bytes:
    return frame(encode_response(api_key, version, correlation_id, message))


def events(client: ClientSide, *pieces: bytes) -> list[Event]:
    """All events of bytes that arrive in these pieces."""
    found = []
    for piece in pieces:
        client.receive(piece)
        while (event := client.next_event()) is not None:
            found.append(event)
    return found


def event(client: ClientSide, data: bytes) -> Event:
    (only,) = events(client, data)
    return only


def sent(data: bytes) -> list[tuple[int, int, int, str | None, Message]]:
    """API key, version, correlation id, client id and body of each request."""
    frames = FrameReader(1 << 20)
    frames.feed(data)
    found: list[tuple[int, int, int, str | None, Message]] = []
    while (whole := frames.next_frame()) is not None:
        header, start = decode_request_header(whole)
        key, version = header.request_api_key, header.request_api_version
        body, _ = request_class(key).decode_from(whole, version, start)
        found.append((key, version, header.correlation_id, header.client_id, body))
    assert frames.buffered_bytes == 0
    return found


def opened(served: Mapping[int, tuple[int, int]] = SERVED) -> ClientSide:
    """A client that is past its opening; its next correlation id is 1."""
    client = ClientSide("me", MAX_FRAME_BYTES)
    client.begin()
    assert event(client, response(API_VERSIONS_KEY, 4, 0, versions(served))) == Ready()
    return client


def answers(count: int) -> list[bytes]:
    """Responses to the first Votes, in order."""
    return [response(VOTE, 1, 1 + number, VoteResponse(error_code=number)) for number in range(count)]


def error_codes(found: Iterable[Event]) -> list[tuple[int, int]]:
    """The request id and error code of each response."""
    codes = []
    for each in found:
        assert isinstance(each, Response)
        assert isinstance(each.message, VoteResponse)
        codes.append((each.request_id, each.message.error_code))
    return codes


# The opening.


def test_the_first_request_asks_for_versions() -> None:
    client = ClientSide("me", MAX_FRAME_BYTES)
    ((key, version, correlation_id, client_id, body),) = sent(client.begin())
    assert (key, version, correlation_id, client_id) == (API_VERSIONS_KEY, 4, 0, "me")
    assert isinstance(body, ApiVersionsRequest)
    assert (body.client_software_name, body.client_software_version) == ("kraft-wire", "unknown")
    assert client.next_event() is None
    assert client.due_api_key == API_VERSIONS_KEY
    assert client.unanswered() == []


@pytest.mark.parametrize(("known", "next_version"), [({18: (0, 3)}, 3), ({18: (0, 2)}, 2), ({}, 0)])
def test_a_peer_that_does_not_know_the_version_is_asked_again(
    known: dict[int, tuple[int, int]], next_version: int
) -> None:
    client = ClientSide("me", MAX_FRAME_BYTES)
    client.begin()
    unknown = versions(known, int(ErrorCode.UNSUPPORTED_VERSION))
    asked = event(client, response(API_VERSIONS_KEY, 0, 0, unknown))
    assert isinstance(asked, ToSend)
    assert [each[:3] for each in sent(asked.data)] == [(API_VERSIONS_KEY, next_version, 1)]
    assert event(client, response(API_VERSIONS_KEY, next_version, 1, versions())) == Ready()
    assert [each[:3] for each in sent(client.send(VoteRequest()))] == [(VOTE, 1, 2)]


def test_a_peer_that_refuses_to_name_its_versions_ends_the_opening() -> None:
    client = ClientSide("me", MAX_FRAME_BYTES)
    client.begin()
    refusal = versions({}, int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    client.receive(response(API_VERSIONS_KEY, 4, 0, refusal))
    with pytest.raises(VersionsRefused, match="CLUSTER_AUTHORIZATION_FAILED"):
        client.next_event()
    assert client.due_api_key == API_VERSIONS_KEY


def test_requests_before_the_end_of_the_opening_are_an_error_of_the_caller() -> None:
    client = ClientSide("me", MAX_FRAME_BYTES)
    with pytest.raises(AssertionError):
        client.send(VoteRequest())
    client.begin()
    with pytest.raises(AssertionError):
        client.send(VoteRequest(), 1)


def test_an_opening_with_too_many_versions_ends() -> None:
    """A million of them would keep everybody else waiting for a second."""
    client = ClientSide("me", MAX_FRAME_BYTES, max_answer_entries=len(SERVED))
    client.begin()
    client.receive(response(API_VERSIONS_KEY, 4, 0, versions({**SERVED, 1000: (0, 0)})))
    with pytest.raises(TooManyEntries, match="ApiVersionsResponse has 4 entries"):
        client.next_event()


def test_a_response_with_too_many_entries_is_not_decoded() -> None:
    client = ClientSide("me", MAX_FRAME_BYTES, max_answer_entries=len(SERVED))
    client.begin()
    assert event(client, response(API_VERSIONS_KEY, 4, 0, versions())) == Ready()
    client.send(VoteRequest())
    nodes = [NodeEndpoint(node_id=number, host="h", port=1) for number in range(4)]
    client.receive(response(VOTE, 1, 1, VoteResponse(node_endpoints=nodes)))
    with pytest.raises(TooManyEntries, match="VoteResponse has 4 entries"):
        client.next_event()


# Requests.


def test_a_request_takes_the_highest_version_that_both_sides_know() -> None:
    client = opened()
    assert [each[:4] for each in sent(client.send(VoteRequest()) + client.send(FetchRequest()))] == [
        (VOTE, 1, 1, "me"),
        (FETCH, 17, 2, "me"),
    ]


def test_a_request_may_be_given_its_version_without_an_opening() -> None:
    client = ClientSide("me", MAX_FRAME_BYTES, first_correlation_id=7)
    assert [each[:3] for each in sent(client.send(VoteRequest(), 2))] == [(VOTE, 2, 7)]
    found = event(client, response(VOTE, 2, 7, VoteResponse(error_code=3)))
    assert found == Response(0, VoteResponse(error_code=3))


@pytest.mark.parametrize(
    ("request_", "error"),
    [(HeartbeatRequest(), UnsupportedVersion), (vote(epoch=1 << 31), EncodeError)],
    ids=["not served", "not encodable"],
)
def test_a_request_that_can_not_be_sent_changes_nothing(
    request_: Message, error: type[ProtocolError]
) -> None:
    client = opened()
    with pytest.raises(error):
        client.send(request_)
    assert not client.has_in_flight
    assert [each[2] for each in sent(client.send(VoteRequest()))] == [1]


def test_correlation_ids_start_again_after_the_largest() -> None:
    client = ClientSide("me", MAX_FRAME_BYTES, first_correlation_id=CORRELATION_ID_LIMIT - 1)
    data = client.send(VoteRequest(), 1, request_id=1) + client.send(VoteRequest(), 1, request_id=2)
    assert [each[2] for each in sent(data)] == [CORRELATION_ID_LIMIT - 1, 0]
    found = events(
        client,
        response(VOTE, 1, CORRELATION_ID_LIMIT - 1, VoteResponse(error_code=5)),
        response(VOTE, 1, 0, VoteResponse(error_code=6)),
    )
    assert error_codes(found) == [(1, 5), (2, 6)]


# Responses.


def test_pipelined_responses_come_back_with_their_request_ids() -> None:
    client = opened()
    for request_id in (30, 20, 10):
        client.send(VoteRequest(), request_id=request_id)
    assert client.unanswered() == [30, 20, 10]
    assert error_codes(events(client, b"".join(answers(2)))) == [(30, 0), (20, 1)]
    assert client.unanswered() == [10]
    assert error_codes(events(client, answers(3)[2])) == [(10, 2)]
    assert not client.has_in_flight


def test_bytes_may_be_cut_at_every_position() -> None:
    opening, stream = response(API_VERSIONS_KEY, 4, 0, versions()), b"".join(answers(3))
    for at in range(len(opening) + 1):
        client = ClientSide("me", MAX_FRAME_BYTES)
        client.begin()
        assert events(client, opening[:at], opening[at:]) == [Ready()]
    for at in range(len(stream) + 1):
        client = opened()
        for request_id in range(3):
            client.send(VoteRequest(), request_id=request_id)
        assert error_codes(events(client, stream[:at], stream[at:])) == [(0, 0), (1, 1), (2, 2)]


def test_bytes_may_come_one_by_one() -> None:
    client = opened()
    for request_id in range(3):
        client.send(VoteRequest(), request_id=request_id)
    stream = b"".join(answers(3))
    found = events(client, *(stream[at : at + 1] for at in range(len(stream))))
    assert error_codes(found) == [(0, 0), (1, 1), (2, 2)]


def test_responses_may_answer_different_apis_at_different_versions() -> None:
    client = opened()
    client.send(FetchRequest(), request_id=1)
    client.send(VoteRequest(), 0, request_id=2)
    found = events(
        client,
        response(FETCH, 17, 1, FetchResponse(throttle_time_ms=9))
        + response(VOTE, 0, 2, VoteResponse(error_code=4)),
    )
    assert found == [
        Response(1, FetchResponse(throttle_time_ms=9)),
        Response(2, VoteResponse(error_code=4)),
    ]


# Frames that aren't the response that is due.


def test_responses_out_of_order_are_an_error_that_names_the_ids() -> None:
    client = opened()
    for request_id in range(3):
        client.send(VoteRequest(), request_id=request_id)
    first, _, third = answers(3)
    assert error_codes(events(client, first)) == [(0, 0)]
    client.receive(third)
    with pytest.raises(
        UnexpectedResponse, match="correlation id 3 arrived, expected 2: the responses are out of order"
    ):
        client.next_event()
    assert client.unanswered() == [1, 2]
    assert client.due_api_key == VOTE


def test_an_unknown_correlation_id_is_an_error_that_names_it() -> None:
    client = opened()
    client.send(VoteRequest())
    client.receive(response(VOTE, 1, 99, VoteResponse()))
    with pytest.raises(
        UnexpectedResponse, match="correlation id 99 arrived, expected 1: it is not in flight"
    ):
        client.next_event()


def test_a_second_response_to_one_request_is_an_error() -> None:
    client = opened()
    client.send(VoteRequest())
    (answer,) = answers(1)
    client.receive(answer * 2)
    assert isinstance(client.next_event(), Response)
    with pytest.raises(UnexpectedResponse, match=r"a frame of 9 bytes arrived, but no request is in flight"):
        client.next_event()
    assert client.due_api_key is None


@pytest.mark.parametrize("size", range(4))
def test_a_frame_without_a_correlation_id_is_an_error(size: int) -> None:
    client = opened()
    client.send(VoteRequest())
    client.receive(frame(bytes(size)))
    with pytest.raises(UnexpectedResponse, match=f"a frame of {size} bytes is too short for a response"):
        client.next_event()


@pytest.mark.parametrize("size", [MAX_FRAME_BYTES + 1, -1, 2**31 - 1])
def test_a_frame_that_is_too_large_is_an_error_before_it_has_come(size: int) -> None:
    client = opened()
    client.send(VoteRequest())
    client.receive(size.to_bytes(4, signed=True))
    with pytest.raises(FrameTooLarge, match=f"frame of {size} bytes"):
        client.next_event()


def test_a_body_that_ends_early_is_an_error_and_the_request_stays_unanswered() -> None:
    client = opened()
    client.send(VoteRequest(), request_id=8)
    (answer,) = answers(1)
    client.receive(frame(answer[4:-1]))
    with pytest.raises(DecodeError, match="VoteResponse"):
        client.next_event()
    assert client.unanswered() == [8]


def test_responses_before_the_wrong_one_are_delivered() -> None:
    client = opened()
    for request_id in range(2):
        client.send(VoteRequest(), request_id=request_id)
    first, _ = answers(2)
    client.receive(first + frame(b"\xff" * 8))
    assert error_codes([client.next_event() or ToSend(b"")]) == [(0, 0)]
    with pytest.raises(UnexpectedResponse, match="correlation id -1 arrived, expected 2"):
        client.next_event()
