"""A controller that lost its leader names none."""

from __future__ import annotations

from pathlib import Path

from kraft_wire.protocol.messages.metadata_request import MetadataRequest
from kraft_wire.protocol.messages.metadata_response import MetadataResponse
from tests.support.controller_process import Client
from tests.support.live_quorum import Controllers, three_controllers

METADATA_VERSION = 4


def _named_leader(controllers: Controllers, id: int) -> int:
    host, port = controllers.addresses[id].split(":")
    with Client(host, int(port)) as client:
        return client.call(MetadataRequest(), METADATA_VERSION, MetadataResponse).controller_id


def test_the_last_of_three_names_no_leader(tmp_path: Path) -> None:
    with three_controllers(tmp_path) as controllers:
        controllers.write(range(1))
        leader = controllers.leader()
        follower, last = (id for id in (1, 2, 3) if id != leader)
        controllers.kill(follower)
        controllers.kill(leader)
        controllers.processes[last].wait_for("no leader")
        assert _named_leader(controllers, last) == -1
