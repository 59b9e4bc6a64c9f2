"""Running controllers that speak KIP-853 as it was drafted with each other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraft_wire.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.drafted.dialect import DRAFTED
from kraft_wire.raft.membership.kip_853.update_voter_request import UpdateVoterRequest
from kraft_wire.storage.folder import read_meta_properties
from kraft_wire.wire.client_side import ClientSide, Ready, Response, ToSend
from kraft_wire.wire.framing import frame
from kraft_wire.wire.headers import encode_request
from tests.raft.election.vote_requests import vote
from tests.raft.lone_node import fetch
from tests.support.controller_process import CLUSTER_ID, COMMAND, ControllerProcess, formatted
from tests.support.live_quorum import Controllers, three_controllers
from tests.support.waiting import wait_until
from tests.support.wire_client import MAX_FRAME_BYTES, ConnectionClosed, FrameClient, WireClient


class DraftClient(FrameClient):
    """A connection that speaks the draft if the server advertises it."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        super().__init__(int(port), host=host)
        self._wire = ClientSide("draft", MAX_FRAME_BYTES, dialect=DRAFTED)
        self.send_bytes(self._wire.begin())
        while not isinstance(event := self._next_event(), Ready):
            assert isinstance(event, ToSend)
            self.send_bytes(event.data)

    def call(self, request: Message) -> Message:
        """Send a request and return its response."""
        self.send_bytes(self._wire.send(request))
        event = self._next_event()
        assert isinstance(event, Response)
        return event.message

    def _next_event(self) -> object:
        while (event := self._wire.next_event()) is None:
            self._wire.receive(self._receive_bytes())
        return event


def _served(address: str) -> dict[int, tuple[int, int]]:
    host, port = address.split(":")
    with WireClient(int(port), host=host) as client:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        response = client.call(request, 3, ApiVersionsResponse)
    return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}


def _voters(controllers: Controllers) -> dict[int, Uuid]:
    return {voter.id: voter.directory_id for voter in controllers.described().voters}


def _directory_id(controllers: Controllers, id: int) -> Uuid:
    directory_id = read_meta_properties(controllers.folder(id)).directory_id
    assert directory_id is not None
    return directory_id


def _quorum_command(controllers: Controllers, *words: str) -> None:
    bootstrap = ",".join(controllers.addresses.values())
    command = [*COMMAND, "quorum", *words, "--bootstrap-controller", bootstrap, "--yes"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_voters_tell_each_other_their_endpoints_by_update_voter_77(tmp_path: Path) -> None:
    """They were formatted with one of their two listeners."""
    with three_controllers(tmp_path, drafted=True) as controllers:
        controllers.write(range(3))
        both = ["CONTROLLER", "DRAFT"]

        def are_known() -> bool:
            endpoints = controllers.described().endpoints.values()
            return [[each.listener for each in of_voter] for of_voter in endpoints] == [both] * 3

        wait_until(are_known, "the voters' endpoints to be known")


def test_a_drafted_listener_serves_the_drafts_versions_and_the_other_kafkas(tmp_path: Path) -> None:
    with three_controllers(tmp_path, drafted=True) as controllers:
        leader = controllers.leader()
        drafted, released = (
            _served(addresses[leader]) for addresses in (controllers.raft_addresses, controllers.addresses)
        )
        changed = {key for key in drafted.keys() | released.keys() if drafted.get(key) != released.get(key)}
        assert {key: drafted.get(key) for key in (*changed, 59)} == {
            1: (4, 14),
            52: (0, 1),
            59: (0, 1),
            77: (0, 0),
            82: None,
        }
        _assert_answers(controllers, leader)


def _assert_answers(controllers: Controllers, leader: int) -> None:
    """Assert that the leader answers each drafted API as the draft says."""
    wrong = vote(5, candidate=9, voter=leader, voter_directory=Uuid(b"\x09" * 16), cluster_id=CLUSTER_ID)
    with DraftClient(controllers.raft_addresses[leader]) as client:
        answer = client.call(wrong)
        assert isinstance(answer, VoteResponse)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
        answer = client.call(fetch(0, 0, epoch=0, replica=9, max_wait_ms=0, cluster_id=CLUSTER_ID))
        assert isinstance(answer, FetchResponse)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert [(node.node_id, f"{node.host}:{node.port}") for node in answer.node_endpoints] == [
            (leader, controllers.raft_addresses[leader])
        ]
        answer = client.call(UpdateRaftVoterRequest(cluster_id=CLUSTER_ID, current_leader_epoch=0))
        assert isinstance(answer, UpdateRaftVoterResponse)
        assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert answer.current_leader.leader_id == leader


def test_a_voter_whose_disk_was_replaced_votes_again_once_its_new_uuid_is_a_voter(tmp_path: Path) -> None:
    with three_controllers(tmp_path, drafted=True) as controllers:
        controllers.write(range(3))
        lost = next(id for id in controllers.addresses if id != controllers.leader())
        old = _directory_id(controllers, lost)
        controllers.replace_disk(lost)
        new = _directory_id(controllers, lost)
        assert new != old
        wait_until(
            lambda: lost in {each.id for each in controllers.described().observers},
            "the new disk to be fetched",
        )
        asked = vote(1_000, candidate=9, voter=lost, voter_directory=old, cluster_id=CLUSTER_ID)
        with DraftClient(controllers.raft_addresses[lost]) as client:
            answer = client.call(asked)
        assert isinstance(answer, VoteResponse)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
        _quorum_command(controllers, "remove", str(lost), "--directory-id", str(old))
        _quorum_command(controllers, "add", str(controllers.file(lost)))
        assert _voters(controllers)[lost] == new
        other = next(id for id in controllers.addresses if id not in (lost, controllers.leader()))
        controllers.kill(other)
        controllers.write(range(3, 6))


@pytest.mark.parametrize("key", [77, 82])
def test_update_voter_is_served_under_one_key_on_each_listener(tmp_path: Path, key: int) -> None:
    """Without the configuration key, 77 isn't served anywhere."""
    with ControllerProcess(formatted(tmp_path)) as process, process.client() as client:
        request: Message = UpdateVoterRequest() if key == 77 else UpdateRaftVoterRequest()
        client.send_bytes(frame(encode_request(key, 0, 1, "test", request)))
        if key == 82:
            assert client.receive_frame()
        else:
            with pytest.raises(ConnectionClosed):
                client.receive_frame()
