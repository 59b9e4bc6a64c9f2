"""A listener's dialect: the node sees its own messages, the wire has those of the dialect."""

from __future__ import annotations

import pytest

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.protocol.errors import UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraft_wire.protocol.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kraft_wire.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraft_wire.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraft_wire.protocol.messages.vote_request import PartitionData as VotePartition
from kraft_wire.protocol.messages.vote_request import TopicData, VoteRequest
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.drafted.dialect import DRAFTED
from kraft_wire.server.network.shared import Limits, Shared
from kraft_wire.wire.client_side import ClientSide, Ready, Response
from kraft_wire.wire.framing import frame
from kraft_wire.wire.headers import decode_response, encode_request
from kraft_wire.wire.served_versions import QUESTION
from kraft_wire.wire.server_side import Request, ServerSide, Slot, UnservedApi, answer_alike
from kraft_wire.wire.shared_bytes import SHARED_FROM

MAX_FRAME_BYTES = 1 << 26
DIRECTORY = Uuid(b"\x07" * 16)
FETCH = FetchRequest(
    replica_state=ReplicaState(replica_id=5),
    topics=[FetchTopic(topic_id=DIRECTORY, partitions=[FetchPartition(replica_directory_id=DIRECTORY)])],
)
LEADER = NodeEndpoint(node_id=3, host="host3", port=9093)


class Wire:
    """Both sides of a connection to a listener, with its dialect or without one. Bytes go at once."""

    def __init__(self, *, drafted: bool = True, client_knows: bool = True) -> None:
        shared = Shared.of(Limits(MAX_FRAME_BYTES, -1), CONTROLLER_APIS)
        if drafted:
            shared = shared.speaking(DRAFTED)
        self.server = ServerSide(shared.find_api, MAX_FRAME_BYTES, lambda: None, self._failed)
        self.client = ClientSide("node 5", MAX_FRAME_BYTES, dialect=DRAFTED if client_knows else None)
        self._open()

    def _failed(self, slot: Slot, error: Exception) -> None:
        raise AssertionError(f"no response: {error}")

    def _open(self) -> None:
        question = self.arrived(self.client.begin())
        served = [ApiVersion(api.key, api.min_version, api.max_version) for api in CONTROLLER_APIS]
        assert isinstance(self.answer(question.slot, ApiVersionsResponse(api_keys=served)), Ready)

    def send(self, request: Message) -> Request:
        return self.arrived(self.client.send(request))

    def arrived(self, data: bytes) -> Request:
        self.server.receive(data)
        whole = self.server.next_frame()
        assert whole is not None
        return self.server.take(whole)

    def answer(self, slot: Slot, response: Message) -> object:
        slot.answer(response)
        return self.received()

    def received(self) -> object:
        while data := self.server.take_ready():
            self.client.receive(data)
            self.server.sent(len(data))
        return self.client.next_event()


def fetch_response(records: bytes) -> FetchResponse:
    leader = LeaderIdAndEpoch(leader_id=LEADER.node_id, leader_epoch=4)
    partition = PartitionData(current_leader=leader, records=records)
    return FetchResponse(
        responses=[FetchableTopicResponse(topic_id=DIRECTORY, partitions=[partition])],
        node_endpoints=[LEADER],
    )


def test_a_request_arrives_as_kafkas_with_the_version_that_has_its_fields() -> None:
    request = Wire().send(FETCH)
    assert (request.api_key, request.version) == (1, 17)
    assert (request.slot.api_key, request.slot.version) == (1, 14)
    assert request.message == FETCH


def test_a_response_arrives_as_kafkas() -> None:
    wire = Wire()
    event = wire.answer(wire.send(FETCH).slot, fetch_response(b"records"))
    assert isinstance(event, Response)
    assert event.message == fetch_response(b"records")


def test_an_api_may_have_another_key_on_the_wire() -> None:
    wire = Wire()
    request = wire.send(UpdateRaftVoterRequest(voter_id=5))
    assert (request.api_key, request.slot.api_key) == (82, 77)
    assert request.message == UpdateRaftVoterRequest(voter_id=5)
    event = wire.answer(request.slot, UpdateRaftVoterResponse(error_code=6))
    assert isinstance(event, Response)
    assert event.message == UpdateRaftVoterResponse(error_code=6)


def test_an_api_with_another_key_is_not_served_under_its_own() -> None:
    wire = Wire(client_knows=False)
    data = wire.client.send(UpdateRaftVoterRequest(), 0)
    with pytest.raises(UnservedApi, match="api key 82"):
        wire.arrived(data)


def test_a_client_that_knows_the_dialect_speaks_kafkas_to_others() -> None:
    request = Wire(drafted=False).send(FETCH)
    assert (request.version, request.slot.version) == (18, 18)


def test_what_the_dialect_can_not_express_is_unsupported_and_the_connection_goes_on() -> None:
    wire = Wire()
    pre_vote = VoteRequest(topics=[TopicData(partitions=[VotePartition(pre_vote=True)])])
    with pytest.raises(UnsupportedVersion):
        wire.client.send(pre_vote)
    assert wire.send(VoteRequest()).version == 1


def test_those_who_ask_alike_get_one_response_in_the_form_of_each() -> None:
    drafted, released = [Wire(), Wire()], [Wire(drafted=False), Wire(drafted=False)]
    records = b"r" * SHARED_FROM
    answer_alike([wire.send(FETCH).slot for wire in (*drafted, *released)], fetch_response(records))
    shared = {id(part) for wire in (*drafted, *released) for part in wire.server.shared}
    assert len(shared) == 1, "the records are in memory once"
    for wire in (*drafted, *released):
        event = wire.received()
        assert isinstance(event, Response)
        assert event.message == fetch_response(records)


def test_a_request_with_too_many_entries_is_refused_in_its_form() -> None:
    wire = Wire()
    wire.server.receive(wire.client.send(FetchRequest(topics=[FetchTopic() for _ in range(20_001)])))
    whole = wire.server.next_frame()
    assert whole is not None
    request = wire.server.take(whole)
    assert request.refused is not None
    assert isinstance(request.message, FetchRequest)


def test_the_answer_to_a_version_that_nobody_knows_has_the_versions_of_the_dialect() -> None:
    wire = Wire()
    raw = encode_request(ApiVersionsRequest.API_KEY, ApiVersionsRequest.MAX_VERSION, 7, "new", QUESTION)
    request = wire.arrived(frame(raw[:2] + (99).to_bytes(2) + raw[4:]))
    request.slot.answer(ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(52, 0, 2)]))
    _, response = decode_response(ApiVersionsRequest.API_KEY, 0, wire.server.take_ready()[4:])
    assert isinstance(response, ApiVersionsResponse)
    assert response.api_keys == [ApiVersion(52, 0, 1)]
