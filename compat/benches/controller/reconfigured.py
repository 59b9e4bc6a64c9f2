"""Measure failovers of five voters, and of three voters whose leader ends while it changes them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from compat.benches.controller.quorum import (
    Failovers,
    QuorumSizes,
    fail_over_often,
    kill,
    start_quorum,
    stop,
    use_bench_options,
)
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.quorum import Controller, ControllerQuorum, connect
from compat.harness.kafka.reconfiguration import directory_of, voter_ids, wait_until_caught_up
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import Workspace
from compat.harness.waiting import wait_until
from compat.harness.wire import WireClient, describe_quorum
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kraft_wire.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraft_wire.protocol.uuid import Uuid

FIVE = 5
THREE = 3


class ReconfiguredFigures(msgspec.Struct):
    """The failovers of controllers of one kind."""

    three: tuple[Failovers, Failovers]
    """The leader killed and stopped; so in the other fields."""
    five: tuple[Failovers, Failovers]
    during_change: tuple[Failovers, Failovers]


def measure_reconfigured(
    kind: ControllerKind, folder: Path, tools: ToolServer, sizes: QuorumSizes
) -> ReconfiguredFigures:
    """Kill and stop the leader several times: with three voters, with five, and while the voters change."""
    return ReconfiguredFigures(
        _of_voters(kind, folder, tools, THREE, sizes),
        _of_voters(kind, folder, tools, FIVE, sizes),
        _during_change(kind, folder, tools, sizes),
    )


def _of_voters(
    kind: ControllerKind, folder: Path, tools: ToolServer, voters: int, sizes: QuorumSizes
) -> tuple[Failovers, Failovers]:
    with Workspace(folder / f"{kind}-{voters}-voters") as workspace:
        quorum = start_quorum(workspace, tools, kind, voters)
        killed = fail_over_often(quorum, kill, sizes.failovers)
        return killed, fail_over_often(quorum, stop, sizes.failovers)


def _during_change(
    kind: ControllerKind, folder: Path, tools: ToolServer, sizes: QuorumSizes
) -> tuple[Failovers, Failovers]:
    with Workspace(folder / f"{kind}-change") as workspace:
        quorum = start_quorum(workspace, tools, kind, THREE)
        fourth = quorum.new_controller(kind)
        use_bench_options(fourth)
        fourth.start()
        wait_until_caught_up(quorum, fourth)

        def change(leader: Controller) -> None:
            _begin_change(quorum, leader, fourth)

        killed = fail_over_often(quorum, kill, sizes.failovers, change)
        return killed, fail_over_often(quorum, stop, sizes.failovers, change)


def _begin_change(quorum: ControllerQuorum, leader: Controller, fourth: Controller) -> None:
    """Add the fourth controller, or remove it; return when the change is in the leader's log."""
    before = voter_ids(quorum)
    with connect(leader) as client, connect(leader) as looking:
        client.send(_removal(fourth) if fourth.node_id in before else _addition(fourth), 0)
        wait_until(lambda: _voters_by(looking) != before, "the change to be in the leader's log")


def _addition(controller: Controller) -> AddRaftVoterRequest:
    listener = Listener(name="CONTROLLER", host=controller.place.host, port=controller.port)
    return AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=10_000,
        voter_id=controller.node_id,
        voter_directory_id=Uuid.parse(directory_of(controller)),
        listeners=[listener],
    )


def _removal(controller: Controller) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=None,
        voter_id=controller.node_id,
        voter_directory_id=Uuid.parse(directory_of(controller)),
    )


def _voters_by(client: WireClient) -> set[int]:
    partition = describe_quorum(client).topics[0].partitions[0]
    return {voter.replica_id for voter in partition.current_voters}
