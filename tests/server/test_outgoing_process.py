"""Connections of running controllers to addresses that clients name, with few file descriptors."""

from __future__ import annotations

from pathlib import Path

import trio

from kraft_wire.client.voter_changes import add_voter
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import begin_quorum_epoch_request as begin
from kraft_wire.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import Endpoint, ReplicaKey
from kraft_wire.server.network.peers import MOST_STRANGERS
from tests.raft.election.vote_requests import vote
from tests.server.network.scripted_peer import ScriptedPeer, listening
from tests.support.controller_process import CLUSTER_ID, NODE_ID, Client, ControllerProcess, formatted
from tests.support.live_quorum import TRIMMED, write

STRANGER = 77
EPOCH = 9
FEW_FILES = ["bash", "-c", 'ulimit -n 200; exec "$@"', "bash"]
DIRECTORY = Uuid(b"\x07" * 16)


def _client(process: ControllerProcess) -> Client:
    port = process.wait_for("listening")["address"].split(":")[1]
    return Client("127.0.0.1", int(port))


def test_newcomers_at_many_addresses_leave_files_for_the_log(tmp_path: Path) -> None:
    """The controller listens on all addresses of this machine, so that each newcomer is itself."""
    file = formatted(
        tmp_path,
        {
            **TRIMMED,
            "listeners": "CONTROLLER://0.0.0.0:0",
            "advertised.listeners": "CONTROLLER://127.0.0.1:0",
        },
    )
    with ControllerProcess(file, FEW_FILES) as process:
        process.wait_for("active controller")
        limits = process.wait_for("limits")
        bootstrap_server = 2
        assert limits["max.connections"] == (200 - bootstrap_server - MOST_STRANGERS) // 2
        with _client(process) as client:
            port = process.wait_for("listening")["address"].split(":")[1]
            before = process.open_files
            for number in range(1, 251):
                endpoint = Endpoint("CONTROLLER", f"127.0.1.{number}", int(port))
                request = add_voter(CLUSTER_ID, ReplicaKey(number, DIRECTORY), [endpoint], 2000)
                answer = client.call(request, 1, AddRaftVoterResponse)
                assert ErrorCode.of(answer.error_code) is ErrorCode.REQUEST_TIMED_OUT
                assert "has not caught up" in (answer.error_message or ""), answer
            assert process.open_files < before + 40
            write(client, range(100))
        assert process.terminate() == 0


def _begin(port: int) -> BeginQuorumEpochRequest:
    asked = begin.PartitionData(leader_id=STRANGER, leader_epoch=EPOCH)
    return BeginQuorumEpochRequest(
        cluster_id=None,
        voter_id=-1,
        topics=[begin.TopicData(topic_name="__cluster_metadata", partitions=[asked])],
        leader_endpoints=[begin.LeaderEndpoint(name="CONTROLLER", host="127.0.0.1", port=port)],
    )


async def _claim(client: Client, stranger: ScriptedPeer) -> None:
    """Say that a stranger stands for election and leads, again and again: a controller that was long without
    a leader gives it its vote, and asks it."""
    candidate = vote(EPOCH, candidate=STRANGER, directory=DIRECTORY, last=(EPOCH - 1, 1 << 40), voter=-1)
    while True:
        client.call(candidate, 2, VoteResponse)
        client.call(_begin(stranger.peer.port), 1, BeginQuorumEpochResponse)
        await trio.sleep(0.1)


async def test_the_connection_to_a_stranger_that_is_said_to_lead_ends_with_its_answer(tmp_path: Path) -> None:
    voters = ",".join(f"{id}@127.0.0.1:{port}:{DIRECTORY}" for id, port in ((NODE_ID, 9), (NODE_ID + 1, 10)))
    file = formatted(tmp_path, voters=("--initial-controllers", voters))
    with ControllerProcess(file) as process, _client(process) as client:
        async with listening() as stranger:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_claim, client, stranger)
                connection = await stranger.connected()
                nursery.cancel_scope.cancel()
            asked = await connection.receive()
            assert isinstance(asked.request, FetchRequest)
            await connection.answer(asked, FetchResponse())
            assert await connection.is_closed_by_peer()
