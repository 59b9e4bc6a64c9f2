"""A voter loses its disk and votes again with a new one, in quorums of ours and in mixed ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.conftest import make_workspace
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.quorum import Controller, ControllerQuorum
from compat.harness.kafka.reconfiguration import (
    change,
    directory_of,
    wait_for_directories,
    wait_for_registrations,
)
from compat.harness.kafka.tool_server import ToolServer

KINDS: list[tuple[ControllerKind, ...]] = [("ours", "ours", "ours"), ("ours", "ours", "java")]


@pytest.fixture(params=KINDS, ids="-".join)
def quorum(
    request: pytest.FixtureRequest, tool_server: ToolServer, tmp_path: Path
) -> Iterator[ControllerQuorum]:
    for workspace in make_workspace(tmp_path):
        quorum = ControllerQuorum(workspace, tool_server, request.param)
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.start_brokers(1)
        yield quorum


def _lose_disk(quorum: ControllerQuorum, voter: Controller) -> str:
    """Kill a voter and give it a new disk. Returns the directory id that it had."""
    had = directory_of(voter)
    voter.kill()
    shutil.rmtree(voter.data_folder)
    voter.format(quorum.cluster_id, "--no-initial-controllers")
    assert directory_of(voter) != had
    return had


def _works(quorum: ControllerQuorum, topic: str) -> None:
    """Check that all controllers vote as their folders say, and have what is written now."""
    wait_for_directories(quorum, *quorum.controllers.values())
    quorum.create_topic_quickly(topic)
    quorum.wait_until_equal()


def test_a_voter_with_a_wiped_disk_votes_again(quorum: ControllerQuorum) -> None:
    """First with the commands that remove and add a voter, then by itself. In the mixed quorum it is
    Java's."""
    wiped = list(quorum.controllers.values())[-1]
    wait_for_registrations(quorum)
    lost = _lose_disk(quorum, wiped)
    printed = change(quorum, "quorum", "remove", str(wiped.node_id), "--directory-id", lost)
    assert f"The registration of controller {wiped.node_id} is removed." in printed
    wiped.start()
    change(quorum, "quorum", "add", wiped.properties_file)
    _works(quorum, "removed-and-added")

    wiped.change_properties({"controller.quorum.auto.join.enable": "true"})
    _lose_disk(quorum, wiped)
    wiped.start()
    _works(quorum, "joined")
