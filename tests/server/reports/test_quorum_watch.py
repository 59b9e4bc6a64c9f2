"""Controllers as processes that have no quorum: their logs say why."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest
import trio

from kraft_wire import __version__
from kraft_wire.controller.node.events import ApiRequest, Caller
from kraft_wire.protocol.messages import vote_request
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.raft.events import Now, ShutDown, Tick
from kraft_wire.server.network.complaints import MISTAKE_INTERVAL_S, MOST_MISTAKES
from kraft_wire.server.reports.quorum_watch import QuorumWatch
from tests.raft.core_quorum import CoreQuorum
from tests.support.controller_process import CLUSTER_ID, NODE_ID, ControllerProcess, formatted

DIRECTORY, OTHER_DIRECTORY = "AwMDAwMDAwMDAwMDAwMDAw", "CQkJCQkJCQkJCQkJCQkJCQ"
OTHER_CLUSTER_ID = "YrdQ4P1pRdu0i3Hb1qR0Vg"
SECOND_ID = NODE_ID + 1


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_the_first_lines_say_who_starts_and_the_others_why_it_has_no_leader(tmp_path: Path) -> None:
    absent = f"127.0.0.1:{_free_port()}"
    voters = f"{NODE_ID}@127.0.0.1:{_free_port()}:{DIRECTORY},{SECOND_ID}@{absent}:{OTHER_DIRECTORY}"
    settings = {"controller.quorum.bootstrap.servers": absent}
    file = formatted(tmp_path, settings, voters=["--initial-controllers", voters])
    with ControllerProcess(file) as controller:
        starts = controller.wait_for("controller starts")
        no_leader = controller.wait_for("no leader")
    assert starts["version"] == __version__
    assert (starts["node_id"], starts["cluster_id"]) == (NODE_ID, CLUSTER_ID)
    assert (starts["directory_id"], starts["kraft_version"]) == (DIRECTORY, 1)
    assert starts["folder"] == str(tmp_path / "data")
    assert starts["voters"][1] == f"{SECOND_ID}@{absent}"
    assert no_leader["level"] == "warning"
    assert no_leader["others"] == [f"{SECOND_ID}@{absent} Connection refused"]


def test_two_of_different_clusters_both_say_so(tmp_path: Path) -> None:
    ports = {NODE_ID: _free_port(), SECOND_ID: _free_port()}
    voters = ",".join(
        f"{id}@127.0.0.1:{port}:{directory}"
        for (id, port), directory in zip(ports.items(), (DIRECTORY, OTHER_DIRECTORY), strict=True)
    )
    files = []
    for (id, port), cluster_id in zip(ports.items(), (CLUSTER_ID, OTHER_CLUSTER_ID), strict=True):
        (tmp_path / str(id)).mkdir()
        settings = {
            "node.id": str(id),
            "listeners": f"CONTROLLER://127.0.0.1:{port}",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{port}",
        }
        options = ["--initial-controllers", voters]
        files.append(formatted(tmp_path / str(id), settings, cluster_id=cluster_id, voters=options))
    with ControllerProcess(files[0]) as first, ControllerProcess(files[1]) as second:
        of_first = first.wait_for("node of another cluster refused")
        of_second = second.wait_for("node of another cluster refused")
        no_leader = first.wait_for("no leader")
    assert (of_first["node_id"], of_first["its_cluster_id"]) == (SECOND_ID, OTHER_CLUSTER_ID)
    assert (of_second["node_id"], of_second["its_cluster_id"]) == (NODE_ID, CLUSTER_ID)
    assert no_leader["others"] == [
        f"{SECOND_ID}@127.0.0.1:{ports[SECOND_ID]} has another cluster id ({OTHER_CLUSTER_ID}),"
        f" ours is {CLUSTER_ID}"
    ]


async def test_a_leader_whose_peers_are_gone_says_what_its_stop_waits_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    quorum = CoreQuorum(3).start()
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    watch = QuorumWatch(leader.running, CLUSTER_ID)
    for other in quorum.followers():
        other.crash()
    leader.propose(b"uncommitted")
    for event in (Tick(), ShutDown(), Tick()):
        leader.step(event)
        watch.stepped(event, [], Now(0, 0))
    (waits,) = [record.__dict__["fields"] for record in caplog.records if record.message == "stop waits"]
    assert waits["waits_for"] == "the commit of its last records"
    assert len(waits["other_voters"]) == 2


async def test_a_leader_that_nobody_succeeds_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    quorum = CoreQuorum(3).start()
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    for other in quorum.followers():
        other.crash()
    leader.step(ShutDown())
    QuorumWatch(leader.running, CLUSTER_ID).stepped(ShutDown(), [], Now(0, 0))
    (waits,) = [record.__dict__["fields"] for record in caplog.records if record.message == "stop waits"]
    assert waits["waits_for"] == "another leader"


async def test_a_stranger_under_many_ids_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    quorum = CoreQuorum(1).start()
    watch = QuorumWatch(quorum.elect().running, CLUSTER_ID)

    def asks(node_id: int) -> None:
        partition = vote_request.PartitionData(replica_id=node_id)
        topic = vote_request.TopicData(partitions=[partition])
        request = VoteRequest(cluster_id=OTHER_CLUSTER_ID, topics=[topic])
        event = ApiRequest(node_id, VoteRequest.API_KEY, 0, request, Caller("CONTROLLER"))
        watch.stepped(event, [], Now(0, 0))

    for node_id in range(100, 100 + MOST_MISTAKES + 30):
        asks(node_id)
    await trio.sleep(MISTAKE_INTERVAL_S)
    asks(99)
    logged = [r.__dict__["fields"] for r in caplog.records if r.message == "node of another cluster refused"]
    assert [each["node_id"] for each in logged] == [*range(100, 100 + MOST_MISTAKES), 99]
    assert [each.get("left_out") for each in logged] == [*[None] * MOST_MISTAKES, 30]
    for node_id in range(200, 200 + MOST_MISTAKES):
        asks(node_id)
    await trio.sleep(MISTAKE_INTERVAL_S)
    watch.look()
    (rest,) = [
        record.__dict__["fields"] for record in caplog.records if record.message == "warnings left out"
    ]
    assert rest["left_out"] == 1
