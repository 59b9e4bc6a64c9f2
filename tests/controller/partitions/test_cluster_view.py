"""The view of the cluster that a decision has."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.controller.decision.work import SliceLimits
from kraft_wire.controller.partitions.departure import Departure
from kraft_wire.controller.partitions.directory_owners import DirectoryOwners
from tests.controller.topic_cluster import TopicCluster


def test_a_slice_looks_at_all_brokers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice has many windows, and each broker's directories are looked up in a table of all."""
    cluster = TopicCluster(1, 2)
    cluster.state.slice_limits = SliceLimits(window_rows=1)
    for number in range(10):
        cluster.create_topic(f"topic-{number}", (1, 2))
    looks: list[object] = []
    real = DirectoryOwners.of

    def look(*arguments: Any) -> DirectoryOwners:
        looks.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(DirectoryOwners, "of", look)
    assert len(Departure(1).next_slice(cluster.state).records) == 10
    assert len(looks) == 1
