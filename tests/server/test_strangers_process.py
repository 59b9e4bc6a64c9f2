"""Strangers at the door of running controllers, on PLAINTEXT: forged requests of raft, and a fake leader."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import describe_quorum_request
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.protocol.own_messages.voter_entry_request import VoterEntryRequest
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import ReplicaKey
from tests.support import forged_requests
from tests.support.controller_process import Client, ControllerProcess, formatted
from tests.support.forged_requests import ANYBODY
from tests.support.impostor import impostor
from tests.support.live_quorum import Controllers, three_controllers

TOPIC = "__cluster_metadata"
ABSURD_EPOCH = 2_146_435_071
STRANGER = 77
AT_ONCE = 50


def _vote(epoch: int, candidate_id: int, *, pre_vote: bool = False, voter_id: int = -1) -> VoteRequest:
    """Return a Vote of a stranger with a very long log, or of one with a voter's id."""
    candidate = ReplicaKey(candidate_id, Uuid(b"\x07" * 16))
    voter = ReplicaKey(voter_id, Uuid(b"\x09" * 16)) if voter_id >= 0 else ANYBODY
    return forged_requests.vote(epoch, candidate, (epoch - 1, 2**62), voter=voter, pre_vote=pre_vote)


@contextmanager
def fake_leader() -> Iterator[tuple[int, list[str]]]:
    """Listen like a leader, and note who connects."""
    visits: list[str] = []
    server = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, address = server.accept()
                visits.append(f"{address[0]}:{address[1]}")
                connection.close()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield server.getsockname()[1], visits
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


def _leader_and_epoch(client: Client) -> tuple[int, int]:
    """Return the leader and the epoch that a controller answers a Vote of the first epoch with."""
    response = client.call(_vote(1, STRANGER), 2, VoteResponse)
    partition = response.topics[0].partitions[0]
    return partition.leader_id, partition.leader_epoch


def _clients(controllers: Controllers) -> dict[int, Client]:
    addresses = {id: address.split(":") for id, address in controllers.addresses.items()}
    return {id: Client(host, int(port)) for id, (host, port) in addresses.items()}


@contextmanager
def quorum(folder: Path) -> Iterator[tuple[Controllers, dict[int, Client], int]]:
    """Run three controllers that all know their leader; give a client of each, and the epoch."""
    with three_controllers(folder) as controllers:
        controllers.write(range(3))
        leader = controllers.leader()
        for id, process in controllers.processes.items():
            if id != leader:
                process.wait_for("role changed")
        clients = _clients(controllers)
        try:
            yield controllers, clients, _leader_and_epoch(clients[leader])[1]
        finally:
            for client in clients.values():
                client.close()


def _forge(clients: dict[int, Client], requests: Sequence[tuple[Message, int]], times: int = 1) -> None:
    """Send the same requests to every controller again and again, many at once, and take the answers."""
    for client in clients.values():
        for begun in range(0, times, AT_ONCE):
            many = [*requests] * min(AT_ONCE, times - begun)
            for request, version in many:
                client.send(request, version)
            for _ in many:
                client.receive(Message)


@pytest.mark.parametrize("candidate_id", [STRANGER, 2])
def test_votes_and_pre_votes_of_strangers_change_neither_leader_nor_epoch(
    tmp_path: Path, candidate_id: int
) -> None:
    with quorum(tmp_path) as (controllers, clients, epoch):
        leader = controllers.leader()
        requests = [
            (_vote(epoch + 1, candidate_id), 2),
            (_vote(epoch + 1, candidate_id, pre_vote=True), 2),
            (_vote(epoch + 1, candidate_id, voter_id=1), 2),
            (_vote(ABSURD_EPOCH, candidate_id), 2),
        ]
        _forge(clients, requests, times=500)
        controllers.write(range(3, 6))
        assert controllers.leader() == leader
        assert {_leader_and_epoch(client) for client in clients.values()} == {(leader, epoch)}
        controllers.processes[leader].wait_for("higher epoch refused")


def test_a_forged_announcement_redirects_nobody(tmp_path: Path) -> None:
    with quorum(tmp_path) as (controllers, clients, epoch), fake_leader() as (port, visits):
        leader = controllers.leader()
        requests: list[tuple[Message, int]] = [
            (forged_requests.begin(epoch + 1, claimed, [port]), 1) for claimed in (1, 2, 3, STRANGER)
        ]
        _forge(clients, requests, times=50)
        controllers.write(range(3, 6))
        assert not visits
        assert {_leader_and_epoch(client) for client in clients.values()} == {(leader, epoch)}


def test_a_voter_whose_place_somebody_takes_stays_a_voter(tmp_path: Path) -> None:
    """UpdateRaftVoter sends the leader to a program that says that this voter leads. All are told so, too."""
    with quorum(tmp_path) as (controllers, clients, epoch):
        controllers.all_fetch()
        leader = controllers.leader()
        id = min(set(clients) - {leader})
        voter = ReplicaKey(id, Uuid(bytes([id] * 16)))
        asked = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        versions = clients[leader].call(asked, 4, ApiVersionsResponse)
        with impostor(voter.id, epoch + 1, versions) as running:
            for number in range(40):
                moved = forged_requests.update(epoch, voter, running.port)
                _forge({leader: clients[leader]}, [(moved, 0)], times=100)
                claim = forged_requests.begin(epoch + 1, voter.id, [running.port])
                last = (epoch, 2**40)
                vote = forged_requests.vote(epoch + 1, voter, last, pre_vote=number % 2 == 0)
                _forge(clients, [(claim, 1)])
                _forge({leader: clients[leader]}, [(vote, 2)])
            assert set(running.asked) <= {ApiVersionsRequest, BeginQuorumEpochRequest, VoterEntryRequest}
        controllers.write(range(3, 6))
        assert {_leader_and_epoch(client) for client in clients.values()} == {(leader, epoch)}
        described = controllers.described()
        assert [f"{each.host}:{each.port}" for each in described.endpoints[voter.id]] == [
            controllers.addresses[voter.id]
        ]
        controllers.processes[leader].wait_for("change of a voter's entry refused")
        for id in clients:
            controllers.kill(id)
            controllers.start_one(id)
            controllers.write(range(6, 9))


def test_a_forged_resignation_ends_no_leader(tmp_path: Path) -> None:
    with quorum(tmp_path) as (controllers, clients, epoch):
        leader = controllers.leader()
        requests: list[tuple[Message, int]] = [
            (forged_requests.end(epoch, leader, [ReplicaKey(successor)]), 1)
            for successor in (1, 2, 3)
            if successor != leader
        ]
        _forge(clients, requests, times=50)
        controllers.write(range(3, 6))
        assert {_leader_and_epoch(client) for client in clients.values()} == {(leader, epoch)}


def test_a_lone_controller_leads_on_after_thousands_of_votes_and_restarts(tmp_path: Path) -> None:
    file = formatted(tmp_path, {})
    with ControllerProcess(file) as process:
        process.wait_for("active controller")
        with process.client() as client:
            _, epoch = _leader_and_epoch(client)
            for _ in range(2_100 // AT_ONCE):
                for number in range(AT_ONCE):
                    client.send(_vote(epoch + (1 << 16), candidate_id=number % 9), 2)
                for _ in range(AT_ONCE):
                    answer = client.receive(VoteResponse).topics[0].partitions[0]
                    assert ErrorCode.of(answer.error_code) is ErrorCode.UNKNOWN_LEADER_EPOCH
            assert _leader_and_epoch(client)[1] == epoch
        process.terminate()
    with ControllerProcess(file) as process:
        process.wait_for("active controller")
        with process.client() as client:
            topic = describe_quorum_request.TopicData(
                topic_name=TOPIC, partitions=[describe_quorum_request.PartitionData(0)]
            )
            asked = describe_quorum_request.DescribeQuorumRequest(topics=[topic])
            described = client.call(asked, 2, DescribeQuorumResponse).topics[0].partitions[0]
            assert described.leader_epoch == epoch + 1
