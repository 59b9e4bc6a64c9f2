"""Brokers of a cluster with very many partitions end, and the quorum doesn't notice."""

from __future__ import annotations

from pathlib import Path

from compat.benches.scale.ends import EndSizes, measure_ends
from compat.harness.kafka.tool_server import ToolServer

SIZES = EndSizes(controllers=3, partitions=200_000)
BUSY_MACHINE = {"controller.quorum.fetch.timeout.ms": "3000"}


def test_the_leader_stays_while_a_broker_shuts_down_and_another_crashes(
    tmp_path: Path, tool_server: ToolServer
) -> None:
    figures = measure_ends("ours", tmp_path, tool_server, SIZES, BUSY_MACHINE)
    for ended in (figures.stopped, figures.crashed):
        assert ended.failures == ()
        assert ended.changes_of_leader == 0
