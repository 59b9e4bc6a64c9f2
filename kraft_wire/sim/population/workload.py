"""Propose records to leaders at random times, and make nodes write snapshots."""

from __future__ import annotations

from kraft_wire.sim.machines.cluster import Cluster
from kraft_wire.sim.machines.node import SimNode
from kraft_wire.sim.randomness import stream
from kraft_wire.sim.scheduler import MS

SECOND_US = 1_000_000


class Workload:
    """The workload of a run."""

    def __init__(self, cluster: Cluster) -> None:
        options = cluster.options
        self.proposed = 0
        self._is_over = False
        self._cluster = cluster
        self._chance = stream(options.seed, "workload")
        self._interval_us = 2 * SECOND_US // options.proposals_per_second
        self._value_bytes = options.value_bytes
        self._snapshot_interval_us = options.snapshot_interval_ms * MS

    def start(self) -> None:
        if not self._cluster.options.controllers:
            self._cluster.scheduler.after(self._interval_us, self._propose)
        for node in self._cluster.nodes.values():
            self._cluster.scheduler.after(self._snapshot_interval_us, self._snapshot, node)

    def stop(self) -> None:
        """Propose nothing more."""
        self._is_over = True

    def _propose(self) -> None:
        chance = self._chance
        if self._is_over:
            return
        self._cluster.scheduler.after(1 + int(chance.random() * self._interval_us), self._propose)
        records = 1 + int(chance.random() * 4)
        size_bytes = int(chance.random() * self._value_bytes)
        for node in self._cluster.nodes.values():
            if node.is_up and node.leading is not None:
                self.propose_to(node, records, size_bytes)

    def propose_to(self, node: SimNode, records: int, size_bytes: int) -> bool:
        """Propose records that were not proposed before. Return whether the node took them."""
        values = tuple(
            b"%d/%d/%d" % (node.id, self.proposed, number) + bytes(size_bytes) for number in range(records)
        )
        self.proposed += 1
        return node.propose(values)

    def _snapshot(self, node: SimNode) -> None:
        delay_us = 1 + int(self._chance.random() * 2 * self._snapshot_interval_us)
        self._cluster.scheduler.after(delay_us, self._snapshot, node)
        node.take_snapshot()
