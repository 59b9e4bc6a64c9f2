"""Fixtures of several raft tests."""

from __future__ import annotations

import pytest

from tests.raft.core_quorum import CoreQuorum
from tests.raft.lone_node import LoneNode


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
