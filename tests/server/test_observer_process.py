"""A controller that was formatted without initial controllers: it observes the quorum that it finds."""

from __future__ import annotations

import time
from pathlib import Path

from kraft_wire.protocol.messages.describe_quorum_response import DescribeQuorumResponse, PartitionData
from kraft_wire.protocol.messages.metadata_request import MetadataRequest
from kraft_wire.protocol.messages.metadata_response import MetadataResponse
from tests.server.network.outgoing import describe_quorum
from tests.support.controller_process import GIVE_UP_S, NODE_ID, Client, ControllerProcess, formatted

OBSERVER_ID = NODE_ID + 1
QUIET = {"metadata.max.idle.interval.ms": "0"}


def _described(client: Client) -> PartitionData:
    response = client.call(describe_quorum(), 2, DescribeQuorumResponse)
    return response.topics[0].partitions[0]


def _wait_until_it_has_all(client: Client) -> int:
    """The high watermark, once the observer's log reaches as far."""
    deadline = time.monotonic() + GIVE_UP_S
    while True:
        quorum = _described(client)
        ends = {observer.replica_id: observer.log_end_offset for observer in quorum.observers}
        if ends.get(OBSERVER_ID) == quorum.high_watermark:
            return quorum.high_watermark
        assert time.monotonic() < deadline, quorum
        time.sleep(0.01)


def _wait_until_it_names_the_replicas(observer: ControllerProcess) -> None:
    """An observer learns the voters from the log, without a change of its role."""
    host, port = observer.wait_for("listening")["address"].split(":")
    deadline = time.monotonic() + GIVE_UP_S
    with Client(host, int(port)) as client:
        while True:
            response = client.call(MetadataRequest(topics=None), 9, MetadataResponse)
            (partition,) = response.topics[0].partitions
            if partition.replica_nodes == (NODE_ID,):
                return
            assert time.monotonic() < deadline, partition
            time.sleep(0.01)


def test_it_follows_the_quorum_and_is_there_again_after_a_restart(tmp_path: Path) -> None:
    for name in ("leader", "observer"):
        (tmp_path / name).mkdir()
    with ControllerProcess(formatted(tmp_path / "leader", QUIET)) as leader, leader.client() as client:
        settings = QUIET | {
            "node.id": str(OBSERVER_ID),
            "controller.quorum.bootstrap.servers": leader.wait_for("listening")["address"],
        }
        file = formatted(tmp_path / "observer", settings, voters=["--no-initial-controllers"])
        with ControllerProcess(file) as observer:
            assert observer.wait_for("controller starts")["voters"] == []
            client.set_config("message.max.bytes", "1234567")
            _wait_until_it_has_all(client)
            _wait_until_it_names_the_replicas(observer)
            assert [voter.replica_id for voter in _described(client).current_voters] == [NODE_ID]
            assert observer.terminate() == 0
        with ControllerProcess(file) as observer:
            (voter,) = observer.wait_for("controller starts")["voters"]
            assert voter.startswith(f"{NODE_ID}@")
            assert observer.wait_for("committed log applied")["to_offset"] > 0
            client.set_config("message.max.bytes", "7654321")
            _wait_until_it_has_all(client)
