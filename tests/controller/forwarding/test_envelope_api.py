"""Envelope: a forwarded request is served as the client sent it, and its answer is wrapped."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.controller.forwarding import envelope
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import create_topics_response as create_topics
from kraft_wire.protocol.messages import describe_quorum_response as quorum
from kraft_wire.protocol.messages import elect_leaders_response as elect_leaders
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kraft_wire.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.messages.envelope_response import EnvelopeResponse
from kraft_wire.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraft_wire.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraft_wire.security.principal import Principal
from kraft_wire.wire.entry_count import MAX_REQUEST_ENTRIES
from kraft_wire.wire.headers import decode_response, encode_request, encode_response
from kraft_wire.wire.large_responses import LARGE, PIECE, encode_in_pieces, estimated_bytes, is_large
from tests.controller.controller_harness import failure

CREATE_TOPICS = 19
ELECT_LEADERS = 43
BROKER_HEARTBEAT = 63
DESCRIBE_QUORUM = 55
ADD_VOTER = 80
REMOVE_VOTER = 81
ALICE = Principal("User", "alice", token_authenticated=True)


def sealed(
    api_key: int = CREATE_TOPICS,
    version: int = 7,
    body: Message | None = None,
    principal: bytes | None = None,
    address: bytes = bytes([10, 0, 0, 7]),
) -> EnvelopeRequest:
    """Return an envelope as a broker sends it, encoded and decoded."""
    inner = body or CreateTopicsRequest(topics=[CreatableTopic(name="t")])
    data = encode_request(api_key, version, 1234, "the-client", inner)
    who = envelope.encode_principal(ALICE) if principal is None else principal
    request = EnvelopeRequest(request_data=data, request_principal=who, client_host_address=address)
    return EnvelopeRequest.decode(request.encode(0), 0)


def refusal(request: EnvelopeRequest) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        envelope.unwrap(request, CONTROLLER_APIS)
    code = refused.value.code
    response = failure(EnvelopeResponse, request, 0, code, refused.value.message)
    assert EnvelopeResponse.decode(response.encode(0), 0) == EnvelopeResponse(None, int(code))
    return code


def test_the_inner_request_comes_out_with_its_client() -> None:
    forwarded = envelope.unwrap(sealed(), CONTROLLER_APIS)
    assert (forwarded.api_key, forwarded.version) == (CREATE_TOPICS, 7)
    assert (forwarded.correlation_id, forwarded.client_id) == (1234, "the-client")
    assert forwarded.principal == ALICE
    assert forwarded.client_address == "10.0.0.7"
    assert isinstance(forwarded.request, CreateTopicsRequest)
    assert [topic.name for topic in forwarded.request.topics] == ["t"]


def test_an_ipv6_address() -> None:
    assert envelope.unwrap(sealed(address=bytes(15) + b"\x01"), CONTROLLER_APIS).client_address == "::1"


def test_the_principal_is_two_bytes_of_version_and_flexible_data() -> None:
    """DefaultKafkaPrincipalBuilder: compact strings, a boolean, no tagged fields."""
    assert envelope.encode_principal(Principal("User", "bob")) == b"\x00\x00" + b"\x05User\x04bob\x00\x00"


@pytest.mark.parametrize("principal", [b"", b"\x00", b"\x00\x07junk", b"\x00\x00\x09short"])
def test_an_unreadable_principal(principal: bytes) -> None:
    assert refusal(sealed(principal=principal)) is ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE


def test_no_principal() -> None:
    request = sealed()
    request.request_principal = None
    assert refusal(request) is ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE


@pytest.mark.parametrize("address", [b"", b"\x7f\x00\x01", bytes(17)])
def test_an_address_of_another_length(address: bytes) -> None:
    assert refusal(sealed(address=address)) is ErrorCode.INVALID_REQUEST


def test_an_api_that_is_not_forwardable() -> None:
    assert refusal(sealed(BROKER_HEARTBEAT, 0, BrokerHeartbeatRequest())) is ErrorCode.INVALID_REQUEST


def _with_header(api_key: int, version: int) -> bytes:
    return api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(6)


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x00\x13\x00", id="half a header"),
        pytest.param(_with_header(CREATE_TOPICS, 99), id="a version from the future"),
        pytest.param(_with_header(999, 0), id="an unknown API"),
        pytest.param(sealed().request_data[:-5], id="a body cut short"),
    ],
)
def test_an_unreadable_inner_request_makes_the_broker_drop_its_client(inner: bytes) -> None:
    request = sealed()
    request.request_data = inner
    assert refusal(request) is ErrorCode.UNSUPPORTED_VERSION


def test_the_response_goes_back_under_the_clients_correlation_id() -> None:
    response = create_topics.CreateTopicsResponse(topics=[create_topics.CreatableTopicResult(name="t")])
    outer = envelope.wrap(envelope.unwrap(sealed(), CONTROLLER_APIS), response)
    outer = EnvelopeResponse.decode(outer.encode(0), 0)
    assert outer.error_code == 0
    assert outer.response_data is not None
    correlation_id, inner = decode_response(CREATE_TOPICS, 7, outer.response_data)
    assert correlation_id == 1234
    assert isinstance(inner, create_topics.CreateTopicsResponse)
    assert [topic.name for topic in inner.topics] == ["t"]


def create_topics_answer(code: ErrorCode) -> Message:
    result = create_topics.CreatableTopicResult(name="t", error_code=int(code))
    return create_topics.CreateTopicsResponse(topics=[result])


def elect_leaders_answer(code: ErrorCode) -> Message:
    partition = elect_leaders.PartitionResult(partition_id=0, error_code=int(code))
    topic = elect_leaders.ReplicaElectionResult(topic="t", partition_result=[partition])
    return elect_leaders.ElectLeadersResponse(replica_election_results=[topic])


def quorum_answer(code: ErrorCode) -> Message:
    partition = quorum.PartitionData(partition_index=0, error_code=int(code))
    topic = quorum.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    return quorum.DescribeQuorumResponse(topics=[topic])


def add_answer(code: ErrorCode) -> Message:
    return AddRaftVoterResponse(error_code=int(code))


def remove_answer(code: ErrorCode) -> Message:
    return RemoveRaftVoterResponse(error_code=int(code))


@pytest.mark.parametrize(
    ("request_", "answer", "moved"),
    [
        (sealed(), create_topics_answer, ErrorCode.NOT_CONTROLLER),
        (sealed(ELECT_LEADERS, 2, ElectLeadersRequest()), elect_leaders_answer, ErrorCode.NOT_CONTROLLER),
        (
            sealed(DESCRIBE_QUORUM, 2, DescribeQuorumRequest()),
            quorum_answer,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ),
        (sealed(ADD_VOTER, 1, AddRaftVoterRequest()), add_answer, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (sealed(REMOVE_VOTER, 0, RemoveRaftVoterRequest()), remove_answer, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_a_client_never_sees_that_the_controller_moved(
    request_: EnvelopeRequest, answer: Callable[[ErrorCode], Message], moved: ErrorCode
) -> None:
    """The broker asks another controller if the envelope itself has the error (KIP-590)."""
    forwarded = envelope.unwrap(request_, CONTROLLER_APIS)
    assert envelope.wrap(forwarded, answer(moved)) == EnvelopeResponse(None, 41)
    other = envelope.wrap(forwarded, answer(ErrorCode.INVALID_REQUEST))
    assert other.error_code == 0
    assert other.response_data is not None


def test_not_controller_at_the_top_counts_too() -> None:
    forwarded = envelope.unwrap(sealed(ELECT_LEADERS, 2, ElectLeadersRequest()), CONTROLLER_APIS)
    response = elect_leaders.ElectLeadersResponse(error_code=41)
    assert envelope.wrap(forwarded, response).error_code == 41


def test_a_large_response_is_encoded_in_pieces() -> None:
    forwarded = envelope.unwrap(sealed(ELECT_LEADERS, 2, ElectLeadersRequest()), CONTROLLER_APIS)
    results = [
        elect_leaders.ReplicaElectionResult(
            f"topic-{number}", [elect_leaders.PartitionResult(partition_id=each) for each in range(3)]
        )
        for number in range(LARGE)
    ]
    response = elect_leaders.ElectLeadersResponse(replica_election_results=results)
    wrapped = envelope.wrap(forwarded, response)
    assert is_large(wrapped)
    data = encode_response(forwarded.api_key, forwarded.version, forwarded.correlation_id, response)
    expected = EnvelopeResponse(response_data=data).encode(0)
    pieces = list(encode_in_pieces(wrapped, 0))
    assert len(pieces) > 3 * LARGE // PIECE
    assert b"".join(pieces) == wrapped.encode(0) == expected
    assert abs(estimated_bytes(wrapped) - estimated_bytes(response)) < 1


def test_not_leader_inside_another_api_is_content() -> None:
    forwarded = envelope.unwrap(sealed(), CONTROLLER_APIS)
    wrapped = envelope.wrap(forwarded, create_topics_answer(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert wrapped.error_code == 0


def test_an_inner_request_with_too_many_entries_is_refused() -> None:
    topics = [CreatableTopic(name=str(number)) for number in range(MAX_REQUEST_ENTRIES + 1)]
    inner = envelope.unwrap(sealed(body=CreateTopicsRequest(topics=topics)), CONTROLLER_APIS)
    assert inner.refused is not None and inner.refused.code is ErrorCode.POLICY_VIOLATION
    assert isinstance(inner.request, CreateTopicsRequest)
    assert [topic.name for topic in inner.request.topics[:2]] == ["0", "1"], "the answer can name them"
    assert (
        envelope.unwrap(sealed(body=CreateTopicsRequest(topics=topics[1:])), CONTROLLER_APIS).refused is None
    )


def test_an_inner_request_about_a_node_is_small() -> None:
    listeners = [Listener(host="h" * 32_000)] * 40
    assert (
        refusal(sealed(ADD_VOTER, 1, AddRaftVoterRequest(listeners=listeners)))
        is ErrorCode.UNSUPPORTED_VERSION
    )
