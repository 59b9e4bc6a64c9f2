"""Fixtures of several raft tests."""

from __future__ import annotations

import pytest

from kraft_wire.raft.membership.voters import static_voters
from tests.raft.core_quorum import CoreQuorum
from tests.raft.lone_node import LISTENER, LoneNode, config


@pytest.fixture(params=[0, 1], ids=["static", "dynamic"])
def quorum(request: pytest.FixtureRequest) -> CoreQuorum:
    return CoreQuorum(3, kraft_version=request.param).start()


@pytest.fixture
def node() -> LoneNode:
    """Return a leader of epoch 1 with offsets 0 and 1 committed."""
    node = LoneNode()
    node.propose()
    node.flush()
    return node


@pytest.fixture
def leaderless(node: LoneNode) -> LoneNode:
    """Return one of the voters 1 to 3, which has lost its leader in epoch 1. It has the log of ``node``."""
    addresses = {1: ("controller.example", 9093), 2: ("other.example", 9093), 3: ("third.example", 9093)}
    node.restart(config(static=static_voters(LISTENER, addresses)))
    node.has_lost_leader()
    assert node.core.epoch == 1
    return node
